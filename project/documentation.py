"""The OpenAPI schema and its page. They are public and do not use the database."""

from typing import Any

from django.http import HttpResponseBase
from drf_spectacular.views import SpectacularAPIView, SpectacularSwaggerView

from project.errors import json_error


class _JsonErrors:
    """Return errors (405, 406) as JSON. The view itself may render another format."""

    def handle_exception(self, exc: Exception) -> HttpResponseBase:
        view: Any = super()
        response = view.handle_exception(exc)
        headers = {name: value for name, value in response.items() if name != "Content-Type"}
        return json_error(str(response.data["detail"]), response.status_code, **headers)


class SchemaView(_JsonErrors, SpectacularAPIView):  # type: ignore[misc]
    """The OpenAPI schema as YAML, or as JSON if the client asks for it."""


class DocsView(_JsonErrors, SpectacularSwaggerView):  # type: ignore[misc]
    """The documentation page, generated from the schema."""

    http_method_names = ["get", "head"]
