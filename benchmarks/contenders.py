"""The two servers on one PostgreSQL: their databases, how they are started and found."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from project import embedded
from tests import servers

OUR_DATABASE = "ours"
PEER_DATABASE = "mastra"
SETTINGS = "benchmarks.settings"
PRELOADED = Path(__file__).with_name("loopback.mjs")


@dataclass(frozen=True, slots=True)
class Contender:
    """A running server."""

    name: str
    port: int
    headers: dict[str, str] = field(default_factory=dict)


def database_url(var_dir: Path, name: str) -> str:
    """Give the connection string of one of the databases."""
    return f"postgresql://{embedded.ROLE}@/{name}?host={embedded.socket_dir(var_dir)}"


def create_databases(var_dir: Path) -> None:
    """Start PostgreSQL and make both databases, empty."""
    embedded.start(var_dir)
    with psycopg.connect(database_url(var_dir, "postgres"), autocommit=True) as connection:
        for name in (OUR_DATABASE, PEER_DATABASE):
            connection.execute(f"CREATE DATABASE {name}")


@contextmanager
def ours(var_dir: Path, *, workers: int = 1, token: str = "") -> Iterator[Contender]:
    """Run our server; with a token it asks for one, without it takes anybody."""
    port = servers.free_port()
    tokens = {"BENCH_TOKENS": "1"} if token else {}
    with servers.running(
        servers.our_server(port, workers=workers),
        env=servers.environment(SETTINGS, var_dir, **tokens),
        log=var_dir / f"ours-{port}.log",
        alive=f"http://127.0.0.1:{port}/healthz",
    ):
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        yield Contender("ours", port, headers)


@contextmanager
def mastra(var_dir: Path, kit: Path) -> Iterator[Contender]:
    """Run the kit's reference server on its own database."""
    port = servers.free_port()
    with servers.running(
        [str(servers.node(kit)), "--import", str(PRELOADED), "peer/server.mjs"],
        env=os.environ
        | {"PORT": str(port), "STORE": "pg", "CONTROL": "0"}
        | {"PGURL": database_url(var_dir, PEER_DATABASE)},
        log=var_dir / "mastra.log",
        alive=f"http://127.0.0.1:{port}/api/memory/threads?perPage=1",
        cwd=kit,
    ):
        yield Contender("mastra", port)
