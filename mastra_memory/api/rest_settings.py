"""The settings of REST framework that apply to our routes.

They are those of the host project, unless `MASTRA_MEMORY["REST_FRAMEWORK"]` has an entry of the
name. They are read with each request, so that a project can change them in its tests.
"""

import functools
from typing import Any

from django.utils.module_loading import import_string
from rest_framework.settings import api_settings

from mastra_memory import conf

_import = functools.cache(import_string)


def get_setting(name: str) -> Any:
    """Return a class or function, such as `DEFAULT_VERSIONING_CLASS`. None if there is none."""
    own = conf.app_settings().REST_FRAMEWORK
    value = own[name] if name in own else getattr(api_settings, name)
    return _import(value) if isinstance(value, str) else value


def list_classes(name: str) -> list[Any]:
    """Return the classes of a setting such as `DEFAULT_PERMISSION_CLASSES`."""
    entries = get_setting(name)
    return [_import(entry) if isinstance(entry, str) else entry for entry in entries]


def get_exception_handler(default: Any) -> Any:
    """Return the handler that `MASTRA_MEMORY` names, or `default`.

    The project's own handler is not used without being named: clients of Mastra's API rely on the
    format of our errors.
    """
    name = "EXCEPTION_HANDLER"
    return get_setting(name) if name in conf.app_settings().REST_FRAMEWORK else default
