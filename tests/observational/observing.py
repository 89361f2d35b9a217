"""Ask the Observer about a few messages, with a fake model."""

from typing import Any

from mastra_memory.observational import config, observer
from mastra_memory.observational.config import ObservationSettings
from mastra_memory.options import MemoryOptions
from mastra_memory.testing import FakeLLM
from mastra_memory.types import StoredMessage
from tests.support.factories import a_message, make_thread, save


def make_settings(**options: Any) -> ObservationSettings:
    parsed = MemoryOptions.parse({"observationalMemory": options}).observational_memory
    assert parsed is not None
    return config.resolve_settings(parsed)


def save_messages(*texts: str, thread_id: str = "t") -> list[StoredMessage]:
    thread = make_thread("ann", thread_id)
    return save(
        [
            a_message(thread, f"{thread_id}{n}", text=text, at=n, role=("user", "assistant")[n % 2])
            for n, text in enumerate(texts)
        ]
    )


def observe(*answers: Any, texts: tuple[str, ...] = ("I have a dog", "Nice"), **more: Any) -> Any:
    """Return the observation and the requests of the model."""
    options = more.pop("options", {})
    arguments: dict[str, Any] = {"thread_id": "t", "resource_id": "ann"} | more
    settings = arguments.pop("settings", None) or make_settings(**options)
    with FakeLLM(*answers) as model:
        result = observer.observe_messages(save_messages(*texts), settings=settings, **arguments)
    return result, model.requests
