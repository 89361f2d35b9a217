"""Working memory: the text kept for a thread or a resource, with every text it was before."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from mastra_memory import jsontext, sql
from mastra_memory.options import WorkingMemoryOptions

KEY = "workingMemory"
"""The key of a thread's metadata under which thread-scoped working memory is shown."""


def taken_out(
    metadata: Mapping[str, Any] | None,
) -> tuple[str | None, dict[str, Any] | None]:
    """Working memory given as a key of the metadata, and the metadata without it.

    Text is taken out; null clears the working memory; anything else is ordinary metadata.
    """
    if metadata is None:
        return None, None
    kept = dict(metadata)
    given = kept.get(KEY)
    if isinstance(given, str):
        return kept.pop(KEY), kept
    return ("" if KEY in kept and given is None else None), kept


def find_for_thread(thread_id: str) -> str | None:
    """The thread's text, None when there is none."""
    found = sql.row(
        "SELECT content FROM mastra_memory_workingmemory WHERE thread_id = %s AND content <> ''",
        [thread_id],
    )
    return found[0] if found else None


def find_for_resource(resource_id: str) -> str | None:
    """The resource's text, None when there is none."""
    found = sql.row(
        """SELECT content FROM mastra_memory_workingmemory
        WHERE resource_id = %s AND thread_id IS NULL AND content <> ''""",
        [jsontext.clean_text(resource_id)],
    )
    return found[0] if found else None


def save_for_thread(
    thread_id: str, resource_id: str, content: str, *, source: str, author_id: Any = None
) -> int:
    """Replace the thread's text and keep the old one as a revision. Returns the new version."""
    return _save("thread", thread_id, resource_id, content, source, author_id)


def save_for_resource(resource_id: str, content: str, *, source: str, author_id: Any = None) -> int:
    """Replace the resource's text and keep the old one as a revision. Returns the new version."""
    return _save("resource", None, resource_id, content, source, author_id)


def _save(
    scope: str, thread_id: str | None, resource_id: str, content: str, source: str, author_id: Any
) -> int:
    target = "(thread_id) WHERE thread_id IS NOT NULL"
    if scope == "resource":
        target = "(resource_id) WHERE thread_id IS NULL"
    saved = sql.row(
        f"""WITH saved AS (
            INSERT INTO mastra_memory_workingmemory AS w
                (scope, thread_id, resource_id, content, version)
            VALUES (%s, %s, %s, %s, 1)
            ON CONFLICT {target} DO UPDATE SET content = excluded.content,
                version = w.version + 1, updated_at = clock_timestamp()
            RETURNING id, version, content)
        INSERT INTO mastra_memory_workingmemoryrevision
            (working_memory_id, version, content, source, author_id)
        SELECT id, version, content, %s, %s FROM saved RETURNING version""",
        [scope, thread_id, resource_id, jsontext.clean_text(content), source, author_id],
    )
    assert saved is not None
    return saved[0]


@dataclass(frozen=True, slots=True)
class Template:
    """What an empty working memory looks like."""

    format: str
    """`markdown` or `json`."""
    content: str
    """Markdown, or the JSON text of the schema."""


def template_of(options: WorkingMemoryOptions) -> Template:
    """The template of an agent: its schema where it has one, else its Markdown."""
    if options.schema is not None:
        return Template("json", jsontext.dumps(options.schema))
    return Template("markdown", options.template.strip())


def empty_value(schema: Any) -> Any:
    """The value a schema starts with: its default, else an empty value of its type."""
    if not isinstance(schema, Mapping):
        return None
    if "default" in schema:
        return schema["default"]
    match schema.get("type"):
        case "object":
            properties = schema.get("properties") or {}
            return {name: empty_value(part) for name, part in properties.items()}
        case "array":
            return []
        case "string":
            return ""
        case "number" | "integer":
            return 0
        case "boolean":
            return False
    return None
