"""`local/extractive`: answers without any model, by picking from the text it was given.

An honest fallback, so that everything runs without a key. It does not understand; it selects.
"""

import re
from collections import Counter
from collections.abc import Callable

from mastra_memory.exceptions import ProviderRefused
from mastra_memory.llm.text_models import Purpose, TextReply, TextRequest

MAX_TITLE_LENGTH = 60
MAX_SUMMARY_LINES = 12
_USER_LINE = re.compile(r"^User: (.+)$", re.MULTILINE)
_SPEAKER_LINE = re.compile(r"^(?:User|Assistant)(?: \([^)]*\))?: (.+)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w{4,}")


def generate(request: TextRequest) -> TextReply:
    """Pick an answer out of the prompt. Raises `ProviderRefused` for what cannot be picked."""
    pick = _GENERATORS.get(request.purpose)
    if pick is None or request.output is not None:
        raise ProviderRefused(
            f"local/extractive cannot do this ({request.purpose}); name a model in the settings"
        )
    return TextReply(text=pick(request.prompt))


def build_headline(text: str, limit: int = MAX_TITLE_LENGTH) -> str:
    """The first sentence of a text on one line, cut at a word where it is too long."""
    sentences = (part.strip() for part in _SENTENCE_END.split(text.strip()))
    first = re.sub(r"\s+", " ", next((part for part in sentences if part), ""))
    if len(first) <= limit:
        return first.rstrip(" .。,;:")
    cut = first[: limit - 1]
    head, blank, _ = cut.rpartition(" ")
    return (head if blank and len(head) > limit // 2 else cut).rstrip(" .,;:") + "…"


def _build_title(prompt: str) -> str:
    said = _USER_LINE.search(prompt)
    return build_headline(said[1] if said else prompt)


def _build_summary(prompt: str) -> str:
    """The sentences with the most words that matter to the whole, in their order."""
    sentences = [
        sentence.strip()
        for line in _SPEAKER_LINE.findall(prompt)
        for sentence in _SENTENCE_END.split(line)
        if len(sentence.strip()) > 3
    ]
    weights = Counter(word.lower() for sentence in sentences for word in _WORD.findall(sentence))

    def worth(index: int) -> float:
        words = {word.lower() for word in _WORD.findall(sentences[index])}
        return sum(weights[word] for word in words) / (len(words) + 3)

    best = sorted(sorted(range(len(sentences)), key=worth, reverse=True)[:MAX_SUMMARY_LINES])
    return "\n".join(f"* {sentences[index]}" for index in best)


_GENERATORS: dict[Purpose, Callable[[str], str]] = {
    Purpose.TITLE: _build_title,
    Purpose.SUMMARY: _build_summary,
}
