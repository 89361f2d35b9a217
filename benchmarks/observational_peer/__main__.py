"""Play each scenario through both engines, and print where they differ.

Environment variables:

    PEER_DIR     folder with the npm packages of Mastra; default: tests/conformance
    PEER_ONLY    names of scenarios, separated by commas; default: all
    PEER_JSON    file for all steps of both sides
    PEER_STEPS   1: print a line for each turn
"""

import dataclasses
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import temporary
from benchmarks.observational_peer import report
from benchmarks.observational_peer.fake_model import FakeModel
from benchmarks.observational_peer.mastra import MastraEngine
from benchmarks.observational_peer.scenarios import SCENARIOS, Scenario
from benchmarks.observational_peer.steps import Step
from tests.support import servers
from tests.support.servers import say

SETTINGS = "benchmarks.observational_peer.settings"
Pairs = list[tuple[Step, Step]]
Results = list[tuple[Scenario, Pairs]]


def main() -> int:
    """Compare on a temporary database. Return 1 if a difference has no explanation."""
    servers.stop_on_terminate()
    selected = _select_scenarios()
    fake = FakeModel.start()
    with tempfile.TemporaryDirectory(prefix="observational-peer-") as folder:
        var_dir = Path(folder, "var")
        kit = Path(os.environ.get("PEER_DIR") or servers.KIT).resolve()
        kit = servers.kit_with_packages(kit, Path(folder))
        variables = {"FAKE_MODEL_URL": fake.get_url("ours")}
        os.environ.update(servers.environment(SETTINGS, var_dir, **variables))
        temporary.create_tables()
        try:
            with MastraEngine(kit, fake, Path(folder, "mastra.log")) as mastra:
                results = [(scenario, _play(scenario, fake, mastra)) for scenario in selected]
        finally:
            temporary.stop_database(var_dir)
            fake.stop()
    if path := os.environ.get("PEER_JSON"):
        Path(path).write_text(json.dumps(_to_json(results), indent=1, ensure_ascii=False) + "\n")
    if unexplained := sum(_report(scenario, pairs) for scenario, pairs in results):
        say(f"\n{unexplained} differences have no explanation.")
    return int(unexplained > 0)


def _select_scenarios() -> list[Scenario]:
    names = os.environ.get("PEER_ONLY", "").replace(",", " ").split()
    if unknown := set(names) - {scenario.name for scenario in SCENARIOS}:
        raise servers.ServerError(f"PEER_ONLY: unknown scenarios {sorted(unknown)}.")
    return [scenario for scenario in SCENARIOS if not names or scenario.name in names]


def _play(scenario: Scenario, fake: FakeModel, mastra: MastraEngine) -> Pairs:
    from benchmarks.observational_peer.ours import OurEngine

    ours = OurEngine(fake)
    ours.open(scenario)
    mastra.open(scenario)
    turns = scenario.make_turns()
    pairs = [(ours.play(turn), mastra.play(turn)) for turn in turns]
    if scenario.reflects_at_end:
        pairs.append((ours.reflect(turns[-1]), mastra.reflect(turns[-1])))
    return pairs


def _report(scenario: Scenario, pairs: Pairs) -> int:
    """Print the tables, and return how many differences have no explanation."""
    say(f"\n## {scenario.title} (`{scenario.name}`, {len(pairs)} steps)\n")
    if os.environ.get("PEER_STEPS") == "1":
        say(report.make_step_table(pairs) + "\n")
    table, unexplained = report.make_difference_table(scenario.name, pairs)
    say(table)
    shared, different = report.compare_shared_chunks(pairs)
    say(f"\nChunks made of the same messages by both: {shared}, different: {len(different)}")
    core = ("seen_messages", "seen_log", "log", "log_tokens", "pending_tokens", "generation")
    equal = report.count_equal_steps(pairs, core)
    say(
        f"Steps before the log or the messages of the actor differ: {equal}, expected at least"
        f" {scenario.equal_steps}"
    )
    return unexplained + len(different) + (equal < scenario.equal_steps)


def _to_json(results: Results) -> dict[str, Any]:
    return {
        scenario.name: [
            {"ours": dataclasses.asdict(ours), "mastra": dataclasses.asdict(mastra)}
            for ours, mastra in pairs
        ]
        for scenario, pairs in results
    }


if __name__ == "__main__":
    try:
        sys.exit(main())
    except servers.ServerError as error:
        sys.exit(str(error))
