"""Start the measured servers: ours and Mastra's, each with its own database on one PostgreSQL."""

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import psycopg

from project import embedded_postgres
from tests.support import servers

OUR_DATABASE = "ours"
MASTRA_DATABASE = "mastra"
SETTINGS = "benchmarks.settings"
PRELOAD = Path(__file__).with_name("listen_on_loopback.mjs")

Product = Literal["ours", "mastra"]


@dataclass(frozen=True, slots=True)
class Target:
    """A running server."""

    name: str
    """The name of its column in the results."""
    product: Product
    port: int
    headers: dict[str, str] = field(default_factory=dict)


def database_url(var_dir: Path, name: str) -> str:
    """Return the connection string of one of the databases."""
    return f"postgresql://{embedded_postgres.ROLE}@/{name}?host={embedded_postgres.socket_dir(var_dir)}"


def create_databases(var_dir: Path) -> None:
    """Start PostgreSQL and create both databases."""
    embedded_postgres.start(var_dir)
    with psycopg.connect(database_url(var_dir, "postgres"), autocommit=True) as connection:
        for name in (OUR_DATABASE, MASTRA_DATABASE):
            connection.execute(f"CREATE DATABASE {name}")


def our_environment(var_dir: Path, **variables: str) -> dict[str, str]:
    """Return the environment of our server.

    The database is named by its URL, because two servers may use it at the same time and each
    needs a folder of its own for its task queue.
    """
    database = {"DATABASE_URL": database_url(var_dir, OUR_DATABASE)}
    return servers.environment(SETTINGS, var_dir) | database | variables


@contextmanager
def our_server(
    var_dir: Path, name: str = "ours", *, processes: int | None = None, token: str = ""
) -> Iterator[Target]:
    """Run our server with its start command, `manage.py serve`, as `make run` does.

    `processes` replaces the command's own number of web processes. With a `token` the server
    requires access tokens; without one it accepts every request.
    """
    port = servers.free_port()
    command = [sys.executable, "manage.py", "serve", "--no-samples"]
    command += ["--host", "127.0.0.1", "--port", str(port)]
    if processes is not None:
        command += ["--processes", str(processes)]
    own_dir = var_dir / f"server-{port}"
    own_dir.mkdir()
    environment = our_environment(var_dir) | {"MASTRA_VAR_DIR": str(own_dir)}
    if token:
        environment["BENCH_TOKENS"] = "1"
    with servers.running(
        command,
        env=environment,
        log=own_dir / "server.log",
        health_url=f"http://127.0.0.1:{port}/readyz",
    ):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        yield Target(name, "ours", port, headers)


@contextmanager
def mastra_server(var_dir: Path, kit: Path) -> Iterator[Target]:
    """Run the reference server of the conformance kit, one Node.js process."""
    port = servers.free_port()
    with servers.running(
        [str(servers.node(kit)), "--import", str(PRELOAD), "peer/server.mjs"],
        env=os.environ
        | {"PORT": str(port), "STORE": "pg", "CONTROL": "0"}
        | {"PGURL": database_url(var_dir, MASTRA_DATABASE)},
        log=var_dir / "mastra.log",
        health_url=f"http://127.0.0.1:{port}/api/memory/threads?perPage=1",
        cwd=kit,
    ):
        yield Target("mastra", "mastra", port)
