"""Read a mapping file, which says where each field of a message is found in a custom format.

`docs/import-export.md` describes the keys. A mapping is YAML or JSON.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, tzinfo
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import chat_messages, coercion

MAX_FILE_BYTES = 100_000
SKIP = "skip"
"""The role in a mapping of messages that are not imported."""
EPOCH_SECONDS, EPOCH_MILLISECONDS = "seconds", "milliseconds"

_FIELDS = ("id", "thread", "owner", "role", "text", "time", "title", "files")
_LIST_FIELDS = frozenset({"text", "files"})
"""Fields that may name several values, which are put together."""
_DEFAULTS = ("thread", "owner", "role", "title")
_ROLES = ("user", "assistant", "tool", SKIP)
_MAX_SECONDS = 10**11
"""A larger number is a time in milliseconds. As seconds it would be in the year 5138."""


@dataclass(frozen=True, slots=True)
class FieldMapping:
    """Where the values of a message are, and how they are converted."""

    name: str = "mapping"
    """Names the origin of the threads. Their ids are derived from it."""
    fields: Mapping[str, Sequence[str]] = field(default_factory=dict)
    """The paths of each field: a column of a table, or keys of JSON objects joined by dots."""
    metadata: Sequence[str] = ()
    """Paths of values that become metadata of the message."""
    messages: str = ""
    """The path of the list of messages if each record is a conversation."""
    roles: Mapping[str, str] = field(default_factory=dict)
    """The role for each value of the field `role`, in lower case."""
    defaults: Mapping[str, str] = field(default_factory=dict)
    """The values of fields that a record does not have."""
    keeps_ids: bool = False
    """Whether ids of threads and messages are used unchanged. If not, new ones are derived from
    them."""
    time_format: str = ""
    """A format of `datetime.strptime`, or `seconds` or `milliseconds`; empty to recognize it."""
    time_zone: tzinfo = UTC
    """The zone of times that name none."""
    encoding: str = ""
    delimiter: str = ""

    @property
    def has_owners(self) -> bool:
        """Return whether each message has an owner."""
        return "owner" in self.fields or "owner" in self.defaults

    def convert_role(self, value: str) -> str:
        """Return the role for a value, or an empty string if it is unknown."""
        value = value.strip().lower()
        return self.roles.get(value) or chat_messages.get_role(value)

    def parse_time(self, value: Any) -> datetime:
        """Return the time of a value.

        Raises:
            ValueError: It is not a time in the format of the mapping.
        """
        number = _to_number(value)
        if self.time_format not in ("", EPOCH_SECONDS, EPOCH_MILLISECONDS):
            time = datetime.strptime(str(value).strip(), self.time_format)
        elif number is not None:
            is_seconds = self.time_format == EPOCH_SECONDS or (
                not self.time_format and abs(number) < _MAX_SECONDS
            )
            return times.parse_time(number * 1000 if is_seconds else number)
        elif self.time_format or not isinstance(value, str):
            raise ValueError("not a number")
        else:
            time = datetime.fromisoformat(value.strip())
        return times.truncate_to_milliseconds(
            time if time.tzinfo else time.replace(tzinfo=self.time_zone)
        )


def _to_number(value: Any) -> float | None:
    if isinstance(value, str):
        try:
            return float(value)
        except ValueError:
            return None
    return value if isinstance(value, int | float) and not isinstance(value, bool) else None


def load_mapping(path: Path) -> FieldMapping:
    """Read a mapping file.

    Raises:
        InvalidInput: The file cannot be read, or a value is invalid; the message names its key.
    """
    try:
        with open(path, "rb") as file:
            data = file.read(MAX_FILE_BYTES + 1)
    except OSError as error:
        raise InvalidInput(f"The mapping {path} cannot be read: {error.strerror}") from None
    if len(data) > MAX_FILE_BYTES:
        raise InvalidInput(f"The mapping {path} is larger than {MAX_FILE_BYTES:,} bytes")
    try:
        value = _parse_json(data) if path.suffix.lower() == ".json" else _parse_yaml(data)
        return _Reader(value).read()
    except InvalidInput as error:
        raise InvalidInput(f"The mapping {path} is invalid: {error}") from None


def _parse_json(data: bytes) -> Any:
    return json_text.loads(data)


def _parse_yaml(data: bytes) -> Any:
    try:
        import yaml
    except ImportError:
        raise InvalidInput(
            "YAML needs the package PyYAML. Run `pip install django-mastra-memory[yaml]`, or write "
            "the mapping as JSON to a file ending in .json"
        ) from None
    try:
        return yaml.safe_load(data)
    except (yaml.YAMLError, UnicodeError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())
        raise InvalidInput(f"it is not YAML: {reason[:300]}") from None


class _Reader:
    """Check the values of a mapping file one by one."""

    _KEYS = ("name", "fields", "metadata", "messages", "roles", "defaults", "ids", "time", "csv")

    def __init__(self, value: Any) -> None:
        self._values = _check_keys(value, self._KEYS, "")

    def read(self) -> FieldMapping:
        """Return the mapping."""
        values = self._values
        time = _check_keys(values.get("time") or {}, ("format", "zone"), "time")
        table = _check_keys(values.get("csv") or {}, ("delimiter", "encoding"), "csv")
        mapping = FieldMapping(
            name=_check_text(values.get("name", "mapping"), "name"),
            fields=self._read_fields(),
            metadata=_check_texts(values.get("metadata") or [], "metadata"),
            messages=_check_text(values["messages"], "messages") if "messages" in values else "",
            roles=self._read_roles(),
            defaults=self._read_defaults(),
            keeps_ids=self._read_ids(),
            time_format=_check_text(time["format"], "time.format") if "format" in time else "",
            time_zone=_read_zone(time["zone"]) if "zone" in time else UTC,
            encoding=_check_encoding(table["encoding"]) if "encoding" in table else "",
            delimiter=_check_delimiter(table["delimiter"]) if "delimiter" in table else "",
        )
        for name in ("role", "thread"):
            is_optional = name == "thread" and mapping.messages
            if name not in mapping.fields and name not in mapping.defaults and not is_optional:
                raise InvalidInput(f"fields.{name} or defaults.{name} is missing")
        return mapping

    def _read_fields(self) -> dict[str, Sequence[str]]:
        fields = _check_keys(self._values.get("fields"), _FIELDS, "fields")
        if "text" not in fields and "files" not in fields:
            raise InvalidInput("fields.text is missing")
        return {
            name: _check_texts(paths, f"fields.{name}")
            if name in _LIST_FIELDS
            else [_check_text(paths, f"fields.{name}")]
            for name, paths in fields.items()
        }

    def _read_roles(self) -> dict[str, str]:
        roles = self._values.get("roles") or {}
        if not isinstance(roles, Mapping):
            raise InvalidInput("roles must be an object of values and roles")
        for value, role in roles.items():
            if role not in _ROLES:
                raise InvalidInput(f"roles.{value} must be one of {', '.join(_ROLES)}, not {role}")
        # YAML parses `true` as a boolean and `5` as an integer.
        return {str(value).strip().lower(): role for value, role in roles.items()}

    def _read_defaults(self) -> dict[str, str]:
        defaults = _check_keys(self._values.get("defaults") or {}, _DEFAULTS, "defaults")
        return {name: _check_text(value, f"defaults.{name}") for name, value in defaults.items()}

    def _read_ids(self) -> bool:
        ids = self._values.get("ids", "derive")
        if ids not in ("keep", "derive"):
            raise InvalidInput(f"ids must be keep or derive, not {ids}")
        return bool(ids == "keep")


def _check_keys(value: Any, keys: Sequence[str], path: str) -> Mapping[str, Any]:
    subject = path or "it"
    if not isinstance(value, Mapping):
        raise InvalidInput(f"{subject} must be an object with the keys {', '.join(keys)}")
    if unknown := [str(key) for key in value if key not in keys]:
        prefix = f"{path}." if path else ""
        raise InvalidInput(f"{prefix}{unknown[0]} is unknown; known keys: {', '.join(keys)}")
    return coercion.to_mapping(value)


def _check_text(value: Any, path: str) -> str:
    if isinstance(value, int) and not isinstance(value, bool):
        value = str(value)
    if not isinstance(value, str) or not value.strip():
        raise InvalidInput(f"{path} must be a text")
    return value


def _check_texts(value: Any, path: str) -> list[str]:
    values = value if isinstance(value, list) else [value]
    return [_check_text(item, path) for item in values]


def _read_zone(name: Any) -> tzinfo:
    try:
        return ZoneInfo(_check_text(name, "time.zone"))
    except (OSError, ValueError, KeyError):
        raise InvalidInput(f"time.zone must be a name such as Europe/Paris, not {name}") from None


def _check_encoding(name: Any) -> str:
    try:
        "".encode(_check_text(name, "csv.encoding"))
    except LookupError:
        raise InvalidInput(f"csv.encoding must be a name such as utf-8, not {name}") from None
    return str(name)


def _check_delimiter(value: Any) -> str:
    if not isinstance(value, str) or len(value) != 1 or value in '\r\n"':
        raise InvalidInput("csv.delimiter must be one character")
    return value
