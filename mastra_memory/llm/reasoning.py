"""Remove the reasoning that some models write into their answers."""

import re

_BLOCK = re.compile(r"<(think|thinking|reasoning)\b[^>]*>.*?(?:</\1>|\Z)", re.I | re.S)
# Some servers remove the opening tag. Everything up to the closing tag is then reasoning.
_WITHOUT_OPENING_TAG = re.compile(r"^.*</(?:think|thinking|reasoning)>", re.I | re.S)


def strip_reasoning(answer: str) -> str:
    """Return the answer without `<think>`, `<thinking>` and `<reasoning>` blocks."""
    return _WITHOUT_OPENING_TAG.sub("", _BLOCK.sub("", answer)).strip()
