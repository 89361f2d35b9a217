"""The template of an empty working memory."""

import re
from dataclasses import dataclass

from mastra_memory.db import json_text
from mastra_memory.options import WorkingMemoryOptions
from mastra_memory.working_memory import json_merge
from mastra_memory.working_memory.schema import build_empty_value


@dataclass(frozen=True, slots=True)
class Template:
    """The template of an agent's working memory."""

    format: str
    """`markdown` or `json`."""
    content: str
    """Markdown, or the JSON text of the schema."""
    empty_content: str
    """The initial text: the Markdown, or the JSON text of the schema's empty value."""


def build_template(options: WorkingMemoryOptions) -> Template:
    """Return the template of an agent: its schema if it has one, otherwise its Markdown."""
    if options.schema is not None:
        empty = json_text.dumps(build_empty_value(options.schema))
        return Template("json", json_text.dumps(options.schema), empty)
    markdown = options.template.strip()
    return Template("markdown", markdown, markdown)


def is_empty_template(options: WorkingMemoryOptions, content: str) -> bool:
    """Return whether the text is the empty template, apart from white space."""
    if options.schema is not None:
        return bool(json_merge.parse_object(content) == build_empty_value(options.schema))
    return _normalize_whitespace(content) == _normalize_whitespace(options.template)


def _normalize_whitespace(text: str) -> str:
    return re.sub(r"\s+", " ", text).strip()
