"""Expressions of time in queries, such as `last week`."""

from datetime import UTC, date, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from mastra_memory.search.times import expressions, words

NOW = datetime(2024, 5, 15, 10, tzinfo=UTC)
"""A Wednesday."""
LANGUAGES = tuple(words.LANGUAGES)


def find(
    text: str,
    *,
    now: datetime = NOW,
    zone: str = "Europe/Berlin",
    languages: tuple[str, ...] = ("en", "de", "fr", "es"),
) -> list[tuple[str, str, str]]:
    """The words, the first and the last day of each range."""
    ranges = expressions.find_time_ranges(text, now=now, languages=languages, zone=ZoneInfo(zone))
    return [
        (
            item.text,
            item.start.astimezone(ZoneInfo(zone)).date().isoformat(),
            (item.end - timedelta(seconds=1)).astimezone(ZoneInfo(zone)).date().isoformat(),
        )
        for item in ranges
    ]


@pytest.mark.parametrize(
    ("query", "first", "last"),
    [
        ("What did I say last week?", "2024-05-06", "2024-05-12"),
        ("this week's plans", "2024-05-13", "2024-05-19"),
        ("what happened in May 2023", "2023-05-01", "2023-05-31"),
        ("the trip in May", "2024-05-01", "2024-05-31"),
        ("the trip last May", "2023-05-01", "2023-05-31"),
        ("in October of 2022", "2022-10-01", "2022-10-31"),
        ("early in June", "2023-06-01", "2023-06-30"),
        ("on the 3rd", "2024-05-03", "2024-05-03"),
        ("What did we decide on the 3rd about prices", "2024-05-03", "2024-05-03"),
        ("what did Ann say on the 20th?", "2024-04-20", "2024-04-20"),
        ("on the 3rd of last month", "2024-04-03", "2024-04-03"),
        ("on the 31st", "2024-03-31", "2024-03-31"),
        ("yesterday", "2024-05-14", "2024-05-14"),
        ("the day before yesterday", "2024-05-13", "2024-05-13"),
        ("two weeks ago", "2024-04-29", "2024-05-05"),
        ("3 days ago", "2024-05-12", "2024-05-12"),
        ("a month ago", "2024-04-01", "2024-04-30"),
        ("a few days ago", "2024-05-10", "2024-05-14"),
        ("in the last two weeks", "2024-05-01", "2024-05-15"),
        ("last weekend", "2024-05-11", "2024-05-12"),
        ("last year", "2023-01-01", "2023-12-31"),
        ("last month", "2024-04-01", "2024-04-30"),
        ("on Friday", "2024-05-10", "2024-05-10"),
        ("last Wednesday", "2024-05-08", "2024-05-08"),
        ("on May 3, 2023", "2023-05-03", "2023-05-03"),
        ("on 8th December, 2023", "2023-12-08", "2023-12-08"),
        ("December 1,2023", "2023-12-01", "2023-12-01"),
        ("on Aug 15th", "2023-08-15", "2023-08-15"),
        ("goals for 2023-05", "2023-05-01", "2023-05-31"),
        ("on 2023-05-03", "2023-05-03", "2023-05-03"),
        ("am 03.05.2023", "2023-05-03", "2023-05-03"),
        ("on 13/5/2023", "2023-05-13", "2023-05-13"),
        ("what did I do in 2023", "2023-01-01", "2023-12-31"),
        ("since March", "2024-03-01", "2024-05-15"),
        ("from March to May", "2024-03-01", "2024-05-31"),
        ("between August 11 and August 15 2023", "2023-08-11", "2023-08-15"),
        ("between 2023-05-01 and 2023-05-09", "2023-05-01", "2023-05-09"),
        ("since 2024-05-01", "2024-05-01", "2024-05-15"),
        ("du 1er au 9 mai 2023", "2023-05-01", "2023-05-09"),
        ("on August 11-15, 2023", "2023-08-11", "2023-08-15"),
        ("the week before August 3, 2023", "2023-07-27", "2023-08-03"),
        ("on the Monday before July 24, 2023", "2023-07-17", "2023-07-24"),
        ("Was haben wir gestern besprochen?", "2024-05-14", "2024-05-14"),
        ("in der letzten Woche", "2024-05-06", "2024-05-12"),
        ("vor zwei Wochen", "2024-04-29", "2024-05-05"),
        ("vor einem Monat", "2024-04-01", "2024-04-30"),
        ("am 3. Mai", "2024-05-03", "2024-05-03"),
        ("am 3.", "2024-05-03", "2024-05-03"),
        ("im Mai 2023", "2023-05-01", "2023-05-31"),
        ("letzten Freitag", "2024-05-10", "2024-05-10"),
        ("seit März", "2024-03-01", "2024-05-15"),
        ("il y a deux semaines", "2024-04-29", "2024-05-05"),
        ("qu'avons-nous dit hier", "2024-05-14", "2024-05-14"),
        ("hier", "2024-05-14", "2024-05-14"),
        ("avant-hier", "2024-05-13", "2024-05-13"),
        ("aujourd’hui", "2024-05-15", "2024-05-15"),
        ("la semaine dernière", "2024-05-06", "2024-05-12"),
        ("vendredi dernier", "2024-05-10", "2024-05-10"),
        ("en mai 2023", "2023-05-01", "2023-05-31"),
        ("le 3 mai", "2024-05-03", "2024-05-03"),
        ("les deux dernières semaines", "2024-05-01", "2024-05-15"),
        ("hace dos semanas", "2024-04-29", "2024-05-05"),
        ("la semana pasada", "2024-05-06", "2024-05-12"),
        ("el 3 de mayo de 2023", "2023-05-03", "2023-05-03"),
    ],
)
def test_find_time_ranges__finds(query: str, first: str, last: str) -> None:
    assert [days for _, *days in find(query)] == [[first, last]]


@pytest.mark.parametrize(
    "query",
    [
        "",
        "may I ask you something",
        "how may 5 people march",
        "two weeks",
        "a trip of 10 days",
        "an 18th birthday, how long ago",
        "on the 3rd floor",
        "Friday deals",
        "order 2023",
        "in 10.0.2024.1 and 1-1-1-1",
        "February 30 and 31.02.2023",
        "tomorrow, next week and May 2099",
        "Was ist hier passiert?",
        "5 out of 10 set",
        "the day after the last one",
    ],
)
def test_find_time_ranges__finds_no_time_in(query: str) -> None:
    assert find(query) == [] == find(query, languages=LANGUAGES)


@pytest.mark.parametrize(
    ("language", "queries"),
    [
        ("it", ["la settimana scorsa", "una settimana fa"]),
        ("pt", ["semana passada", "há uma semana", "uma semana atrás"]),
        ("nl", ["vorige week", "een week geleden"]),
    ],
)
def test_find_time_ranges__has_more_languages(language: str, queries: list[str]) -> None:
    for query in queries:
        assert [days for _, *days in find(query, languages=(language,))] == [
            ["2024-05-06", "2024-05-12"]
        ]
        assert find(query) == []


@pytest.mark.parametrize("code", LANGUAGES)
def test_find_time_ranges__months_and_weekdays_of_every_language(code: str) -> None:
    from django.utils import dates, translation

    with translation.override(code):
        months = [str(name) for name in dates.MONTHS.values()]
    found = [find(f"{name} 2023", languages=(code,)) for name in months]
    assert [ranges[0][1] for ranges in found] == [
        date(2023, month, 1).isoformat() for month in range(1, 13)
    ]


def test_find_time_ranges__reports_words_in_order() -> None:
    assert find("what changed since yesterday in my plans of May 2023") == [
        ("yesterday", "2024-05-14", "2024-05-15"),
        ("May 2023", "2023-05-01", "2023-05-31"),
    ]


def test_find_time_ranges__days_start_in_the_zone() -> None:
    late = datetime(2024, 5, 15, 23, tzinfo=UTC)
    assert find("today", now=late)[0][1] == "2024-05-16"
    assert find("today", now=late, zone="America/New_York")[0][1] == "2024-05-15"
    (found,) = expressions.find_time_ranges(
        "yesterday", now=NOW, languages=("en",), zone=ZoneInfo("Asia/Tokyo")
    )
    assert found.start == datetime(2024, 5, 13, 15, tzinfo=UTC)
    assert found.end == datetime(2024, 5, 14, 15, tzinfo=UTC)


def test_find_time_ranges__slashes_depend_on_the_first_language() -> None:
    assert find("5/3/2023")[0][1] == "2023-05-03"
    assert find("5/3/2023", languages=("fr", "en"))[0][1] == "2023-03-05"


@pytest.mark.parametrize(
    "query",
    [
        "last week " * 5_000,
        "3 May 2023 " * 5_000,
        "on the 3rd " * 5_000,
        "between " * 5_000,
        "9" * 50_000,
        "1-1-" * 9_000,
        " " * 50_000 + "May",
        "il y a " * 5_000,
        "999 years ago " * 100,
    ],
)
def test_find_time_ranges__long_queries_have_few_ranges(query: str) -> None:
    assert len(find(query, languages=LANGUAGES)) <= expressions.MAX_RANGES


def test_find_time_ranges__ignores_the_rest_of_a_long_query() -> None:
    assert find("x " * expressions.MAX_CHARACTERS + "yesterday") == []
