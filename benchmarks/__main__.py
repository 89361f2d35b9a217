"""Run the benchmark and print its tables; BENCH_JSON names a file for the figures.

BENCH_SECONDS and BENCH_ROUNDS say how long and how often each line is measured, BENCH_ONLY which
lines (by name), PEER_DIR where the reference server is.
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import contenders, data, lines, table
from benchmarks.contest import Contest
from benchmarks.lines import Line
from tests import servers
from tests.servers import say

CONNECTIONS = 8


def main() -> None:
    """Measure everything on a database of its own, which is gone afterwards."""
    servers.stop_on_terminate()
    chosen = lines.chosen_lines()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        var_dir = Path(folder, "var")
        kit = Path(os.environ.get("PEER_DIR") or servers.KIT).resolve()
        kit = servers.kit_with_packages(kit, Path(folder))
        contenders.create_databases(var_dir)
        token = _prepare_ours(var_dir)
        try:
            figures = _measure(chosen, var_dir, kit, token)
        finally:
            _release(var_dir)
    if target := os.environ.get("BENCH_JSON"):
        Path(target).write_text(json.dumps(figures, indent=1) + "\n")


def _prepare_ours(var_dir: Path) -> str:
    """Make our tables, and a token for the line that tells what a token costs."""
    os.environ.update(servers.environment(contenders.SETTINGS, var_dir))
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("benchmark")
    with open(os.devnull, "w") as nowhere:
        return str(call_command("create_token", "benchmark", stdout=nowhere))


def _release(var_dir: Path) -> None:
    from django.db import connection

    from project import embedded

    connection.close()
    embedded.release(var_dir)


def _measure(chosen: Sequence[Line], var_dir: Path, kit: Path, token: str) -> dict[str, Any]:
    our_database = contenders.database_url(var_dir, contenders.OUR_DATABASE)
    peer_database = contenders.database_url(var_dir, contenders.PEER_DATABASE)
    doom = partial(data.doom, our_database, peer_database)
    say("starting both servers and loading the same conversations …")
    with contenders.mastra(var_dir, kit) as mastra:
        data.fill(our_database, peer_database)
        with contenders.ours(var_dir) as ours:
            contest = Contest([ours, mastra], doom)
            alone, together = (contest.measure(chosen, n) for n in (1, CONNECTIONS))
    say(f"\n{table.versus(alone, 1)}\n\n{table.versus(together, CONNECTIONS)}\n")
    figures = {"one process": table.medians(together)}
    figures |= _measure_ours(chosen, var_dir, token, contest)
    say(f"\n{table.single(f'ours /s, {CONNECTIONS} connections', figures)}")
    return {
        "lines": table.as_json(together),
        "one_connection": table.as_json(alone),
        "ours": {name.replace(" ", "_"): column for name, column in figures.items()},
    }


def _measure_ours(
    chosen: Sequence[Line], var_dir: Path, token: str, before: Contest
) -> dict[str, dict[str, float]]:
    """Measure what only our server has: tokens, several processes, and the floor below it."""
    from benchmarks import floor

    guarded = [line for line in lines.only(lines.TOKEN_LINES) if line in chosen]
    usual = [line for line in lines.only(lines.READS_AND_SAVES) if line in chosen]
    cores = os.cpu_count() or 1
    with contenders.ours(var_dir, token=token) as ours:
        contest = before.continued_by([ours])
        with_token = contest.measure(guarded, CONNECTIONS)
    with contenders.ours(var_dir, workers=cores) as ours:
        on_all_cores = contest.continued_by([ours]).measure(usual, CONNECTIONS)
    database = contenders.database_url(var_dir, contenders.OUR_DATABASE)
    return {
        "with token": table.medians(with_token),
        f"{cores} processes": table.medians(on_all_cores),
        "SQL alone, 1 connection": floor.measure(usual, database),
    }


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(str(error))
