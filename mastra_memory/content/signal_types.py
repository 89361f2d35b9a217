"""Signals and reminders: messages that are meant for the model, or only for some readers.

The type is computed once, when a message is saved, and stored in the column `signal`.
"""

import re
from collections.abc import Mapping
from typing import Any

SIGNAL_TYPES = frozenset(
    {"user", "state", "reactive", "notification", "user-message", "system-reminder"}
)
"""Types that a message can have, in Mastra's spelling."""
REMINDER_TYPES = frozenset({"system-reminder", "reactive"})
_REMINDER_TAG = re.compile(r"[\s\ufeff]*<system-reminder")

IS_REMINDER_SQL = "(m.signal = 'system-reminder' OR (m.role = 'signal' AND m.signal = 'reactive'))"
"""`is_reminder` as an SQL condition on `mastra_memory_message m`."""


def is_reminder(role: str, signal: str) -> bool:
    """Return whether a stored message is a system reminder, which lists and searches hide.

    Args:
        role: The role of the message.
        signal: Its stored signal type; see `get_signal_type`.
    """
    return signal == "system-reminder" or (role == "signal" and signal == "reactive")


def get_signal_type(role: str, content: Mapping[str, Any]) -> str:
    """Return the signal type of a message, or an empty string for an ordinary message.

    The data parts of a message cannot turn a reminder into something else. They come from clients
    and must not make a hidden message visible. Nor do they hide a message: as in Mastra, a message
    with the data of a reminder is shown.
    """
    metadata = content.get("metadata") or {}
    signal = metadata.get("signal") if role == "signal" else None
    signal_type = _read_signal_type(signal)
    if role == "user" and _has_reminder_mark(content, metadata):
        signal_type = "system-reminder"
    if signal_type in REMINDER_TYPES:
        return signal_type
    for part in content["parts"]:
        if part["type"] in ("data-signal", "data-user-message"):
            data_type = _read_signal_type(part.get("data"))
            return "" if data_type in REMINDER_TYPES else data_type
    return signal_type


def is_transient_signal(role: str, content: Mapping[str, Any]) -> bool:
    """Return whether a message is a transient signal, which must not be stored."""
    signal = (content.get("metadata") or {}).get("signal")
    return role == "signal" and isinstance(signal, Mapping) and signal.get("transient") is True


def _read_signal_type(signal: Any) -> str:
    name = signal.get("type") if isinstance(signal, Mapping) else None
    return name if isinstance(name, str) and name in SIGNAL_TYPES else ""


def _has_reminder_mark(content: Mapping[str, Any], metadata: Mapping[str, Any]) -> bool:
    """Return whether a user's message was written by the agent's framework as a reminder."""
    if isinstance(metadata.get("systemReminder"), Mapping):
        return True
    if "dynamicAgentsMdReminder" in metadata:
        return True
    texts = (part.get("text") for part in content["parts"] if part["type"] == "text")
    first = next(texts, None)
    return isinstance(first, str) and _REMINDER_TAG.match(first) is not None
