"""Tests of citation marks in texts of ChatGPT."""

from pathlib import Path
from typing import Any

import pytest

from mastra_memory.exporters import jsonl, markdown
from mastra_memory.importers.formats.chatgpt_citations import resolve_citations
from mastra_memory.models import Message
from mastra_memory.search import lists
from tests.importers.test_chatgpt import conversation, node
from tests.support.exporting import run_export
from tests.support.importing import import_path, write_json

Json = dict[str, Any]
TEA = {"title": "All about tea", "url": "https://tea.example/green"}
MILK = {"title": "Milk", "url": "https://milk.example/"}


def cite(*result_ids: str) -> str:
    return "\ue200" + "\ue202".join(("cite", *result_ids)) + "\ue201"


def reference(mark: str, *items: Json, **more: Any) -> Json:
    return {"type": "grouped_webpages", "matched_text": mark, "items": list(items), **more}


def resolve(text: str, *, role: str = "assistant", **metadata: Any) -> tuple[str, list[str]]:
    """Return the text of a message after `resolve_citations`, and the addresses of its sources."""
    parts = resolve_citations([{"type": "text", "text": text}], metadata, role)
    texts = [part["text"] for part in parts if part["type"] == "text"]
    sources = [part["source"] for part in parts if part["type"] == "source"]
    return "".join(texts), [source.get("url", source["title"]) for source in sources]


def test_resolve_citations__marks_become_links_and_sources() -> None:
    mark = cite("turn0search1")
    text, sources = resolve(f"Tea is green{mark}.", content_references=[reference(mark, TEA)])
    assert text == "Tea is green ([All about tea](https://tea.example/green))."
    assert sources == [TEA["url"]]


def test_resolve_citations__one_mark_for_several_pages() -> None:
    mark = cite("turn0search1", "turn0news2")
    page = {**TEA, "supporting_websites": [MILK, TEA]}
    references = [reference(mark, page), reference(" ", MILK, type="sources_footnote")]
    text, sources = resolve(f"Yes {mark} and {mark}", content_references=references)
    link = "([All about tea](https://tea.example/green), [Milk](https://milk.example/))"
    assert (text, sources) == (f"Yes {link} and {link}", [TEA["url"], MILK["url"]])


@pytest.mark.parametrize(
    "metadata",
    [
        {"content_references": [{"type": "webpage", "matched_text": cite("turn0search1"), **TEA}]},
        {"content_references": [{**TEA, "matched_text": cite("turn0search1")}]},
        {"content_references": [reference("", {**TEA, "refs": [
            {"turn_index": 0, "ref_type": "search", "ref_index": 1}]})]},
        {"search_result_groups": [{"domain": "tea.example", "entries": [{**TEA, "ref_id":
            {"turn_index": 0, "ref_type": "search", "ref_index": 1}}]}]},
        {"content_references": [TEA]},
        {"content_references": [{**TEA, "start_idx": 4, "end_idx": 23}, MILK]},
        {"citations": [{"start_ix": 4, "end_ix": 23, "metadata": TEA}]},
        {"content_references": [{"type": "grouped_webpages", "matched_text": cite("turn0search1"),
                                 "alt": "([All about tea](https://tea.example/green))"}]},
    ],
)  # fmt: skip
def test_resolve_citations__finds_the_page_of_a_mark(metadata: Json) -> None:
    text, _ = resolve(f"Tea {cite('turn0search1')}", **metadata)
    assert text == "Tea ([All about tea](https://tea.example/green))"


def test_resolve_citations__pages_without_marks_are_used_in_order() -> None:
    text, _ = resolve(f"A{cite('a')} B{cite('b')} A{cite('a')}", content_references=[TEA, MILK])
    tea, milk = "([All about tea](https://tea.example/green))", "([Milk](https://milk.example/))"
    assert text == f"A {tea} B {milk} A {tea}"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"Tea {cite('turn0search9')}.", "Tea."),
        (f"Tea{cite('turn0search9', 'turn1view0')}", "Tea"),
        ("Tea \ue200cite\ue202turn0search9", "Tea "),
        ("\ue203Tea\ue204 is\ue202 green\ue201", "Tea is green"),
        ("In \ue200entity\ue202[\"city\",\"Paris\",\"capital\"]\ue201 and", "In Paris and"),
        ("\ue200navlist\ue202News\ue202turn0news1\ue201Tea", "Tea"),
        ("Tea【4†source】 and 【3:0†source】【11†L1-L9】", "Tea and"),
    ],
)  # fmt: skip
def test_resolve_citations__marks_without_a_page_are_dropped(text: str, expected: str) -> None:
    assert resolve(text) == (expected, [])


def test_resolve_citations__other_text_of_users_is_kept() -> None:
    text = "My icon \ue200 and 【4†source】"
    assert resolve(text, role="user") == (text, [])


def test_resolve_citations__message_of_marks_only_has_no_text() -> None:
    assert resolve_citations([{"type": "text", "text": cite("turn0search1")}], {}, "user") == []


def old_citation(page: Json, start: int = -1, end: int = -1, **extra: Any) -> Json:
    metadata = {"type": "webpage", **page, "extra": extra}
    return {"start_ix": start, "end_ix": end, "metadata": metadata}


@pytest.mark.parametrize(
    "citations",
    [
        [old_citation(TEA, 9, 17), old_citation(MILK, 3, 9)],
        [old_citation(TEA, cited_message_idx=3, search_result_idx=0),
         old_citation(MILK, cited_message_idx=4, search_result_idx=None)],
        [old_citation(MILK), old_citation(TEA)],
    ],
)  # fmt: skip
def test_resolve_citations__old_marks(citations: list[Json]) -> None:
    old = "Tea【4†source】 or 【3:0†source】"
    if citations[0]["start_ix"] > 0:
        citations = [old_citation(MILK, 3, 13), old_citation(TEA, 17, 29)]
    text, sources = resolve(old, citations=citations)
    assert text == (
        "Tea ([Milk](https://milk.example/)) or ([All about tea](https://tea.example/green))"
    )
    assert sorted(sources) == [MILK["url"], TEA["url"]]


def test_resolve_citations__uploaded_files_are_named() -> None:
    mark = "\ue200filecite\ue202turn0file0\ue201"
    references = [{"type": "file", "matched_text": mark, "name": "budget.xlsx"}]
    assert resolve(f"So {mark}", content_references=references) == (
        "So (budget.xlsx)",
        ["budget.xlsx"],
    )
    file = {"metadata": {"type": "file", "name": "plan.pdf"}}
    assert resolve("So【8:2†plan.pdf】", citations=[file]) == ("So (plan.pdf)", ["plan.pdf"])


def test_resolve_citations__titles_and_addresses_are_escaped() -> None:
    page = {"title": "A [very]\n\\odd one", "url": "https://e.com/a (b)?q=<x>"}
    text, _ = resolve(cite("a"), content_references=[reference(cite("a"), page)])
    assert text == "([A \\[very\\] \\\\odd one](<https://e.com/a%20(b)?q=%3Cx%3E>))"
    evil = {"title": "x", "url": "javascript:alert(1)"}
    assert resolve(cite("a"), content_references=[reference(cite("a"), evil)]) == ("", [])


def test_resolve_citations__results_of_tools_keep_old_marks() -> None:
    listing = f"【0†All about tea†tea.example】 {cite('turn0search1')}"
    assert resolve(listing, role="tool") == ("【0†All about tea†tea.example】", [])


@pytest.mark.parametrize(
    "metadata",
    [
        {"content_references": [None, 1, [], {"matched_text": 5, "items": [1], "refs": [2]}]},
        {
            "citations": [
                {"start_ix": 1, "end_ix": [2]},
                {"start_ix": "x", "metadata": {"extra": 1}},
                {"metadata": [1]},
                "a",
            ]
        },
        {"content_references": {}, "citations": 5, "search_result_groups": [{"entries": [{}]}]},
    ],
)
def test_resolve_citations__odd_metadata_never_raises(metadata: Json) -> None:
    text, sources = resolve(f"Tea{cite('turn0search1')}【4†source】", **metadata)
    assert (text, sources) == ("Tea", [])


def test_resolve_citations__many_marks_take_linear_time() -> None:
    text = "\ue200cite\ue202" * 200_000 + "【4†" * 200_000 + cite("turn0search1") * 20_000
    assert "\ue200" not in resolve(text)[0]


@pytest.mark.django_db
def test_read__marks_are_in_no_text_search_or_export(tmp_path: Path) -> None:
    mark = cite("turn0search1")
    metadata = {"content_references": [reference(mark, TEA)]}
    answer = node("u1", "assistant", f"It is green{mark}.", metadata=metadata)
    record = conversation(u1=node("root", "user", "Tea?"), a1=answer)
    import_path(write_json(tmp_path / "conversations.json", [record]))
    stored = Message.objects.get(role="assistant")
    assert stored.text == "It is green ([All about tea](https://tea.example/green))."
    assert stored.content["parts"][1] == {"type": "source", "source": {"sourceType": "url", **TEA}}
    assert not lists.search_messages("turn0search1").exists()
    for format in (jsonl, markdown):
        written, _ = run_export(format)
        assert "\ue200" not in written and "turn0search1" not in written
        assert TEA["url"] in written and TEA["title"] in written
