"""What tests of the API share."""

from typing import Any

import pytest
from drf_spectacular.generators import SchemaGenerator


@pytest.fixture(scope="package")
def schema() -> Any:
    """The OpenAPI schema, as the documentation page loads it."""
    return SchemaGenerator().get_schema(request=None, public=True)
