"""Call the functions of the host project that may change or redact texts, and send signals."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from django.dispatch import Signal

from mastra_memory import signals
from mastra_memory.options import ObservationHooks
from mastra_memory.options.observational import Callback
from mastra_memory.types import StoredMessage


def transform_messages(
    hooks: ObservationHooks, messages: Sequence[StoredMessage]
) -> list[StoredMessage]:
    """Return the messages that the Observer may read.

    An exception of the function is raised, so that nothing is sent unredacted.
    """
    if hooks.before_observation is None:
        return list(messages)
    changed = hooks.before_observation(list(messages))
    return list(messages) if changed is None else list(changed)


def transform_text(function: Callback | None, text: str) -> str:
    """Return the text that the function returns, or the text itself if it returns None."""
    if function is None or not text:
        return text
    changed = function(text)
    return text if changed is None else str(changed)


@contextmanager
def signal_call(started: Signal, finished: Signal, **facts: object) -> Iterator[None]:
    """Send a signal before the block, and another one after it with its exception as `error`."""
    signals.send(started, **facts)
    error: Exception | None = None
    try:
        yield
    except Exception as raised:
        error = raised
        raise
    finally:
        signals.send(finished, **facts, error=error)
