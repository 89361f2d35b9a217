"""What can go wrong, one class a case; the message is a sentence a person can act on."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MAX_ISSUES = 100
"""So many faults of one input are told: a refusal is not to be much larger than the input."""


@dataclass(frozen=True, slots=True)
class Issue:
    """One fault of an input: the dotted path of the field and what is wrong with it."""

    field: str
    message: str


class MastraMemoryError(Exception):
    """The base of every error this app raises on purpose."""


class InvalidInput(MastraMemoryError):
    """An input cannot be taken; `issues` says where and why. Nothing was changed."""

    def __init__(self, message: str, issues: Iterable[Issue] = ()) -> None:
        super().__init__(message)
        self.issues = tuple(islice(issues, MAX_ISSUES))


class InvalidJson(InvalidInput):
    """A text is not JSON; `reason`, `line` and `column` say where and why."""

    def __init__(self, reason: str, line: int, column: int) -> None:
        super().__init__(f"Not valid JSON: {reason}: line {line} column {column}")
        self.reason = reason
        self.line = line
        self.column = column


class ThreadNotFound(MastraMemoryError):
    """No thread has this id."""

    def __init__(self, message: str = "Thread not found") -> None:
        super().__init__(message)


class AgentNotFound(MastraMemoryError):
    """Agents are configured, and this id is none of them."""

    def __init__(self, message: str = "Agent not found") -> None:
        super().__init__(message)


class MemoryNotConfigured(MastraMemoryError):
    """The agent exists and is configured to have no memory."""

    def __init__(self, message: str = "Memory is not initialized") -> None:
        super().__init__(message)


class FeatureDisabled(MastraMemoryError):
    """The option that this call needs is off for the agent."""


class AccessDenied(MastraMemoryError):
    """The thread is another resource's; the message never tells whose or what it holds."""

    def __init__(
        self, message: str = "Access denied: thread belongs to a different resource"
    ) -> None:
        super().__init__(message)


class Conflict(MastraMemoryError):
    """An id is taken, or belongs to somebody else. Nothing was changed."""


class BodyTooLarge(MastraMemoryError):
    """A request body is larger than `MAX_BODY_BYTES` or `MAX_BODY_VALUES`."""


class ProviderUnavailable(MastraMemoryError):
    """A model provider failed in a way that may heal: time-out, overload, network."""


class ProviderRefused(MastraMemoryError):
    """A model provider refused in a way that will not heal by itself: key, model name, input."""


class StaleData(MastraMemoryError):
    """Somebody else changed it since it was read. Nothing was changed."""


class ConcurrentUpdate(MastraMemoryError):
    """Concurrent transactions wrote the same rows, and PostgreSQL rolled this one back.

    The app runs its own transactions again a few times first. Inside a transaction of the caller
    it cannot: roll back and run the whole transaction again.
    """

    def __init__(
        self,
        message: str = "Other requests changed the same rows at the same time, and this one was"
        " rolled back. The request may be sent again.",
    ) -> None:
        super().__init__(message)


class EmbedderMismatch(MastraMemoryError):
    """The stored vectors and the embedder's differ in length, so nothing can be compared."""

    def __init__(self, model: str, *, stored: int, made: int) -> None:
        super().__init__(
            f"{model} makes vectors of {made} dimensions now, but stored are vectors of {stored}. "
            f"Run `manage.py mastra_embed --again` to make them anew."
        )
