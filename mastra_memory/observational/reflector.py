"""Ask the Reflector for a shorter log.

The calls take seconds: no transaction and no lock may be open. Nothing is stored here.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from mastra_memory import llm, signals
from mastra_memory.content import tokens
from mastra_memory.exceptions import DegenerateOutput, ProviderUnavailable
from mastra_memory.llm.summaries import UsageTotals
from mastra_memory.observational import (
    extractors,
    groups,
    hooks,
    observer,
    parsing,
    prompts,
)
from mastra_memory.observational import (
    log as log_text,
)
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.observational.parsing import ParsedAnswer
from mastra_memory.options import ContinuationHints

MAX_LEVEL = 4
LEVELS_PER_RUN = 3
"""How many levels above the first one are tried."""
DEFAULT_START_LEVEL, MANUAL_START_LEVEL = 1, 0
_MODEL_START_LEVELS = {"gemini-2.5-flash": 2}
"""Models that need stronger guidance from the start."""
MIN_TOKENS_FOR_RATIO = 2_000
MIN_RATIO = 0.02
"""A reflection of a long log below this share of it is taken for a refusal, not for a log."""
MIN_PROSE_RATIO = 0.1
"""The same for an answer with neither a block of observations nor a list."""
_NO_HINTS = ContinuationHints(current_task=False, suggested_response=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reflection:
    """A shorter log."""

    text: str
    """The log without groups; see `groups.restore_groups`."""
    current_task: str | None = None
    suggested_response: str | None = None
    extracted: Mapping[str, Any] = field(default_factory=dict)
    extraction_failures: Sequence[Mapping[str, str]] = ()
    level: int = 0
    """The level of compression that produced it."""
    tokens: int = 0
    """The tokens of `text`."""
    usage: UsageTotals = field(default_factory=UsageTotals)


def get_start_level(model: str) -> int:
    """Return the first level of compression for a model."""
    for name, level in _MODEL_START_LEVELS.items():
        if name in model:
            return level
    return DEFAULT_START_LEVEL


def reflect_log(
    log: str,
    *,
    settings: ObservationSettings,
    target_tokens: int,
    start_level: int | None = None,
    prompt: str = "",
    pinned: Sequence[str] = (),
    with_hints: bool = True,
    extracted: Mapping[str, Any] | None = None,
    thread_id: str | None = None,
    resource_id: str | None = None,
) -> Reflection:
    """Return a shorter log.

    The model is called with rising compression until the text is shorter than `target_tokens`, at
    most four times. The shortest usable text is returned, even if it misses the target.

    Args:
        log: The log, or its first lines.
        settings: The settings of the record.
        target_tokens: The size that the text should stay below.
        start_level: The first level, 0 to 4. By default it depends on the model.
        prompt: What a person asks for.
        pinned: Texts of items (`LogItem.text`) that the result must contain.
        with_hints: Ask for hints for the next answer.
        extracted: Stored values of extractors by slug.
        thread_id: The thread, for usage, signals and extractors.
        resource_id: Its resource.

    Raises:
        ProviderUnavailable: The model cannot be reached now.
        ProviderRefused: The model did not accept the request.
        DegenerateOutput: No answer was usable. The log must stay as it is.
    """
    text = hooks.transform_text(settings.hooks.before_reflection, groups.strip_group_tags(log))
    run = _ReflectorRun(
        log=text,
        settings=settings,
        target_tokens=target_tokens,
        guidance=prompt,
        pinned=tuple(item for item in pinned if _contains_item(text, item)),
        hints=settings.reflection.hints if with_hints else _NO_HINTS,
        values=extracted or {},
        thread_id=thread_id,
        resource_id=resource_id,
    )
    with hooks.signal_call(
        signals.reflection_started,
        signals.reflection_finished,
        thread_id=thread_id,
        resource_id=resource_id,
    ):
        return run.reflect(start_level)


@dataclass(frozen=True, slots=True)
class _Candidate:
    """A usable answer."""

    parsed: ParsedAnswer
    level: int
    tokens: int


@dataclass(slots=True, kw_only=True)
class _ReflectorRun:
    """The calls for one reflection."""

    log: str
    settings: ObservationSettings
    target_tokens: int
    guidance: str
    pinned: tuple[str, ...]
    hints: ContinuationHints
    values: Mapping[str, Any]
    thread_id: str | None
    resource_id: str | None
    usage: UsageTotals = field(default_factory=UsageTotals)

    def reflect(self, start_level: int | None) -> Reflection:
        instructions = self._build_instructions()
        model = observer.select_model(self.settings.reflection, instructions, self.log)
        level = get_start_level(model) if start_level is None else start_level
        candidates: list[_Candidate] = []
        for current in range(level, min(MAX_LEVEL, level + LEVELS_PER_RUN) + 1):
            try:
                candidate = self._try_level(instructions, model, current)
            except ProviderUnavailable:
                if not candidates:
                    raise
                break  # What an earlier level returned is better than to start again later.
            if candidate is not None:
                candidates.append(candidate)
                if candidate.tokens < self.target_tokens:
                    break
        if not candidates:
            raise DegenerateOutput("The Reflector returned no usable log at any level.")
        return self._build_reflection(min(candidates, key=lambda item: item.tokens), model)

    def _build_instructions(self) -> str:
        call = self.settings.reflection
        return prompts.build_reflector_instructions(
            hints=self.hints,
            extractors=extractors.list_inline(call.extractors),
            instruction=call.instruction,
            has_threads=self.settings.scope == "resource",
            has_pinned=bool(self.pinned),
        )

    def _try_level(self, instructions: str, model: str, level: int) -> _Candidate | None:
        """Call the model at one level, and return its answer if it is usable."""
        call = self.settings.reflection
        request = llm.TextRequest(
            purpose=llm.Purpose.REFLECTION,
            instructions=instructions,
            prompt=prompts.build_reflector_prompt(
                self.log,
                level=level,
                target_tokens=self.target_tokens,
                guidance=self.guidance,
                pinned=self.pinned,
                values=self.values,
            ),
            model=model,
            retries=observer.MAX_RETRIES,
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            target_tokens=self.target_tokens,
            level=level,
        )
        reply = llm.generate(request, thread_id=self.thread_id, resource_id=self.resource_id)
        self.usage = self.usage + reply
        if parsing.is_degenerate(reply.text):
            return None
        parsed = parsing.parse_answer(
            reply.text,
            hints=self.hints,
            slugs=[item.slug for item in extractors.list_inline(call.extractors)],
            keep_whole=True,
            keep_thread_tags=self.settings.scope == "resource",
        )
        return self._check(parsed, level)

    def _check(self, parsed: ParsedAnswer, level: int) -> _Candidate | None:
        """Return the answer if it can replace the log.

        An empty answer, a refusal and a text that is not shorter cannot.
        """
        if not parsed.observations:
            return None
        counter = tokens.get_token_counter()
        before, after = counter.text(self.log), counter.text(parsed.observations)
        if after >= before and after >= self.target_tokens:
            return None
        min_ratio = MIN_RATIO if before >= MIN_TOKENS_FOR_RATIO else 0.0
        if parsed.is_prose:
            min_ratio = MIN_PROSE_RATIO
        return _Candidate(parsed, level, after) if after >= before * min_ratio else None

    def _build_reflection(self, best: _Candidate, model: str) -> Reflection:
        call = self.settings.reflection
        text = hooks.transform_text(self.settings.hooks.after_reflection, best.parsed.observations)
        text = keep_pinned(text, self.log, self.pinned)
        extraction = extractors.run_extractors(
            call.extractors,
            inline_values=best.parsed.values,
            observations=text,
            material=self.log,
            model=model,
            thread_id=self.thread_id,
            resource_id=self.resource_id,
        )
        return Reflection(
            text=text,
            current_task=best.parsed.current_task,
            suggested_response=best.parsed.suggested_response,
            extracted=extraction.values,
            extraction_failures=tuple(extraction.failures),
            level=best.level,
            tokens=tokens.get_token_counter().text(text),
            usage=self.usage + extraction.usage,
        )


def _contains_item(log: str, text: str) -> bool:
    """Return whether an item of the log has this text."""
    return any(item.text == text for item in log_text.get_items(log))


def keep_pinned(reflection: str, log: str, pinned: Sequence[str]) -> str:
    """Return the reflection with each pinned item that it lost, copied from the log.

    A copied line goes to the end of its day if the reflection has that day, else to the start of
    the text under a heading of its own.

    Args:
        reflection: The text of the Reflector.
        log: The log that it read.
        pinned: Texts of items (`LogItem.text`).
    """
    present = {item.text for item in log_text.get_items(reflection)}
    for item in log_text.get_items(log):
        if item.text in pinned and item.text not in present:
            present.add(item.text)
            reflection = _insert_item(reflection, item)
    return reflection


def _insert_item(text: str, item: log_text.LogItem) -> str:
    line = item.raw.strip()
    if item.day is None:
        return f"{line}\n{text}"
    lines = text.split("\n")
    places = [n for n, other in enumerate(lines) if log_text.parse_heading(other) == item.day]
    if not places:
        return f"{log_text.format_heading(item.day)}\n{line}\n\n{text}"
    end = places[-1] + 1
    while end < len(lines) and re.match(r"[ \t]*[*-] ", lines[end]):
        end += 1
    return "\n".join([*lines[:end], line, *lines[end:]])
