"""Which regular expressions of callers are refused."""

import pytest
from django.db import OperationalError

from mastra_memory.db import sql
from mastra_memory.db.statement_timeout import limit_statements
from mastra_memory.exceptions import InvalidInput
from mastra_memory.search import metadata_filters, regex

PLAIN = [
    "^tr.*l$",
    r"\d{4}-\d{2}-\d{2}",
    "(?i)invoice",
    "(?:a|b)+c?",
    r"\yfoo\y",
    r"\(?=x",
    "[]a(?]+",
    "[^]]{1,100}",
    "[[:alpha:]]{2,}",
    r"[\]x]*",
    r"a{,3}",
    r"\?{3}",
]
REFUSED = {
    "a(?=.*c)": "look ahead",
    "(?!.*c)": "look ahead",
    "(?<=c)a": "look ahead",
    "(?<!c)a": "look ahead",
    "[(?=]a": "look ahead",
    r"\\(?=.*c)": "(?",
    r"(a)\1": "back-references",
    r"(a)(b)[x]\2": "back-references",
    "***=a": "***",
    "***:(?x) a": "***",
    "(?x) a": "(?",
    "a(?i)b": "(?",
    "(?#remark)a": "(?",
    "a" * 201: "200 characters",
    "(a*b*c*d*){60}": "too complex",
    r"(\y.?){100}": "too complex",
    "((a?){50}){50}": "too complex",
    "(" * 60 + "a" + ")+" * 60: "too complex",
}
SLOWEST = [
    "(a*)*b",
    "(a|aa)+$",
    ".*.*.*x",
    "(x+x+)+y",
    "(a*b*c*d*){21}",
    "(.?){127}",
    r"\y" * 8,
    r"\y.?" * 7,
    ".*a.{250}c",
    "(a?b?){63}c",
    "(a|)" * 50,
    "[ab]*a[ab]{250}x",
    "(a{0,30}b{0,30}){2}",
]


@pytest.mark.parametrize("pattern", PLAIN)
def test_find_problem__lets_plain_expressions_pass(db: None, pattern: str) -> None:
    assert regex.find_problem(pattern) == ""
    assert sql.fetch_one("SELECT '' ~ %s", [pattern]) is not None


@pytest.mark.parametrize("pattern", REFUSED)
def test_find_problem__says_why(pattern: str) -> None:
    assert REFUSED[pattern] in regex.find_problem(pattern)
    with pytest.raises(InvalidInput) as raised:
        metadata_filters.build_condition({"k": {"$regex": pattern}})
    assert raised.value.issues[0].field == "filter.k.$regex"


@pytest.mark.parametrize("pattern", SLOWEST)
def test_expressions_that_pass__are_fast(db: None, pattern: str) -> None:
    """The slowest known expressions take 0.1 s on a quiet machine; a bad one takes hours."""
    assert regex.find_problem(pattern) == ""
    for text in ("a" * regex.MAX_TEXT_CHARACTERS, "ab" * (regex.MAX_TEXT_CHARACTERS // 2)):
        with limit_statements(60):
            sql.fetch_one("SELECT %s ~ %s", [text, pattern])


def test_look_around__is_why(transactional_db: None) -> None:
    with pytest.raises(OperationalError), limit_statements(0.5):
        sql.fetch_one("SELECT repeat('a', 80000) ~ %s", ["a(?=.*c)"])


def test_filter__has_a_limit_on_the_number_of_expressions(db: None) -> None:
    allowed = [{f"k{n}": {"$regex": "a"}} for n in range(regex.MAX_PATTERNS)]
    metadata_filters.build_condition({"$and": allowed})
    with pytest.raises(InvalidInput, match="exceeds the limit of 10 regular expressions"):
        metadata_filters.build_condition({"$and": [*allowed, {"k": {"$regex": "a"}}]})


def test_filter__matches_the_beginning_of_a_text(db: None) -> None:
    where = metadata_filters.build_condition({"k": {"$regex": "x"}})
    for position, expected in (
        (regex.MAX_TEXT_CHARACTERS, True),
        (regex.MAX_TEXT_CHARACTERS + 1, False),
    ):
        statement = f"""SELECT {where} FROM
            (SELECT jsonb_build_object('k', repeat('a', {position - 1}) || 'x') AS metadata) t"""
        assert sql.fetch_one(statement, where.params) == (expected,)
