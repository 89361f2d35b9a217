"""Find out which messages a context contains, as they are or as an observation made of them."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import mean, median, quantiles
from time import perf_counter
from typing import Any

from benchmarks.context.logs import ObservedThread
from benchmarks.recall.locomo import Question
from mastra_memory.content import message_text
from mastra_memory.context import Context
from mastra_memory.memory import Memory
from mastra_memory.observational import log as observation_log
from mastra_memory.types import StoredMessage

BUDGETS = (2_000, 4_000, 8_000)
MAX_MESSAGES = 1_000
_RECALL = {"scope": "thread", "topK": 400, "messageRange": 0, "mode": "hybrid"}
_OBSERVATIONS = {"scope": "thread"}
VARIANTS: Mapping[str, Mapping[str, Any]] = {
    "last messages": {},
    "with recall": {"semanticRecall": _RECALL},
    "with observations": {"observationalMemory": _OBSERVATIONS},
    "with both": {"semanticRecall": _RECALL, "observationalMemory": _OBSERVATIONS},
}
MIN_SHARED_WORDS = 0.8
"""An observation is made of a message if this share of its words is in the message."""

_WORD = re.compile(r"\w+")
_RELATIVE_DATE = re.compile(r"^(Date: [A-Z][a-z]{2} \d{1,2}, \d{4}) \(.*\)$", re.MULTILINE)
_NOTE = re.compile(r"\((?:meaning|estimated) [^()]*\)")
_FUNCTION_WORDS = frozenset(
    "a an and are as at be by for from had has have he her him his i in is it its my no of on or"
    " she that the their them they to was were with yes you".split()
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a context has of the evidence for one question."""

    share: float
    """The share of the evidence turns."""
    tokens: int
    milliseconds: float


def measure(threads: Sequence[ObservedThread], step: int) -> dict[str, dict[str, float]]:
    """Return the results of each variant and budget, for every `step`-th question."""
    rows: dict[str, dict[str, float]] = {}
    for budget in BUDGETS:
        for name, options in VARIANTS.items():
            outcomes = [
                outcome for thread in threads for outcome in _ask(thread, options, budget, step)
            ]
            rows[f"{budget}, {name}"] = _summarize(outcomes)
    return rows


def _summarize(outcomes: Sequence[Outcome]) -> dict[str, float]:
    milliseconds = [outcome.milliseconds for outcome in outcomes]
    return {
        "all": mean(outcome.share == 1 for outcome in outcomes),
        "share": mean(outcome.share for outcome in outcomes),
        "any": mean(outcome.share > 0 for outcome in outcomes),
        "tokens": mean(outcome.tokens for outcome in outcomes),
        "p50_ms": median(milliseconds),
        "p95_ms": quantiles(milliseconds, n=20)[-1],
    }


def _ask(
    thread: ObservedThread, options: Mapping[str, Any], budget: int, step: int
) -> list[Outcome]:
    memory = Memory(
        options={
            "lastMessages": MAX_MESSAGES,
            "maxContextTokens": budget,
            "readOnly": True,
            "semanticRecall": False,
            "observationalMemory": False,
            **options,
        }
    )
    outcomes = []
    for question in thread.conversation.questions[::step]:
        started = perf_counter()
        context = memory.context(thread.conversation.resource_id, new_messages=question.text)
        elapsed = (perf_counter() - started) * 1000
        if context.tokens > budget:
            raise AssertionError(f"A context has {context.tokens} tokens, more than {budget}")
        found = _list_contained(context, thread.messages)
        share = len(question.evidence & found) / len(question.evidence)
        outcomes.append(Outcome(share, context.tokens, elapsed))
    return outcomes


def _list_contained(context: Context, messages: Mapping[str, StoredMessage]) -> set[str]:
    """Return the ids of messages that the context has, or an observation made of them."""
    block = context.block("observations")
    observed = list_observed(block.text, messages) if block else {}
    return {message.id for message in context.messages} | observed.keys()


def list_observed(text: str, messages: Mapping[str, StoredMessage]) -> dict[str, set[str]]:
    """Return the messages that the observations of a text are made of, with their words."""
    by_minute: dict[tuple[Any, str], list[StoredMessage]] = {}
    for message in messages.values():
        moment = message.created_at
        by_minute.setdefault((moment.date(), f"{moment:%H:%M}"), []).append(message)
    observed: dict[str, set[str]] = {}
    for item in observation_log.get_items(_RELATIVE_DATE.sub(r"\1", text)):
        words = _list_words(_NOTE.sub("", item.text))
        for message in by_minute.get((item.day, item.time), ()):
            shared = words & _list_words(message_text.get_text(message.content))
            if words and len(shared) >= MIN_SHARED_WORDS * len(words):
                observed.setdefault(message.id, set()).update(shared)
    return observed


def _list_words(text: str) -> set[str]:
    return set(_WORD.findall(text.lower()))


def measure_log(threads: Sequence[ObservedThread]) -> dict[str, float]:
    """Return the size of the logs, and what is left in them of the evidence and the answers."""
    turns, kept, answer_words, kept_words = 0, 0, 0, 0
    for thread in threads:
        observed = list_observed(thread.log, thread.messages)
        for question in thread.conversation.questions:
            for message_id in question.evidence & thread.observed_ids:
                turns += 1
                kept += message_id in observed
                words = _list_answer_words(question, thread.messages[message_id])
                answer_words += len(words)
                kept_words += len(words & observed.get(message_id, set()))
    observed_tokens = sum(thread.observed_tokens for thread in threads)
    return {
        "observed_tokens": observed_tokens,
        "log_tokens": sum(thread.log_tokens for thread in threads),
        "compression": sum(thread.log_tokens for thread in threads) / observed_tokens,
        "evidence_kept": kept / turns,
        "answer_words_kept": kept_words / answer_words,
    }


def _list_answer_words(question: Question, message: StoredMessage) -> set[str]:
    """Return the words of the answer that are in the message."""
    words = _list_words(question.answer) - _FUNCTION_WORDS
    return words & _list_words(message_text.get_text(message.content))
