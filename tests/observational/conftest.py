"""Fixtures of observational memory."""

from collections.abc import Callable
from typing import Any

import pytest

from mastra_memory.memory import Memory
from tests.observational.engine import SMALL


@pytest.fixture
def configure(memory_settings: Callable[..., None]) -> Callable[..., Memory]:
    """Set the options of observational memory, and return a memory that has them."""

    def build(**options: Any) -> Memory:
        memory_settings(OPTIONS={"observationalMemory": SMALL | options})
        return Memory()

    return build
