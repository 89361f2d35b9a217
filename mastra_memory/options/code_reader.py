"""Read the options that name code: hooks and extractors. They may only come from settings."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import Any

from django.utils.module_loading import import_string

from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.options.names import snake_keys
from mastra_memory.options.observational import RESERVED_SLUGS, Extractor, ObservationHooks
from mastra_memory.options.reader import OptionsReader

_OM = "observational_memory"
_SERVER_ONLY = ("hooks", "observation.extract", "reflection.extract")
_SLUG = re.compile(r"[a-z](?:[a-z0-9-]*[a-z0-9])?")


def refuse_code_in_request(options: Mapping[str, Any]) -> None:
    """Raise `InvalidInput` if the options of a request name code to import or to call."""
    reader = OptionsReader(options)
    for path in _SERVER_ONLY:
        if reader.get(f"{_OM}.{path}", None) is not None:
            reason = "can only be set in the settings of the server, not in a request"
            field = f"memoryConfig.{_OM}.{path}"
            raise InvalidInput(f"{_OM}.{path} {reason}", [Issue(field, reason)])


class CodeReader:
    """Read hooks and extractors. Paths are relative to the options of observational memory."""

    def __init__(self, reader: OptionsReader) -> None:
        self.reader = reader

    def _get(self, path: str) -> Any:
        return self.reader.get(f"{_OM}.{path}", None)

    def _add_error(self, path: str, reason: str) -> None:
        self.reader.add_error(f"{_OM}.{path}", reason)

    def read_hooks(self) -> ObservationHooks:
        """Return the functions that change or redact texts."""
        value = snake_keys(self._get("hooks"))
        if value is None:
            return ObservationHooks()
        names = {item.name for item in fields(ObservationHooks)}
        if not isinstance(value, Mapping) or not set(value) <= names:
            self._add_error("hooks", f"must be an object with {', '.join(sorted(names))}")
            return ObservationHooks()
        return ObservationHooks(
            **{name: self._read_callable(f"hooks.{name}", hook) for name, hook in value.items()}
        )

    def _read_callable(self, path: str, value: Any) -> Callable[..., Any] | None:
        function = self._import_value(path, value)
        if function is None:
            return None
        if callable(function):
            callback: Callable[..., Any] = function
            return callback
        self._add_error(path, "must be a function, or its dotted path")
        return None

    def _import_value(self, path: str, value: Any) -> Any:
        """Return the object that a dotted path names; other values are returned unchanged."""
        if not isinstance(value, str):
            return value
        try:
            return import_string(value)
        except ImportError as error:
            self._add_error(path, f"cannot be imported: {error}")
            return None

    def read_extractors(self, path: str) -> tuple[Extractor, ...]:
        """Return the extractors in the list at `path`. Their names must differ."""
        value = self._get(path)
        if value is None:
            return ()
        if not isinstance(value, Sequence) or isinstance(value, str):
            self._add_error(path, "must be a list of extractors")
            return ()
        extractors = [self._read_extractor(f"{path}.{n}", item) for n, item in enumerate(value)]
        valid = [extractor for extractor in extractors if extractor is not None]
        slugs = [extractor.slug for extractor in valid]
        if len(set(slugs)) < len(slugs):
            self._add_error(path, "has two extractors with the same name")
        return tuple(valid)

    def _read_extractor(self, path: str, item: Any) -> Extractor | None:
        """Return an extractor from an object, a pydantic model, or the dotted path of either."""
        item = self._import_value(path, item)
        if hasattr(item, "model_json_schema"):
            doc = (item.__doc__ or "").strip()
            item = Extractor(name=_split_words(item.__name__), instructions=doc, schema=item,
                             mode="structured")  # fmt: skip
        elif isinstance(item, Mapping):
            item = self._read_extractor_object(path, snake_keys(item))
        if not isinstance(item, Extractor):
            if item is not None:
                self._add_error(path, "must be an extractor, a pydantic model or a dotted path")
            return None
        if not _SLUG.fullmatch(item.slug) or item.slug in RESERVED_SLUGS:
            self._add_error(path, f"needs another name than {item.name!r}")
            return None
        return item

    def _read_extractor_object(self, path: str, item: Mapping[str, Any]) -> Extractor | None:
        names = {field.name for field in fields(Extractor)}
        if not set(item) <= names or not isinstance(item.get("name"), str):
            self._add_error(
                path, f"must be an object with a name, and only {', '.join(sorted(names))}"
            )
            return None
        schema = self._import_value(f"{path}.schema", item.get("schema"))
        mode = item.get("mode") or ("structured" if schema is not None else "inline")
        if mode not in ("inline", "structured", "hook") or (mode == "structured") != (
            schema is not None
        ):
            self._add_error(path, "a schema needs the mode `structured`, and no other mode has one")
            return None
        callback = self._read_callable(f"{path}.on_extracted", item.get("on_extracted"))
        return Extractor(**{**item, "schema": schema, "mode": mode, "on_extracted": callback})


def _split_words(class_name: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", " ", class_name)
