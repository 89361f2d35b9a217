"""Working memory that the Observer keeps, instead of the agent with its tool."""

import logging
from dataclasses import dataclass
from typing import Any

from mastra_memory import working_memory
from mastra_memory.content import prompt_escaping
from mastra_memory.db import json_text
from mastra_memory.db.locking import retry_conflicts
from mastra_memory.exceptions import InvalidInput, ThreadNotFound
from mastra_memory.options import Extractor, WorkingMemoryOptions

logger = logging.getLogger(__name__)

NAME = "Working memory"
SOURCE = "observer"
_INSTRUCTIONS = """\
the whole new text of the working memory if the messages bring something worth keeping, or \
correct what is kept; it replaces the old text, so copy what is still true. Keep the form of the \
template."""
_SCHEMA_INSTRUCTIONS = """\
the whole new working memory if the messages bring something worth keeping, or correct what is \
kept. It replaces the old one, so copy what is still true."""


@dataclass(frozen=True, slots=True)
class ManagedMemory:
    """The working memory of a thread or a resource, as the Observer gets it."""

    owner: working_memory.Owner
    options: WorkingMemoryOptions
    content: str = ""

    @property
    def extractor(self) -> Extractor:
        """The extractor that asks for the whole new working memory."""
        schema = self.options.schema
        template = working_memory.build_template(self.options).empty_content
        parts = [
            _INSTRUCTIONS if schema is None else _SCHEMA_INSTRUCTIONS,
            prompt_escaping.wrap_in_tag("working_memory_template", template),
            working_memory.render_data(self.content),
        ]
        return Extractor(
            name=NAME,
            instructions="\n".join(parts),
            schema=schema,
            mode="inline" if schema is None else "structured",
            include_previous_extraction=False,
        )


def read_memory(
    options: WorkingMemoryOptions, *, thread_id: str | None, resource_id: str
) -> ManagedMemory | None:
    """Return the working memory for the Observer, or None if working memory is off.

    In thread scope there is none without a thread.
    """
    if not options.enabled or (options.scope == "thread" and thread_id is None):
        return None
    owner = working_memory.Owner(resource_id, thread_id if options.scope == "thread" else None)
    return ManagedMemory(owner, options, working_memory.find_content(owner) or "")


def format_value(value: Any) -> str:
    """Return the extracted value as the text of a working memory."""
    return value.strip() if isinstance(value, str) else json_text.dumps(value)


@retry_conflicts
def save_memory(memory: ManagedMemory, content: str) -> int | None:
    """Replace the working memory by the Observer's text, and return the new version.

    An empty text, an unchanged one, the empty template and one that does not match the schema
    change nothing and return None, and so does any text if the thread was deleted meanwhile.
    """
    if not content.strip() or content == memory.content:
        return None
    try:
        return working_memory.update_content(memory.owner, content, memory.options, source=SOURCE)
    except InvalidInput as error:
        logger.warning("The Observer's working memory was refused (%s)", type(error).__name__)
        return None
    except ThreadNotFound:
        return None
