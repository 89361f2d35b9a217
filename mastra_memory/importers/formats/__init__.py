"""The file formats that can be imported.

To add a format:

1. Add a module to this package with the members of `FileFormat`. `sharegpt` is a short example.
   `read` passes each JSON record of the files to a function of the format (`parsing.read_items`).
   That function builds a thread and its messages with `conversation.ConversationBuilder`, which
   assigns ids, keeps the order of times, and joins tool results to their calls. Conversations with
   edited branches use `branching.build_threads`, and files whose messages may be in any order
   `grouping.RecordGroups`. `chat_messages`, `response_items` and `claude_blocks` convert messages
   of OpenAI's and Anthropic's APIs, which many formats contain.
2. Add the module to `FORMATS` below. `manage.py mastra_import` then detects the format and offers
   it as a choice of `--format`.
3. Add a record of the format to `tests/importers/test_odd_values.py`, a function to
   `tests/support/import_samples.py`, tests of its own, and a row to the table in
   `docs/import-export.md`.

Databases are not read as files: `sources` opens them and calls the package `mastra` directly.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Protocol

from mastra_memory.importers.files import SourceFile
from mastra_memory.importers.formats import (
    anthropic_messages,
    chatgpt,
    claude,
    jsonl,
    langfuse,
    langsmith,
    librechat,
    locomo,
    openai_chat,
    openai_responses,
    openwebui,
    sharegpt,
    wildchat,
)
from mastra_memory.importers.records import ResourceMapping, SourceItem


class FileFormat(Protocol):
    """What a module of this package defines."""

    NAME: str
    """The value of `--format`."""
    KEEPS_IDS: bool
    """Whether ids of threads, messages and resources are kept. If not, `--resource` or
    `--resource-prefix` is required."""

    def detect(self, record: Mapping[str, Any]) -> bool:
        """Return whether a JSON record looks like one of this format."""

    def read(self, files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
        """Yield the content of the files; a thread comes before its messages.

        Must not use Django's database connection: it runs in a thread of its own.
        """


FORMATS: Sequence[FileFormat] = (
    jsonl,
    chatgpt,
    claude,
    locomo,
    openwebui,
    librechat,
    langsmith,
    langfuse,
    openai_responses,
    anthropic_messages,
    wildchat,
    sharegpt,
    openai_chat,
)
"""In the order in which they are tried. A record belongs to the first format that detects it."""
