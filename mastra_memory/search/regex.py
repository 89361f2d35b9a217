"""Check regular expressions of callers before PostgreSQL runs them.

PostgreSQL matches with automata in linear time, with two exceptions: a look-around starts again at
every character, and back-references need backtracking. Counted repetitions are unrolled, so they
make the automaton large and slow to build. With the limits below, the slowest expression that was
found took less than 0.3 s to build, and 0.1 s to match a text of `MAX_TEXT_CHARACTERS` characters.
"""

import re
from collections.abc import Iterator

MAX_PATTERN_CHARACTERS = 200
"""The longest expression."""
MAX_PATTERNS = 10
"""Expressions in one filter. PostgreSQL caches 32; more would be compiled for each row."""
MAX_SIZE = 256
"""Size of the unrolled expression, see `measure_size`."""
MAX_TEXT_CHARACTERS = 10_000
"""Characters of a stored text that are matched; the rest is ignored."""

_CONSTRAINTS = {"^": 3, "$": 3, r"\A": 3, r"\Z": 3} | dict.fromkeys(
    [r"\m", r"\M", r"\y", r"\Y"], 16
)
_BOUNDS = re.compile(r"\{(\d{1,4})(?:,(\d{0,4}))?\}")
_LOOK_AROUND = re.compile(r"(?<!\\)\(\?[=!<]")


def find_problem(pattern: str) -> str:
    """Return why the expression is refused, or an empty string if it is accepted."""
    if len(pattern) > MAX_PATTERN_CHARACTERS:
        return f"must have at most {MAX_PATTERN_CHARACTERS} characters"
    if pattern.startswith("***"):
        return "must not start with ***"
    pattern = pattern.removeprefix("(?i)")
    if _LOOK_AROUND.search(pattern):
        return "must not look ahead or behind: (?=, (?!, (?<= and (?<! are not supported"
    try:
        size = measure_size(pattern)
    except ValueError as error:
        return str(error)
    if size > MAX_SIZE:
        return f"is too complex: use fewer or smaller repetitions ({size} of {MAX_SIZE} steps)"
    return ""


def measure_size(pattern: str) -> int:
    r"""Return the size of the expression with its repetitions unrolled.

    An atom counts 1, `^` and `$` 3, a word boundary such as `\y` 32, since PostgreSQL builds a
    look-around for it; `*`, `+` and `?` double what they repeat, and `{m,n}` multiplies it by its
    larger number.

    Raises:
        ValueError: A group other than `(...)` and `(?:...)`, or a back-reference.
    """
    sizes = [0]  # of the groups that are open
    last = 0  # size of the atom that a quantifier would repeat
    for token in _split_tokens(pattern):
        if token == "(":
            sizes.append(0)
            last = 0
            continue
        if token == ")" and len(sizes) > 1:
            atom = sizes.pop() or 1
        elif (factor := _get_factor(token)) and last:
            atom = last * (factor - 1)
        else:
            atom = _CONSTRAINTS.get(token, 1)
        sizes[-1] += atom
        last = last + atom if _get_factor(token) else atom
    return sum(sizes)


def _get_factor(token: str) -> int:
    """Return the factor by which a quantifier multiplies the size; 0 for other tokens."""
    if token in "*+?":
        return 2
    bounds = _BOUNDS.fullmatch(token)
    return max(int(bounds[1]), int(bounds[2] or 0), 1) if bounds else 0


def _split_tokens(pattern: str) -> Iterator[str]:
    """Yield the tokens of an expression: `(`, `)`, quantifiers, brackets, escapes, characters."""
    index = 0
    while index < len(pattern):
        end = index + 1
        if pattern[index] == "\\":
            end = index + 2
            if pattern[index + 1 : end] in set("123456789"):
                raise ValueError("must not have back-references such as \\1")
        elif pattern[index] == "[":
            end = _find_end_of_bracket(pattern, index)
        elif bounds := _BOUNDS.match(pattern, index):
            end = bounds.end()
        elif pattern.startswith("(?", index):
            if not pattern.startswith("(?:", index):
                raise ValueError("must not contain (? except in (?: and in (?i) at the start")
            yield "("
            index += 3
            continue
        yield pattern[index:end]
        index = end


def _find_end_of_bracket(pattern: str, start: int) -> int:
    """Return the index after a bracket expression such as `[^]a-z[:digit:]]`."""
    index = start + 1
    index += pattern.startswith("^", index)
    index += pattern.startswith("]", index)
    while index < len(pattern) and pattern[index] != "]":
        if pattern[index] == "\\":
            index += 2
        elif pattern[index : index + 2] in ("[:", "[.", "[="):
            closing = pattern.find(pattern[index + 1] + "]", index + 2)
            index = closing + 2 if closing >= 0 else len(pattern)
        else:
            index += 1
    return index + 1
