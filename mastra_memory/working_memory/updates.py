"""How a working memory may change: replaced or merged, checked, never wiped by its template."""

from typing import Any, Literal

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.working_memory import json_merge, schema, storage
from mastra_memory.working_memory.storage import Owner
from mastra_memory.working_memory.template import is_empty_template

UpdateMode = Literal["replace", "merge"]

EMPTY_TEMPLATE_ERROR = "this is the empty template; it would wipe what is known"


def update_content(
    place: Owner,
    content: str,
    options: WorkingMemoryOptions,
    *,
    mode: UpdateMode = "replace",
    source: str,
    author_id: Any = None,
) -> int:
    """Replace the text, or merge JSON into it where there is a schema. Returns the version.

    Without a schema `merge` replaces too: Markdown has no keys. An empty text clears. Changes at
    the same moment are made one after the other, so that merges lose nothing.
    Raises `InvalidInput` for what does not fit the schema, with the path, and for the empty
    template in place of something; then nothing is changed.
    """
    update: Any = None
    storage.check_size(content)
    if options.schema is not None and content:
        update = schema.validate_content(options.schema, content, partial=mode == "merge")

    def decide(current: str) -> str | None:
        if mode == "merge" and options.schema is not None:
            return _merge_into(current, update)
        wipes = current and content and is_empty_template(options, content)
        if wipes and not is_empty_template(options, current):
            raise InvalidInput(
                f"workingMemory: {EMPTY_TEMPLATE_ERROR}",
                [Issue("workingMemory", EMPTY_TEMPLATE_ERROR)],
            )
        return content

    return storage.update_locked(place, decide, source=source, author_id=author_id)


def _merge_into(current: str, update: Any) -> str | None:
    """The merged text; None when the update says nothing new."""
    stored = json_merge.parse_object(current)
    result = json_merge.merge_objects(stored, update)
    return None if current and result == stored else json_text.dumps(result)
