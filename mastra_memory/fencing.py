"""Stored text set between tags of ours, so that it can neither close nor counterfeit them."""

import re

TAGS = (
    "working_memory_data",
    "working_memory_template",
    "working_memory",
    "remembered_from_other_conversation",
    "observations",
    "observation-group",
    "current-task",
    "suggested-response",
    "other-conversation",
    "system-reminder",
    "conversation",
)
"""Every tag that we, or the models we prompt, give a meaning to."""

# A tag of ours however it is dressed up: blanks, slash, attributes, capitals, wide brackets.
_OURS = re.compile(
    rf"[<\uff1c\ufe64](?=[\s\u200b-\u200f\u2060\ufeff]*[/\uff0f\u2215]?"
    rf"[\s\u200b-\u200f\u2060\ufeff]*(?:{'|'.join(TAGS)})\b)",
    re.IGNORECASE,
)

_BREAKS = re.compile("\r\n|[\n\r\v\f\x1c-\x1e\x85\u2028\u2029]")
"""Everything that somebody may take for the end of a line."""


def defused(text: str) -> str:
    """The text with `&lt;` in place of the bracket of each tag that is one of ours."""
    return _OURS.sub("&lt;", text) if "<" in text or not text.isascii() else text


def fenced(tag: str, text: str) -> str:
    """The text between an opening and a closing tag, each on a line of its own."""
    return f"<{tag}>\n{defused(text)}\n</{tag}>"


def indented(text: str, by: str = "  ") -> str:
    """The text on lines that, after the first, all start with blanks.

    In a list of lines each starting with a time or a role, no line of a text can pass for one.
    """
    return _BREAKS.sub(f"\n{by}", defused(text))
