"""How a working memory may change, one at a time and many at once."""

import json
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from django.db import connection

from mastra_memory.exceptions import FeatureDisabled, InvalidInput, ThreadNotFound
from mastra_memory.memory import Memory
from mastra_memory.models import WorkingMemory, WorkingMemoryRevision
from mastra_memory.options import DEFAULT_TEMPLATE
from tests.support.factories import make_thread

MARKDOWN: dict[str, Any] = {"workingMemory": {"enabled": True}}
SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "name": {"type": "string"},
        "prefs": {"type": "object"},
        "tags": {"type": "array"},
    },
}
JSON: dict[str, Any] = {"workingMemory": {"enabled": True, "schema": SCHEMA}}
KEYS: dict[str, Any] = {"workingMemory": {"enabled": True, "schema": {"type": "object"}}}
BY_THREAD: dict[str, Any] = {"workingMemory": {"enabled": True, "scope": "thread"}}


def stored(memory: Memory, thread_id: str = "t") -> Any:
    return json.loads(memory.get_working_memory(thread_id) or "{}")


@pytest.mark.django_db
def test_update__merges_by_schema_and_keeps_other_keys() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    memory.update_working_memory("t", '{"name": "Ann", "prefs": {"tone": "dry"}, "tags": [1]}')
    memory.update_working_memory("t", '{"prefs": {"lang": "de"}, "tags": [2]}', mode="merge")
    assert stored(memory) == {"name": "Ann", "prefs": {"tone": "dry", "lang": "de"}, "tags": [2]}
    memory.update_working_memory("t", '{"prefs": null}', mode="merge")
    assert stored(memory) == {"name": "Ann", "tags": [2]}


@pytest.mark.django_db
def test_update__markdown_is_replaced_whole_in_either_mode() -> None:
    memory, _ = Memory(options=MARKDOWN), make_thread("r", "t")
    memory.update_working_memory("t", "name: Ann\ncity: Rome")
    memory.update_working_memory("t", "name: Ann", mode="merge")
    assert memory.get_working_memory("t") == "name: Ann"


@pytest.mark.django_db
@pytest.mark.parametrize("mode", ["replace", "merge"])
@pytest.mark.parametrize(
    "placeholder",
    [
        DEFAULT_TEMPLATE,
        DEFAULT_TEMPLATE.strip(),
        DEFAULT_TEMPLATE.replace("\n", "\r\n"),
        f"\n\n  {DEFAULT_TEMPLATE}  \n ",
        DEFAULT_TEMPLATE.replace(" ", "   "),
    ],
)
def test_update__the_empty_template_never_wipes_what_is_known(placeholder: str, mode: Any) -> None:
    memory, _ = Memory(options=MARKDOWN), make_thread("r", "t")
    memory.update_working_memory("t", "name: Ann")
    with pytest.raises(InvalidInput, match="empty template"):
        memory.update_working_memory("t", placeholder, mode=mode)
    assert memory.get_working_memory("t") == "name: Ann"
    assert WorkingMemoryRevision.objects.count() == 1


@pytest.mark.django_db
def test_update__the_empty_template_may_take_the_place_of_nothing() -> None:
    memory, _ = Memory(options=MARKDOWN), make_thread("r", "t")
    memory.update_working_memory("t", DEFAULT_TEMPLATE)
    memory.update_working_memory("t", DEFAULT_TEMPLATE.strip())
    assert memory.get_working_memory("t") == DEFAULT_TEMPLATE.strip()


@pytest.mark.django_db
def test_update__the_empty_object_never_wipes_what_is_known() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    template = memory.get_working_memory_template()
    assert template is not None
    memory.update_working_memory("t", '{"name": "Ann"}')
    with pytest.raises(InvalidInput, match="empty template"):
        memory.update_working_memory("t", template.empty_content)
    assert stored(memory) == {"name": "Ann"}


@pytest.mark.django_db
def test_update__nothing_at_all_clears_on_purpose() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    memory.update_working_memory("t", '{"name": "Ann"}')
    memory.update_working_memory("t", "")
    assert memory.get_working_memory("t") is None


@pytest.mark.django_db
def test_update__what_does_not_fit_changes_nothing() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    memory.update_working_memory("t", '{"name": "Ann"}')
    for mode in ("replace", "merge"):
        for faulty in ('{"name": 5}', "not json"):
            with pytest.raises(InvalidInput):
                memory.update_working_memory("t", faulty, mode=mode)
    assert stored(memory) == {"name": "Ann"}
    assert WorkingMemoryRevision.objects.count() == 1


@pytest.mark.django_db
def test_update__a_refused_first_update_leaves_no_row() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    with pytest.raises(InvalidInput):
        memory.update_working_memory("t", '{"name": 5}', mode="merge")
    assert not WorkingMemory.objects.exists()


@pytest.mark.django_db
def test_update__unchanged_merge_adds_no_revision() -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    version = memory.update_working_memory("t", '{"name": "Ann"}', mode="merge")
    for update in ("{}", '{"name": "Ann"}', '{"gone": null}'):
        assert memory.update_working_memory("t", update, mode="merge") == version
    assert WorkingMemoryRevision.objects.count() == 1


@pytest.mark.django_db
def test_update__merge_into_invalid_json_replaces_it() -> None:
    make_thread("r", "t")
    Memory(options=MARKDOWN).update_working_memory("t", "# notes")
    memory = Memory(options=JSON)
    memory.update_working_memory("t", '{"name": "Ann"}', mode="merge")
    assert stored(memory) == {"name": "Ann"}


@pytest.mark.django_db
def test_update__refusals() -> None:
    with pytest.raises(FeatureDisabled):
        Memory(options={"workingMemory": {"enabled": False}}).update_working_memory("t", "x")
    with pytest.raises(InvalidInput):
        Memory(options=MARKDOWN).update_working_memory("unknown", "x")
    with pytest.raises(ThreadNotFound):
        Memory(options=BY_THREAD).update_working_memory("unknown", "x")


@pytest.mark.django_db
def test_update__statements(statements: Any) -> None:
    memory, _ = Memory(options=JSON), make_thread("r", "t")
    memory.update_working_memory("t", '{"name": "Ann"}', resource_id="r")
    with statements() as sent:
        memory.update_working_memory("t", '{"tags": [1]}', resource_id="r", mode="merge")
    assert len(sent) == 3  # the first one checks the owner of the thread


def _at_once(count: int, work: Any) -> None:
    def run(number: int) -> None:
        try:
            work(number)
        finally:
            connection.close()

    with ThreadPoolExecutor(16) as pool:
        list(pool.map(run, range(count)))


@pytest.mark.django_db(transaction=True)
@pytest.mark.parametrize("scope", ["resource", "thread"])
def test_update__fifty_merges_at_once_lose_nothing(scope: str) -> None:
    make_thread("r", "t")
    memory = Memory(options=KEYS).options.merged({"workingMemory": {"scope": scope}}).raw
    agent = Memory(options=memory)
    _at_once(50, lambda n: agent.update_working_memory("t", f'{{"k{n}": {n}}}', mode="merge"))
    assert stored(agent) == {f"k{n}": n for n in range(50)}
    assert sorted(WorkingMemoryRevision.objects.values_list("version", flat=True)) == [
        *range(1, 51)
    ]


@pytest.mark.django_db(transaction=True)
def test_update__fifty_replacements_at_once_leave_one_whole() -> None:
    make_thread("r", "t")
    memory = Memory(options=MARKDOWN)
    texts = [f"text {n} " * 200 for n in range(50)]
    _at_once(50, lambda n: memory.update_working_memory("t", texts[n]))
    revisions = WorkingMemoryRevision.objects.order_by("version")
    assert memory.get_working_memory("t") == revisions.last().content  # type: ignore[union-attr]
    assert sorted(revisions.values_list("content", flat=True)) == sorted(texts)
