"""Update working memory: replace or merge it, and validate it against its schema."""

from collections.abc import Sequence
from typing import Any, Literal

from mastra_memory.db import json_text
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.working_memory import json_merge, schema, storage
from mastra_memory.working_memory.storage import Owner
from mastra_memory.working_memory.template import is_empty_template

UpdateMode = Literal["replace", "merge", "update"]
"""How a new text changes the stored one if there is a schema. `merge` merges JSON, and null removes
a key as in RFC 7396. `update` merges JSON too, but null changes nothing."""

EMPTY_TEMPLATE_ERROR = "this is the empty template; it would delete the stored content"


def update_content(
    owner: Owner,
    content: str,
    options: WorkingMemoryOptions,
    *,
    mode: UpdateMode = "replace",
    remove: Sequence[str] = (),
    source: str,
    author_id: Any = None,
) -> int:
    """Replace the text, or merge JSON into it if there is a schema. Return the new version.

    Concurrent updates are applied one after the other, so that no update is lost.

    Args:
        owner: The thread or resource that the working memory belongs to.
        content: Markdown, or JSON text if the options have a schema. An empty text clears it.
        options: The agent's options.
        mode: See `UpdateMode`. Without a schema, every mode replaces the text, because Markdown
            has no keys.
        remove: Paths of keys to remove before JSON is merged; see `json_merge.remove_paths`.
        source: The source of the change, stored in the revision.
        author_id: The id of the user who made the change, if any.

    Raises:
        InvalidInput: The content does not match the schema, or would replace stored content by
            the empty template. Nothing is changed.
    """
    update: Any = None
    storage.check_size(content)
    if options.schema is not None and content:
        update = schema.validate_content(options.schema, content, partial=mode != "replace")

    def build_content(current: str) -> str | None:
        if mode != "replace" and options.schema is not None:
            changes = json_merge.drop_nulls(update) if mode == "update" else update
            return _merge_into(current, changes, remove)
        is_empty_update = current and content and is_empty_template(options, content)
        if is_empty_update and not is_empty_template(options, current):
            raise InvalidInput(
                f"workingMemory: {EMPTY_TEMPLATE_ERROR}",
                [Issue("workingMemory", EMPTY_TEMPLATE_ERROR)],
            )
        return content

    return storage.update_locked(owner, build_content, source=source, author_id=author_id)


def _merge_into(current: str, update: Any, remove: Sequence[str]) -> str | None:
    """Return the merged text, or None if the update changes nothing."""
    stored = json_merge.parse_object(current)
    result = json_merge.merge_objects(json_merge.remove_paths(stored, remove), update)
    return None if current and result == stored else json_text.dumps(result)
