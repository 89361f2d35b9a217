"""Names of options in camelCase and snake_case, and merging of options."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from mastra_memory.db import json_text

_UNCHANGED_VALUES = frozenset(
    {"schema", "filter", "template", "instructions", "provider_options", "hooks", "up_to"}
)


def snake_keys(options: Any) -> Any:
    """Return the options with names in snake_case; schemas, filters and texts do not change."""
    return _rename(options, lambda key: re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", key).lower())


def camel_keys(options: Any) -> Any:
    """Return the options with names in camelCase, the opposite of `snake_keys`."""
    return _rename(options, lambda key: re.sub(r"_([a-z0-9])", lambda m: m[1].upper(), key))


def _rename(options: Any, rename: Callable[[str], str]) -> Any:
    if not isinstance(options, Mapping):
        return options
    # Model tiers have numbers as keys.
    named = {rename(key) if isinstance(key, str) else key: value for key, value in options.items()}
    return {
        name: value if name in _UNCHANGED_VALUES else _rename(value, rename)
        for name, value in named.items()
    }


def merge_options(base: Mapping[str, Any], override: Mapping[str, Any]) -> dict[str, Any]:
    """Return `override` merged into `base`; schemas, filters and texts are replaced as a whole."""
    return json_text.merge_objects(base, override, atomic_keys=_UNCHANGED_VALUES)
