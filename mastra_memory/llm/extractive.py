"""`local/extractive`: answer with sentences of the prompt, without a model.

It writes titles, summaries, observations and reflections. This is the default, so that the app
runs without an API key.
"""

import re
from collections import Counter
from collections.abc import Callable

from mastra_memory.content.truncation import truncate_at_word
from mastra_memory.exceptions import ProviderRefused
from mastra_memory.llm import extractive_observer, extractive_reflector
from mastra_memory.llm.text_models import Purpose, TextReply, TextRequest

MAX_TITLE_LENGTH = 60
MAX_SUMMARY_LINES = 12
_USER_LINE = re.compile(r"^User: (.+)$", re.MULTILINE)
_SPEAKER_LINE = re.compile(r"^(?:User|Assistant)(?: \([^)]*\))?: (.+)$", re.MULTILINE)
_SENTENCE_END = re.compile(r"(?<=[.!?。！？])\s+|\n+")
_WORD = re.compile(r"\w{4,}")


def generate(request: TextRequest) -> TextReply:
    """Return sentences of the prompt. Raise `ProviderRefused` for other purposes."""
    generator = _GENERATORS.get(request.purpose)
    if generator is None or request.output is not None:
        raise ProviderRefused(
            f"local/extractive does not support {request.purpose}; set MODEL to a provider's model"
        )
    return TextReply(text=generator(request))


def build_headline(text: str, limit: int = MAX_TITLE_LENGTH) -> str:
    """Return the first sentence of a text on one line, cut between words if it is too long."""
    sentences = (part.strip() for part in _SENTENCE_END.split(text.strip()))
    first = re.sub(r"\s+", " ", next((part for part in sentences if part), ""))
    return first.rstrip(" .。,;:") if len(first) <= limit else truncate_at_word(first, limit)


def _build_title(request: TextRequest) -> str:
    prompt = request.prompt
    match = _USER_LINE.search(prompt)
    return build_headline(match[1] if match else prompt)


def _build_summary(request: TextRequest) -> str:
    """Return the sentences with the most frequent words of the whole text, in their order."""
    sentences = [
        sentence.strip()
        for line in _SPEAKER_LINE.findall(request.prompt)
        for sentence in _SENTENCE_END.split(line)
        if len(sentence.strip()) > 3
    ]
    weights = Counter(word.lower() for sentence in sentences for word in _WORD.findall(sentence))

    def score(index: int) -> float:
        # The mean weight of the words. The 3 in the divisor reduces the scores of short sentences.
        words = {word.lower() for word in _WORD.findall(sentences[index])}
        return sum(weights[word] for word in words) / (len(words) + 3)

    best = sorted(sorted(range(len(sentences)), key=score, reverse=True)[:MAX_SUMMARY_LINES])
    return "\n".join(f"* {sentences[index]}" for index in best)


def _observe(request: TextRequest) -> str:
    return extractive_observer.observe(request.instructions, request.prompt)


def _reflect(request: TextRequest) -> str:
    return extractive_reflector.reflect(
        request.prompt, level=request.level, target_tokens=request.target_tokens
    )


_GENERATORS: dict[Purpose, Callable[[TextRequest], str]] = {
    Purpose.TITLE: _build_title,
    Purpose.SUMMARY: _build_summary,
    Purpose.OBSERVATION: _observe,
    Purpose.REFLECTION: _reflect,
}
