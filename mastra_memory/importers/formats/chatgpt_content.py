"""The kinds of content in ChatGPT exports, as parts of a message."""

from collections.abc import Mapping
from typing import Any

from mastra_memory.importers import coercion

REASONING = frozenset({"thoughts", "reasoning_recap"})

Part = dict[str, Any]


def content_of(content: Mapping[str, Any]) -> list[Part]:
    """The parts of a message; nothing for one that says nothing. Unknown kinds are kept whole."""
    kind = coercion.text(content.get("content_type"))
    match kind:
        case "text" | "multimodal_text":
            return _parts(content)
        case "code" if coercion.text(content.get("text")).strip():
            language = coercion.text(content.get("language")).replace("unknown", "")
            return [_text(f"```{language}\n{content['text']}\n```")]
        case "thoughts":
            return [_reasoning(_thought(t)) for t in coercion.objects(content.get("thoughts"))]
        case "reasoning_recap":
            recap = coercion.text(content.get("content"))
            return [_reasoning(recap)] if recap else []
        case "tether_quote":
            return [_source(content), *_texts(content.get("text"))]
        case "execution_output" | "code" | "computer_output" if "text" in content:
            return _texts(content.get("text"))
        case "tether_browsing_display":
            return _texts(content.get("result"))
        case "system_error":
            return [{"type": "error", "error": dict(content)}]
    return [{"type": f"data-chatgpt-{kind or 'content'}", "data": dict(content)}] if content else []


def result_of(content: Mapping[str, Any]) -> tuple[Any, list[Part]]:
    """What a tool answered, and the pictures and the like that it made."""
    said = content_of(content)
    others = [part for part in said if part["type"] != "text"]
    texts = [part["text"] for part in said if part["type"] == "text"]
    return "\n".join(texts), others


def said_in(content: Mapping[str, Any]) -> str:
    """The bare text of a message to a tool."""
    if isinstance(content.get("text"), str):
        return str(content["text"])
    given = content.get("parts")
    return "\n".join(p for p in given if isinstance(p, str)) if isinstance(given, list) else ""


def _parts(content: Mapping[str, Any]) -> list[Part]:
    given = content.get("parts")
    made: list[Part] = []
    for part in given if isinstance(given, list) else []:
        if isinstance(part, str):
            made.extend(_texts(part))
        elif isinstance(part, Mapping):
            made.extend(_part(part))
    return made


def _part(part: Mapping[str, Any]) -> list[Part]:
    kind = coercion.text(part.get("content_type"))
    address = coercion.text(part.get("asset_pointer"))
    match kind:
        case "image_asset_pointer" if address:
            facts = {key: part.get(key) for key in ("width", "height", "size_bytes")}
            return [_with_facts({"type": "image", "image": address}, facts)]
        case "audio_transcription":
            return _texts(part.get("text"))
        case "audio_asset_pointer" if address:
            mime_type = f"audio/{coercion.text(part.get('format')) or 'wav'}"
            return [{"type": "file", "data": address, "mimeType": mime_type}]
    return [{"type": f"data-chatgpt-{kind or 'part'}", "data": dict(part)}]


def _with_facts(part: Part, facts: Mapping[str, Any]) -> Part:
    known = coercion.present(**facts)
    return {**part, "metadata": known} if known else part


def _text(text: str) -> Part:
    return {"type": "text", "text": text}


def _texts(value: Any) -> list[Part]:
    text = coercion.text(value)
    return [_text(text)] if text.strip() else []


def _reasoning(text: str) -> Part:
    return {"type": "reasoning", "reasoning": text, "details": [{"type": "text", "text": text}]}


def _thought(thought: Mapping[str, Any]) -> str:
    said = (coercion.text(thought.get(key)) for key in ("summary", "content"))
    return "\n".join(text for text in said if text)


def _source(content: Mapping[str, Any]) -> Part:
    source = {"sourceType": "url", "url": coercion.text(content.get("url"))}
    return {"type": "source", "source": {**source, "title": coercion.text(content.get("title"))}}
