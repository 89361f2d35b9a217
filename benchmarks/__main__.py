"""Run the benchmark and print its tables.

Environment variables:

    BENCH_JSON     file for the results
    BENCH_ONLY     names of the scenarios to measure, separated by commas; default: all
    BENCH_SECONDS  duration of one round of one scenario; default: 1.0
    BENCH_ROUNDS   rounds of each scenario; default: 3
    PEER_DIR       folder of the reference server; default: tests/conformance
"""

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks import dataset, report, runner, scenarios, targets, temporary
from benchmarks.runner import Runner
from benchmarks.scenarios import Scenario
from tests.support import servers
from tests.support.servers import say

CONNECTIONS = 8


def main() -> None:
    """Measure on a temporary database and write the results."""
    servers.stop_on_terminate()
    selected = scenarios.selected_scenarios()
    with tempfile.TemporaryDirectory(prefix="benchmark-") as folder:
        var_dir = Path(folder, "var")
        kit = Path(os.environ.get("PEER_DIR") or servers.KIT).resolve()
        kit = servers.kit_with_packages(kit, Path(folder))
        targets.create_databases(var_dir)
        token = _prepare_our_database(var_dir)
        try:
            results = _measure(selected, var_dir, kit, token)
        finally:
            temporary.stop_database(var_dir)
    if path := os.environ.get("BENCH_JSON"):
        Path(path).write_text(json.dumps(results, indent=1) + "\n")


def _prepare_our_database(var_dir: Path) -> str:
    """Create our tables and return an access token."""
    os.environ.update(targets.our_environment(var_dir))
    import django

    django.setup()
    from django.contrib.auth import get_user_model
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    get_user_model().objects.create_superuser("benchmark")
    with open(os.devnull, "w") as devnull:
        return str(call_command("create_token", "benchmark", stdout=devnull))


def _measure(selected: Sequence[Scenario], var_dir: Path, kit: Path, token: str) -> dict[str, Any]:
    our_database = targets.database_url(var_dir, targets.OUR_DATABASE)
    mastra_database = targets.database_url(var_dir, targets.MASTRA_DATABASE)
    create_threads = partial(dataset.create_disposable_threads, our_database, mastra_database)
    say("Starting the servers and loading the same conversations ...")
    with targets.mastra_server(var_dir, kit) as mastra:
        dataset.load(our_database, mastra_database)
        with (
            targets.our_server(var_dir) as ours,
            targets.our_server(var_dir, report.ONE_PROCESS, processes=1) as one_process,
        ):
            for target in (ours, mastra):
                runner.send(scenarios.STORE_WORKING_MEMORY, target)
            comparison = Runner([ours, mastra, one_process], create_threads)
            one_connection, results = (comparison.measure(selected, n) for n in (1, CONNECTIONS))
    say(f"\n{report.comparison_table(one_connection, 1)}")
    say(f"\n{report.comparison_table(results, CONNECTIONS)}\n")
    columns = {"as started": report.medians(results)}
    columns |= _measure_ours(selected, var_dir, token, comparison)
    say(f"\n{report.columns_table(f'ours /s, {CONNECTIONS} connections', columns)}")
    return {
        "cores": os.cpu_count(),
        "lines": report.as_json(results),
        "one_connection": report.as_json(one_connection),
        "ours": {name.replace(" ", "_"): column for name, column in columns.items()},
    }


def _measure_ours(
    selected: Sequence[Scenario], var_dir: Path, token: str, previous: Runner
) -> dict[str, dict[str, float]]:
    """Measure what has no counterpart at Mastra's: access tokens, and the SQL alone."""
    from benchmarks import sql_baseline

    names = {scenario.name for scenario in selected}
    with_token = scenarios.scenarios_named(names.intersection(scenarios.TOKEN_SCENARIOS))
    with_sql = scenarios.scenarios_named(names.intersection(scenarios.SQL_SCENARIOS))
    with targets.our_server(var_dir, token=token) as ours:
        token_results = previous.with_targets([ours]).measure(with_token, CONNECTIONS)
    database = targets.database_url(var_dir, targets.OUR_DATABASE)
    return {
        "with token": report.medians(token_results),
        "SQL only": sql_baseline.measure(with_sql, database),
    }


if __name__ == "__main__":
    try:
        main()
    except servers.ServerError as error:
        sys.exit(str(error))
