"""Tests of the conformance run: which checks are passed, failed, waiting or overdue."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.contract import run as conformance_run
from tests.contract.agents import STUB_MODEL, read_agents
from tests.support import servers

WAITING = frozenset({"search-semantic", "client: searchMemory: semantic"})


def test_run__importing_it_does_not_load_settings() -> None:
    code = "import sys, tests.contract.run; print('project.settings' in sys.modules)"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=servers.ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout == "False\n"


def test_judge__a_waiting_check_may_fail_or_be_skipped() -> None:
    for state in ("fail", "skip"):
        verdict = conformance_run.judge({"clone-all": "pass", "search-semantic": state}, WAITING)
        assert verdict.waiting == ["search-semantic"]
        assert verdict.is_good


def test_judge__a_waiting_check_that_passes_is_an_error() -> None:
    verdict = conformance_run.judge({"clone-all": "pass", "search-semantic": "pass"}, WAITING)
    assert verdict.overdue == ["search-semantic"]
    assert not verdict.is_good


@pytest.mark.parametrize("state", ["fail", "skip"])
def test_judge__other_checks_must_pass(state: str) -> None:
    verdict = conformance_run.judge({"clone-all": state, "clone-limit": "pass"}, WAITING)
    assert verdict.failed == ["clone-all"]
    assert not verdict.is_good


def test_judge__is_not_good_if_nothing_passed() -> None:
    assert not conformance_run.judge({}, WAITING).is_good
    assert not conformance_run.judge({"search-semantic": "fail"}, WAITING).is_good


def test_report__returns_the_exit_code_and_prints_overdue_names(
    capsys: pytest.CaptureFixture[str],
) -> None:
    good = conformance_run.Verdict(passed=["clone-all"])
    overdue = conformance_run.Verdict(passed=["clone-all"], overdue=["search-semantic"])
    failed = conformance_run.Verdict(passed=["clone-all"], failed=["clone-limit"])
    assert conformance_run.report(good, good, ()) == 0
    assert "Remove these" not in capsys.readouterr().out
    assert conformance_run.report(overdue, good, ()) == 1
    assert "Remove these names from waiting.txt: search-semantic" in capsys.readouterr().out
    assert conformance_run.report(good, failed, ()) == 1
    assert "failed: clone-limit" in capsys.readouterr().out
    assert conformance_run.report(good, good, {"no-such-check"}) == 1
    assert "no-such-check" in capsys.readouterr().out


def test_read_waiting__ignores_comments_and_blank_lines() -> None:
    text = "# why\n\nsearch-semantic  # vectors\n client: searchMemory: semantic \n"
    assert conformance_run.read_waiting(text) == WAITING


def test_scenario_paths__spaces_and_colons_separate(tmp_path: Path) -> None:
    paths = conformance_run.scenario_paths("/a/open:/a/held /b/one.json", tmp_path)
    assert paths == [Path("/a/open"), Path("/a/held"), Path("/b/one.json")]
    assert conformance_run.scenario_paths(" ", tmp_path) == [tmp_path / "open"]


def test_find_scenarios__by_id_from_folders_and_files(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "a.json").write_text(json.dumps({"id": "one"}))
    (tmp_path / "b.json").write_text(json.dumps({"id": "two"}))
    found = conformance_run.find_scenarios([tmp_path / "deep", tmp_path / "b.json"])
    assert found == {"one": tmp_path / "deep" / "a.json", "two": tmp_path / "b.json"}


def test_find_scenarios__two_files_with_one_id_or_none_at_all(tmp_path: Path) -> None:
    with pytest.raises(servers.ServerError, match="No scenario"):
        conformance_run.find_scenarios([tmp_path])
    for name in ("a", "b"):
        (tmp_path / f"{name}.json").write_text(json.dumps({"id": "same"}))
    with pytest.raises(servers.ServerError, match="both called same"):
        conformance_run.find_scenarios([tmp_path])


def test_read_client_output__names_with_colons_and_lines_of_detail() -> None:
    text = "PASS  thread.get: with agent\nFAIL  searchMemory: semantic\n      expected PASS  x\n"
    assert conformance_run.read_client_output(text) == {
        "client: thread.get: with agent": "pass",
        "client: searchMemory: semantic": "fail",
    }


def test_conformance_waiting__names_exist_in_the_kit() -> None:
    waiting = conformance_run.read_waiting(conformance_run.WAITING_FILE.read_text())
    known = set(conformance_run.find_scenarios([servers.KIT / "open"]))
    client = (servers.KIT / "client.mjs").read_text()
    for name in waiting - known:
        assert name.startswith("client: ")
        assert f"check('{name.removeprefix('client: ')}'" in client


def test_read_agents__sub_agents_are_listed_next_to_hosts() -> None:
    agents = read_agents(servers.KIT / "fixture" / "agents.json")
    assert agents["host-agent"] is None
    assert agents["no-memory-agent"] is None
    assert agents["nested-agent"] == {"lastMessages": 10, "workingMemory": {"enabled": True}}
    assert agents["om-agent"] == {"observationalMemory": {"model": STUB_MODEL, "scope": "thread"}}
    assert "comment" not in agents


def _kit(folder: Path, *, packages: bool) -> Path:
    folder.mkdir()
    (folder / "package-lock.json").write_text("{}")
    if packages:
        servers.node(folder).parent.mkdir(parents=True)
        servers.node(folder).touch()
    return folder


def test_kit_with_packages__a_kit_that_has_them_is_used_as_it_is(tmp_path: Path) -> None:
    kit = _kit(tmp_path / "kit-with", packages=True)
    assert servers.kit_with_packages(kit, tmp_path) == kit


def test_kit_with_packages__a_foreign_kit_stays_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(servers, "KIT", _kit(tmp_path / "ours", packages=True))
    foreign = _kit(tmp_path / "foreign", packages=False)
    foreign.chmod(0o555)
    found = servers.kit_with_packages(foreign, tmp_path)
    assert found == tmp_path / "kit"
    assert servers.node(found).exists()
    assert not (foreign / "node_modules").exists()
