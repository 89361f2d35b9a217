"""Groups of observations."""

import pytest

from mastra_memory.observational import groups
from tests.support.factories import a_message, make_thread, save

GROUP = """<observation-group id="4134b4934b7cd9d7" range="m1:m8">
Date: Jan 1, 2025
* 🔴 (10:00) A
</observation-group>"""
TEXT = "Date: Jan 1, 2025\n* 🔴 (10:00) A"


def test_wrap_in_group__with_id_and_range() -> None:
    assert groups.wrap_in_group(TEXT, "m1:m8", group_id="4134b4934b7cd9d7") == GROUP
    assert groups.wrap_in_group(" ", "m1:m8") == ""
    [group] = groups.parse_groups(groups.wrap_in_group(TEXT, "m1:m8", kind="reflection"))
    assert len(group.id) == 16 and group.kind == "reflection" and group.text == TEXT


def test_parse_groups__in_order_with_segments() -> None:
    log = f"{GROUP}\n\n" + groups.wrap_in_group("* B", "a:b,c:d%3A1", group_id="g2")
    first, second = groups.parse_groups(log)
    assert (first.id, first.text, first.segments) == ("4134b4934b7cd9d7", TEXT, [("m1", "m8")])
    assert second.segments == [("a", "b"), ("c", "d:1")]


@pytest.mark.parametrize(
    "log",
    [
        '<observation-group id="x" range="a:b">\n* never closed',
        '<observation-group id="x">\n* no range\n</observation-group>',
        '<observation-group range="a:b">\n* no id\n</observation-group>',
    ],
)
def test_parse_groups__malformed_tags_are_no_groups(log: str) -> None:
    assert groups.parse_groups(log) == []
    assert groups.strip_group_tags(log).strip().startswith("* n")
    assert groups.render_groups(log).strip().startswith("* n")


def test_parse_groups__unclosed_group_does_not_swallow_the_next() -> None:
    log = f'<observation-group id="x" range="a:b">\n* open\n{GROUP}'
    assert [group.id for group in groups.parse_groups(log)] == ["4134b4934b7cd9d7"]
    assert groups.strip_group_tags(log) == f"* open\n{TEXT}\n"


def test_render_groups__as_headings() -> None:
    assert groups.render_groups(f"* before\n{GROUP}\n* after") == (
        f"* before\n## Group `4134b4934b7cd9d7`\n_range: `m1:m8`_\n\n{TEXT}\n* after"
    )


@pytest.mark.parametrize(
    ("ranges", "combined"),
    [
        (["m1:m4", "m5:m9"], "m1:m9"),
        (["10:20", "3:5"], "3:20"),
        (["a:b,c:d", "c:d"], "a:d"),
        (["a:b", "x"], "a:b,x"),
        ([], ""),
    ],
)
def test_combine_ranges__covers_all(ranges: list[str], combined: str) -> None:
    assert groups.combine_ranges(ranges) == combined


SOURCES = "\n\n".join(
    groups.wrap_in_group(text, message_range, group_id=group_id)
    for text, message_range, group_id in (
        ("* A\n* B", "m1:m4", "g1"),
        ("* C", "m5:m9", "g2"),
    )
)


def test_restore_groups__text_without_sections_becomes_one_group() -> None:
    [group] = groups.parse_groups(groups.restore_groups("* A and C", SOURCES))
    assert (group.range, group.kind, group.text) == ("m1:m9", "reflection", "* A and C")
    assert group.id not in ("g1", "g2")


def test_restore_groups__sections_keep_their_ranges() -> None:
    text = "## Group `g2`\n_range: `m5:m9`_\n\n* C short\n\n## Group\n* B\n\n## Group `new`\n* Z"
    restored = groups.parse_groups(groups.restore_groups(text, SOURCES))
    assert [(group.id, group.range, group.text) for group in restored] == [
        ("g2", "m5:m9", "* C short"),
        ("derived-group-2", "m1:m4", "* B"),
        ("new", "m5:m9", "* Z"),  # no line in common: the last group stands at this position
    ]


def test_restore_groups__section_of_lines_from_two_groups() -> None:
    [group] = groups.parse_groups(groups.restore_groups("## Group `x`\n* B\n* C", SOURCES))
    assert group.range == "m1:m9"


def test_restore_groups__without_sources_nothing_changes() -> None:
    assert groups.restore_groups("## Group `x`\n* A", "* A") == "## Group `x`\n* A"
    assert groups.restore_groups(" ", SOURCES) == " "


@pytest.mark.django_db
def test_format_range__first_and_last_visible_message() -> None:
    thread = make_thread()
    blank = {"format": 2, "parts": [{"type": "data-chart", "data": {}}]}
    stored = save(
        [
            a_message(thread, "x", content=blank, at=0),
            a_message(thread, "m:1", at=1),
            a_message(thread, "m2", at=2),
            a_message(thread, "y", content=blank, at=3),
        ]
    )
    assert groups.format_range(stored) == "m%3A1:m2"
    assert groups.parse_range("m%3A1:m2") == [("m:1", "m2")]
    assert groups.format_range([stored[0], stored[3]]) == "x:y"
    assert groups.format_range([]) == ""
