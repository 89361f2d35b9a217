"""The kit's embedding model as the setting `EMBEDDER` of the conformance run."""

import importlib.util
import os
from functools import cache
from pathlib import Path
from typing import Any


def embed(texts: list[str]) -> list[list[float]]:
    """Vectors of the texts, as `fixture/embedder.py` of the kit makes them."""
    return [_model().embed(text) for text in texts]


@cache
def _model() -> Any:
    path = Path(os.environ["CONFORMANCE_DIR"]) / "fixture" / "embedder.py"
    spec = importlib.util.spec_from_file_location("conformance_fixture_embedder", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module
