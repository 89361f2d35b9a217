"""The exceptions of this app. Their messages tell a user what to do."""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice

MAX_ISSUES = 100
"""The maximum number of issues in an error, so that the answer is not larger than the input."""


@dataclass(frozen=True, slots=True)
class Issue:
    """An error in an input: the dotted path of the field, and what is wrong with it."""

    field: str
    message: str


class MastraMemoryError(Exception):
    """The base class of the exceptions of this app."""


class InvalidInput(MastraMemoryError):
    """An input is not valid; `issues` lists where and why. Nothing was changed."""

    def __init__(self, message: str, issues: Iterable[Issue] = ()) -> None:
        super().__init__(message)
        self.issues = tuple(islice(issues, MAX_ISSUES))


class InvalidJson(InvalidInput):
    """A text is not JSON; see `reason`, `line` and `column`."""

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
    """Agents are configured, but none with this id."""

    def __init__(self, message: str = "Agent not found") -> None:
        super().__init__(message)


class MemoryNotConfigured(MastraMemoryError):
    """The agent exists and is configured to have no memory."""

    def __init__(self, message: str = "Memory is not initialized") -> None:
        super().__init__(message)


class FeatureDisabled(MastraMemoryError):
    """The option that this call needs is off for the agent."""


class AccessDenied(MastraMemoryError):
    """The thread belongs to another resource. The message does not name that resource."""

    def __init__(
        self, message: str = "Access denied: thread belongs to a different resource"
    ) -> None:
        super().__init__(message)


class Conflict(MastraMemoryError):
    """An id is taken, or belongs to another resource. Nothing was changed."""


class BodyTooLarge(MastraMemoryError):
    """A request body is larger than `MAX_BODY_BYTES` or `MAX_BODY_VALUES`."""


class ProviderUnavailable(MastraMemoryError):
    """A model provider failed temporarily: time-out, overload, network."""


class ProviderRefused(MastraMemoryError):
    """A model provider refused a request permanently: wrong key, model name or input."""


class DegenerateOutput(ProviderRefused):
    """A model repeated itself or wrote nothing usable, also when asked again."""


class UsageLimitReached(MastraMemoryError):
    """The limit on the number or the cost of calls of models is reached. Nothing is lost."""


class StaleData(MastraMemoryError):
    """Another user changed the object since it was read. Nothing was changed."""


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


class ClaimLost(MastraMemoryError):
    """Another worker has taken over the claim, or the record is gone. The result is discarded."""

    def __init__(self, message: str = "Another worker has taken over this work.") -> None:
        super().__init__(message)


class LogChanged(ClaimLost):
    """The observations were changed while a model worked on them. The result is discarded."""

    def __init__(
        self, message: str = "The observations were changed while the model worked on them."
    ) -> None:
        super().__init__(message)


class EmbedderMismatch(MastraMemoryError):
    """The vectors of the embedder have another length than the stored ones."""

    def __init__(self, model: str, *, stored: int, made: int) -> None:
        super().__init__(
            f"{model} now makes vectors of {made} dimensions, but the stored ones have {stored}. "
            "Run `manage.py mastra_embed --again` to embed all messages again."
        )
