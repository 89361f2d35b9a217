"""Get and replace the text of a message. Tool calls and files are not part of it."""

from collections.abc import Mapping
from typing import Any


def list_texts(content: Any) -> list[str]:
    """Return the texts of all text parts that are not blank.

    If there is none, the only text is that of `content`, which is all that older clients send.
    """
    if not isinstance(content, Mapping):
        return []
    parts = content.get("parts")
    texts = [
        part["text"]
        for part in (parts if isinstance(parts, list) else ())
        if isinstance(part, Mapping)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and part["text"].strip()
    ]
    whole = content.get("content")
    if not texts and isinstance(parts, list) and isinstance(whole, str) and whole.strip():
        texts.append(whole)
    return texts


def get_text(content: Mapping[str, Any]) -> str:
    """Return the text that is stored, searched and shown.

    It is the `content` text unless that is blank, as in Mastra, or else the text parts, joined by
    spaces.
    """
    whole = content.get("content")
    if isinstance(whole, str) and whole.strip():
        return whole
    return " ".join(
        part["text"]
        for part in content.get("parts", ())
        if part.get("type") == "text" and isinstance(part.get("text"), str)
    ).strip()


def get_editable_text(content: Any) -> str:
    """Return all text parts, separated by blank lines, as an editor shows them.

    Unlike `get_text` it prefers the parts, because `replace_text` writes them back.
    """
    return "\n\n".join(list_texts(content))


def get_first_text(content: Any) -> str:
    """Return the first text of the message, stripped, or an empty string."""
    return next(iter(list_texts(content)), "").strip()


def replace_text(content: Mapping[str, Any], text: str) -> dict[str, Any]:
    """Return the content with `text` as its only text part, in the position of the first one.

    Tool calls, files and reasoning keep their positions.
    """
    parts: list[Any] = []
    replaced = False
    for part in content.get("parts", ()):
        if isinstance(part, Mapping) and part.get("type") == "text":
            if not replaced:
                parts.append({**part, "text": text})
                replaced = True
            continue
        parts.append(part)
    if not replaced:
        parts.append({"type": "text", "text": text})
    changed = {**content, "parts": parts}
    if isinstance(content.get("content"), str):
        changed["content"] = text
    return changed


def get_reasoning_text(part: Mapping[str, Any]) -> str:
    """Return the text of a reasoning part, from either of the two forms that are stored.

    Parts have a `reasoning` text, or a list of `details` with texts. Mastra also stores details
    with an empty `reasoning`.
    """
    reasoning = part.get("reasoning")
    if isinstance(reasoning, str) and reasoning.strip():
        return reasoning
    details = part.get("details")
    texts = [
        detail.get("text")
        for detail in (details if isinstance(details, list) else ())
        if isinstance(detail, Mapping)
    ]
    return "\n".join(text for text in texts if isinstance(text, str) and text)
