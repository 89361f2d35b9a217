"""Ask the Observer for observations about messages.

The calls take seconds: no transaction and no lock may be open. Nothing is stored here.
"""

import re
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field, replace
from datetime import UTC, tzinfo
from typing import Any

from mastra_memory import llm, signals
from mastra_memory.content import tokens, transcript
from mastra_memory.exceptions import DegenerateOutput, InvalidInput, ProviderRefused
from mastra_memory.llm.summaries import UsageTotals
from mastra_memory.llm.titles import clean_title
from mastra_memory.observational import (
    attachments,
    extractors,
    groups,
    hooks,
    managed_memory,
    parsing,
    prompts,
)
from mastra_memory.observational import (
    log as log_text,
)
from mastra_memory.observational.config import CallSettings, ObservationSettings
from mastra_memory.observational.managed_memory import ManagedMemory
from mastra_memory.observational.parsing import ParsedAnswer
from mastra_memory.options import Extractor
from mastra_memory.types import StoredMessage

MAX_RETRIES = 1
"""Retries of a call when the provider is unavailable. Celery runs the whole cycle again later."""
MIN_TITLE_CHARS = 3
_THREAD_TAG = re.compile(r"<(?=/?thread\b)", re.IGNORECASE)
_HINT_KEYS = {
    parsing.CURRENT_TASK_TAG: "currentTask",
    parsing.RESPONSE_TAG: "suggestedResponse",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """What the Observer wrote about the messages of one thread."""

    text: str = ""
    """The observations. Empty means that nothing is worth remembering, or that the answer was not
    usable; nothing may be appended to the log then."""
    current_task: str | None = None
    suggested_response: str | None = None
    thread_title: str | None = None
    """A title with at least three characters, or None."""
    extracted: Mapping[str, Any] = field(default_factory=dict)
    """Values of extractors by slug; see `extractors.merge_values`."""
    extraction_failures: Sequence[Mapping[str, str]] = ()
    """Objects with `slug` and `error`."""
    working_memory: str | None = None
    """The new text of a working memory that the Observer keeps; see `managed_memory`."""
    usage: UsageTotals = field(default_factory=UsageTotals)


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadMessages:
    """The messages of one thread, and what is known about it."""

    thread_id: str
    messages: Sequence[StoredMessage]
    hints: Mapping[str, Any] = field(default_factory=dict)
    """The Observer's data in the metadata of the thread, with `currentTask` and
    `suggestedResponse`."""
    title: str = ""
    extracted: Mapping[str, Any] = field(default_factory=dict)
    """Stored values of extractors; see `extractors.read_values`."""


def observe_messages(
    messages: Sequence[StoredMessage],
    *,
    settings: ObservationSettings,
    log: str = "",
    buffered: Sequence[str] = (),
    hints: Mapping[str, Any] | None = None,
    title: str = "",
    extracted: Mapping[str, Any] | None = None,
    working_memory: ManagedMemory | None = None,
    timezone: tzinfo = UTC,
    thread_id: str | None = None,
    resource_id: str | None = None,
    is_buffering: bool = False,
) -> Observation:
    """Return observations about messages of one thread.

    Args:
        messages: The messages in the order of the conversation.
        settings: The settings of the record.
        log: The log so far.
        buffered: The texts of chunks that are not active yet.
        hints: The Observer's data in the metadata of the thread.
        title: The title of the thread.
        extracted: Stored values of extractors by slug.
        working_memory: The working memory that the Observer keeps, if it does.
        timezone: The time zone of the days and times in the transcript.
        thread_id: The thread, for usage, signals and extractors.
        resource_id: Its resource.
        is_buffering: Whether the observations are made in advance.

    Raises:
        ProviderUnavailable: The model cannot be reached now.
        ProviderRefused: The model did not accept the request.
        DegenerateOutput: The model answered nonsense twice.
    """
    call = _ObserverCall(
        settings=settings,
        log=log,
        buffered=buffered,
        working_memory=working_memory,
        timezone=timezone,
        resource_id=resource_id,
        is_buffering=is_buffering,
    )
    thread = ThreadMessages(
        thread_id=thread_id or "",
        messages=messages,
        hints=hints or {},
        title=title,
        extracted=extracted or {},
    )
    return call.observe_thread(thread)


def observe_threads(
    threads: Sequence[ThreadMessages],
    *,
    settings: ObservationSettings,
    log: str = "",
    working_memory: ManagedMemory | None = None,
    timezone: tzinfo = UTC,
    resource_id: str | None = None,
) -> dict[str, Observation]:
    """Return observations about a batch of threads of one resource, by thread.

    All threads are observed with one call. Extractors with a schema, and a working memory that the
    Observer keeps, need one call for each thread. The usage of a common call is counted for the
    first thread. See `observe_messages`.
    """
    call = _ObserverCall(
        settings=settings,
        log=log,
        working_memory=working_memory,
        timezone=timezone,
        resource_id=resource_id,
    )
    if len(threads) > 1 and not call.needs_single_threads:
        return call.observe_together(threads)
    observations: dict[str, Observation] = {}
    for thread in threads:
        observation = observations[thread.thread_id] = call.observe_thread(thread)
        if observation.working_memory and call.working_memory is not None:
            # The next thread must continue from the new text, which replaces the old one.
            memory = replace(call.working_memory, content=observation.working_memory)
            call = replace(call, working_memory=memory)
    return observations


@dataclass(frozen=True, slots=True, kw_only=True)
class _ObserverCall:
    """What all calls of one observation have in common."""

    settings: ObservationSettings
    log: str
    timezone: tzinfo
    resource_id: str | None
    buffered: Sequence[str] = ()
    working_memory: ManagedMemory | None = None
    is_buffering: bool = False

    @property
    def extractors(self) -> tuple[Extractor, ...]:
        own = self.settings.observation.extractors
        return own if self.working_memory is None else (*own, self.working_memory.extractor)

    @property
    def needs_single_threads(self) -> bool:
        return self.working_memory is not None or extractors.has_structured(self.extractors)

    def observe_thread(self, thread: ThreadMessages) -> Observation:
        messages = hooks.transform_messages(self.settings.hooks, thread.messages)
        text = transcript.format_for_observer(messages, timezone=self.timezone)
        if not text:
            return Observation()
        thread_id = thread.thread_id or None
        with self._signal([thread_id] if thread_id else [], messages):
            reply, usage = self._call(
                text, messages, self._list_hints(thread), thread.extracted, thread_id, False
            )
            parsed = parsing.parse_answer(
                reply,
                hints=self.settings.observation.hints,
                with_title=self.settings.thread_title,
                slugs=self._slugs,
            )
            return self._build_observation(parsed, text, usage, thread_id)

    def observe_together(self, threads: Sequence[ThreadMessages]) -> dict[str, Observation]:
        chosen: dict[str, list[StoredMessage]] = {}
        sections: dict[str, str] = {}
        for thread in threads:
            messages = hooks.transform_messages(self.settings.hooks, thread.messages)
            if text := transcript.format_for_observer(messages, timezone=self.timezone):
                chosen[thread.thread_id] = messages
                sections[thread.thread_id] = _format_section(thread, text)
        observations = {thread.thread_id: Observation() for thread in threads}
        if not sections:
            return observations
        messages = [message for items in chosen.values() for message in items]
        with self._signal(list(sections), messages):
            text = "\n".join(sections.values())
            reply, usage = self._call(text, messages, {}, {}, None, True)
            answers = parsing.parse_thread_answers(
                reply,
                sections,
                hints=self.settings.observation.hints,
                with_title=self.settings.thread_title,
                slugs=self._slugs,
            )
            for thread_id, parsed in answers.items():
                observations[thread_id] = self._build_observation(
                    parsed, sections[thread_id], usage, thread_id
                )
                usage = UsageTotals()
        return observations

    def _signal(
        self, thread_ids: list[str], messages: Sequence[StoredMessage]
    ) -> AbstractContextManager[None]:
        return hooks.signal_call(
            signals.observation_started,
            signals.observation_finished,
            thread_ids=thread_ids,
            resource_id=self.resource_id,
            message_ids=[message.id for message in messages],
        )

    @property
    def _slugs(self) -> list[str]:
        return [extractor.slug for extractor in extractors.list_inline(self.extractors)]

    def _list_hints(self, thread: ThreadMessages) -> dict[str, str]:
        """Return the hints and the title for the prompt.

        When buffering, the hints of an earlier observation would be too old.
        """
        hints: dict[str, str] = {}
        if not self.is_buffering:
            for tag, key in _HINT_KEYS.items():
                if isinstance(hint := thread.hints.get(key), str):
                    hints[tag] = hint
        if self.settings.thread_title and thread.title:
            hints[parsing.TITLE_TAG] = thread.title
        return hints

    def _call(
        self,
        text: str,
        messages: Sequence[StoredMessage],
        hints: Mapping[str, str],
        values: Mapping[str, Any],
        thread_id: str | None,
        has_threads: bool,
    ) -> tuple[str, UsageTotals]:
        """Call the Observer, and once more if its answer is degenerate. Return answer and usage."""
        call = self.settings.observation
        instructions = prompts.build_observer_instructions(
            hints=call.hints,
            with_title=self.settings.thread_title,
            extractors=extractors.list_inline(self.extractors),
            instruction=call.instruction,
            has_threads=has_threads,
        )
        prompt = prompts.build_observer_prompt(
            text,
            log=select_previous(self.log, self.buffered, self.settings),
            hints=hints,
            values=values,
            is_buffering=self.is_buffering,
        )
        request = llm.TextRequest(
            purpose=llm.Purpose.OBSERVATION,
            instructions=instructions,
            prompt=prompt,
            model=select_model(call, instructions, prompt),
            retries=MAX_RETRIES,
            max_tokens=call.max_tokens,
            temperature=call.temperature,
            attachments=attachments.collect_attachments(
                messages, self.settings.observe_attachments
            ),
        )
        return _generate(request, thread_id, self.resource_id)

    def _build_observation(
        self, parsed: ParsedAnswer, material: str, usage: UsageTotals, thread_id: str | None
    ) -> Observation:
        call = self.settings.observation
        text = hooks.transform_text(self.settings.hooks.after_observation, parsed.observations)
        extraction = extractors.run_extractors(
            self.extractors,
            inline_values=parsed.values,
            observations=text,
            material=material,
            model=select_model(call, "", material),
            thread_id=thread_id,
            resource_id=self.resource_id,
        )
        managed: str | None = None
        if self.working_memory is not None:
            slug = self.working_memory.extractor.slug
            if (value := extraction.values.pop(slug, None)) is not None:
                managed = managed_memory.format_value(value)
        return Observation(
            text=text,
            current_task=parsed.current_task,
            suggested_response=parsed.suggested_response,
            thread_title=_read_title(parsed.thread_title),
            extracted=extraction.values,
            extraction_failures=tuple(extraction.failures),
            working_memory=managed,
            usage=usage + extraction.usage,
        )


def select_previous(log: str, buffered: Sequence[str], settings: ObservationSettings) -> str:
    """Return the earlier observations that fit into `previous_observer_tokens`."""
    budget = settings.previous_observer_tokens
    if budget == 0 and budget is not False:
        return ""
    text = groups.strip_group_tags(prompts.join_buffered(log, buffered))
    return text if budget is False else log_text.take_tail(text, budget)


def select_model(call: CallSettings, *texts: str) -> str:
    """Return the model for an input.

    Raises:
        ProviderRefused: No model is configured for an input of this size.
    """
    if isinstance(call.model, str):
        return call.model
    counter = tokens.get_token_counter()
    try:
        return call.select_model(sum(map(counter.text, texts)))
    except InvalidInput as error:
        raise ProviderRefused(str(error)) from error


def _generate(
    request: llm.TextRequest, thread_id: str | None, resource_id: str | None
) -> tuple[str, UsageTotals]:
    usage = UsageTotals()
    for _ in range(2):
        reply = _generate_once(request, thread_id, resource_id)
        usage = usage + reply
        if not parsing.is_degenerate(reply.text):
            return reply.text, usage
    raise DegenerateOutput("The Observer repeated itself, also when it was asked again.")


def _generate_once(
    request: llm.TextRequest, thread_id: str | None, resource_id: str | None
) -> llm.TextReply:
    """Call the model. If it refuses the attachments, call it again without them."""
    try:
        return llm.generate(request, thread_id=thread_id, resource_id=resource_id)
    except ProviderRefused:
        if not request.attachments:
            raise
    return llm.generate(
        replace(request, attachments=()), thread_id=thread_id, resource_id=resource_id
    )


def _format_section(thread: ThreadMessages, text: str) -> str:
    """Return the transcript between the tags of its thread, which it cannot close."""
    tag = log_text.format_thread_tag(thread.thread_id)
    return f"{tag}\n{_THREAD_TAG.sub('&lt;', text)}\n</thread>"


def _read_title(answer: str | None) -> str | None:
    title = clean_title(answer or "")
    return title if len(title) >= MIN_TITLE_CHARS else None
