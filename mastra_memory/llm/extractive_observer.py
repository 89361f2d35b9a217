"""`local/extractive` as Observer: keep the sentences of a transcript that say most.

It is simple. It understands nothing: it ranks sentences by rare words, names, numbers, dates and
statements in the first person, keeps the speakers' own words, and adds the calendar date to
relative dates. It draws no conclusions, does not notice that a statement replaces an earlier one,
and knows hardly any grammar but English. Other languages lose less text, and so more tokens.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import date

from mastra_memory.content.truncation import truncate_at_word
from mastra_memory.llm import relative_dates, sentences, transcript_reader
from mastra_memory.llm.sentences import Informativeness, RepetitionFilter
from mastra_memory.llm.transcript_reader import Entry

MIN_SCORE = 2.5
"""Sentences with a lower score are left out."""
HIGH_SCORE = 3.0
"""Statements in the first person with at least this score are of high importance."""
MAX_ITEMS_PER_EXCHANGE = 5
MAX_SENTENCES_PER_ITEM = 4
MAX_ITEM_CHARS = 400
MAX_TOOL_CHARS = 160
MAX_CALLS_PER_EXCHANGE = 8
"""How many outcomes of tools are listed; the remaining calls are only counted."""
HIGH, MEDIUM, LOW, DONE = "🔴", "🟡", "🟢", "✅"

_PREVIOUS = re.compile(
    r"^<previous-observations>\n(.*?)\n?^</previous-observations>", re.DOTALL | re.MULTILINE
)
_MESSAGES = re.compile(r"^<new-messages>\n(.*)^</new-messages>", re.DOTALL | re.MULTILINE)
_THREAD = re.compile(r'^<thread id="([^"\n]*)">\n(.*?)^</thread>', re.DOTALL | re.MULTILINE)
_ITEM_TEXT = re.compile(r"^\s*\*\s*(?:->|[🔴🟡🟢✅])*\s*(?:\(\d\d:\d\d\))?\s*", re.MULTILINE)
_ATTACHMENT = re.compile(r"\[(?:Image|File) #\d+: (.+)\]")
_FINISHED = re.compile(
    r"\b(?:(?:that|it) (?:works|worked)|works now|(?:is|are) (?:fixed|done|finished|solved)"
    r"|(?:i|we)(?:'ve| have)? (?:just )?(?:finished|completed|submitted|fixed|solved))\b",
    re.IGNORECASE,
)


@dataclass(slots=True)
class Item:
    """An observation before it is written."""

    mark: str
    day: date | None
    clock: str
    text: str
    nested: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        clock = f"({self.clock}) " if self.clock else ""
        return "\n".join([f"* {self.mark} {clock}{self.text}", *self.nested])


def observe(instructions: str, prompt: str) -> str:
    """Return the answer of an Observer for a prompt of `observational.prompts`."""
    previous = "\n".join(_PREVIOUS.findall(prompt))
    transcript = _PREVIOUS.sub("", prompt)
    if match := _MESSAGES.search(transcript):
        transcript = match[1]
    threads = _THREAD.findall(transcript)
    if threads:
        body = "\n".join(
            f'<thread id="{thread_id}">\n{_write_log(text, previous)}\n</thread>'
            for thread_id, text in threads
        )
        return _wrap("observations", body)
    entries = transcript_reader.read_entries(transcript)
    sections = [_wrap("observations", _write_items(list_items(entries, previous)))]
    if "<current-task>" in instructions and (task := find_open_request(entries)):
        sections.append(_wrap("current-task", task))
    if "<thread-title>" in instructions and (title := _find_title(entries)):
        sections.append(_wrap("thread-title", title))
    return "\n".join(sections)


def _wrap(tag: str, text: str) -> str:
    return f"<{tag}>\n{text}\n</{tag}>"


def _write_log(transcript: str, previous: str) -> str:
    return _write_items(list_items(transcript_reader.read_entries(transcript), previous))


def _write_items(items: list[Item]) -> str:
    """Return the lines of the log, with a heading for each day."""
    lines: list[str] = []
    day: date | None = None
    for item in items:
        if item.day is not None and item.day != day:
            day = item.day
            lines.append(f"Date: {relative_dates.format_day(day)}")
        lines.append(str(item))
    return "\n".join(lines)


def list_items(entries: list[Entry], previous: str = "") -> list[Item]:
    """Return the observations of a transcript in its order.

    Args:
        entries: The transcript.
        previous: Earlier observations, which are not repeated.
    """
    names = {entry.speaker for entry in entries if entry.speaker}
    split = {
        id(entry): [
            stripped
            for sentence in sentences.split_sentences(entry.text)
            if (stripped := sentences.strip_opener(sentence, names))
        ]
        for entry in entries
        if entry.is_speech
    }
    every_sentence = (sentence for group in split.values() for sentence in group)
    ranking = Informativeness(every_sentence, names)
    seen = RepetitionFilter(line for line in _ITEM_TEXT.sub("", previous).split("\n") if line)
    items: list[Item] = []
    for exchange in transcript_reader.group_exchanges(entries):
        observed: list[Item] = []
        tools = _observe_tools(exchange)
        for entry in exchange:
            if entry.is_speech:
                observed += _observe_speech(entry, split[id(entry)], ranking, seen)
            elif match := _ATTACHMENT.fullmatch(entry.text):
                text = f"User attached {_cut(match[1], MAX_TOOL_CHARS)}"
                observed.append(Item(MEDIUM, entry.day, entry.clock, text))
            elif entry.label.startswith("Tool "):
                observed += tools  # yields its item at the first entry of a tool
        items += observed[:MAX_ITEMS_PER_EXCHANGE]
    return items or list(_observe_small_talk(entries, split, ranking))


def _observe_speech(
    entry: Entry, candidates: list[str], ranking: Informativeness, seen: RepetitionFilter
) -> Iterator[Item]:
    """Yield the best sentences of a message, several of them in one item."""
    scores = {index: ranking.score(sentence) for index, sentence in enumerate(candidates)}
    best = sorted(
        (index for index, score in scores.items() if score >= MIN_SCORE),
        key=lambda index: scores[index],
        reverse=True,
    )
    chosen = [
        index
        for index in sorted(best[: MAX_SENTENCES_PER_ITEM * MAX_ITEMS_PER_EXCHANGE])
        if seen.add(candidates[index])
    ]
    for start in range(0, len(chosen), MAX_SENTENCES_PER_ITEM):
        group = chosen[start : start + MAX_SENTENCES_PER_ITEM]
        text = _cut(" ".join(candidates[index] for index in group), MAX_ITEM_CHARS)
        mark = _choose_mark(entry, text, max(scores[index] for index in group))
        notes = "".join(
            f" ({note})" for note in relative_dates.find_date_notes(text, entry.day or date.min)
        )
        yield Item(
            mark, entry.day, entry.clock, f"{entry.author}: {text}{notes if entry.day else ''}"
        )


def _observe_small_talk(
    entries: list[Entry], split: dict[int, list[str]], ranking: Informativeness
) -> Iterator[Item]:
    """Yield the best sentence of a transcript that says nothing, so that it counts as observed."""
    candidates = [(entry, text) for entry in entries for text in split.get(id(entry), ())]
    if candidates:
        entry, text = max(candidates, key=lambda candidate: ranking.score(candidate[1]))
        yield Item(LOW, entry.day, entry.clock, f"{entry.author}: {_cut(text, MAX_ITEM_CHARS)}")


def _choose_mark(entry: Entry, text: str, score: float) -> str:
    is_person = entry.label == "User" or bool(entry.speaker)
    if is_person and _FINISHED.search(text):
        return DONE
    if is_person and score >= HIGH_SCORE and not sentences.is_question(text):
        return HIGH
    if is_person and sentences.is_request(text):
        return HIGH
    return MEDIUM if score >= HIGH_SCORE else LOW


def _observe_tools(exchange: list[Entry]) -> Iterator[Item]:
    """Yield one item for all calls of an exchange, with their outcomes below it."""
    calls = [entry for entry in exchange if entry.label.startswith("Tool Call ")]
    outcomes = [
        entry
        for entry in exchange
        if entry.label.startswith(("Tool Result ", "Tool Error ", "Tool Denied "))
    ]
    if not calls and not outcomes:
        return
    first = (calls or outcomes)[0]
    names = list(dict.fromkeys(entry.label.split(" ", 2)[2] for entry in calls or outcomes))
    text = f"Assistant called {', '.join(names[:MAX_CALLS_PER_EXCHANGE])}"
    if len(calls) > 1:
        text += f" ({len(calls)} calls)"
    elif calls and calls[0].text and calls[0].text != "(no arguments)":
        text += f": {_squeeze(calls[0].text)}"
    nested = [_describe_outcome(entry, calls) for entry in outcomes[:MAX_CALLS_PER_EXCHANGE]]
    yield Item(MEDIUM, first.day, first.clock, text, nested)


def _describe_outcome(outcome: Entry, calls: list[Entry]) -> str:
    _, kind, name = outcome.label.split(" ", 2)
    result = {"Result": "", "Error": "failed: ", "Denied": "denied: "}[kind]
    prefix = f"{name}: " if len(calls) > 1 else ""
    return f"  * -> {prefix}{result}{_squeeze(outcome.text)}"


def _squeeze(text: str) -> str:
    """Return a JSON value or an outline on one short line."""
    return _cut(re.sub(r"[\s{}\"]+", " ", text[: 10 * MAX_TOOL_CHARS]).strip(), MAX_TOOL_CHARS)


def _cut(text: str, limit: int) -> str:
    return text if len(text) <= limit else truncate_at_word(text, limit)


def find_open_request(entries: list[Entry]) -> str:
    """Return the last request of the user that has no answer yet, or an empty text."""
    for entry in reversed(entries):
        if entry.label == "Assistant":
            return ""
        if entry.label == "User" and not entry.speaker:
            requests = [
                sentence
                for sentence in sentences.split_sentences(entry.text)
                if sentences.is_request(sentence) or sentences.is_question(sentence)
            ]
            if requests:
                return _cut(requests[-1], MAX_ITEM_CHARS)
    return ""


def _find_title(entries: list[Entry]) -> str:
    text = next((entry.text for entry in entries if entry.label == "User" and entry.text), "")
    first = next(iter(sentences.split_sentences(text)), "")
    return _cut(first, 60).rstrip(" .。,;:")
