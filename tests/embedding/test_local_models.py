"""The embedder that comes with the app."""

import subprocess
import sys

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.embedding.wordllama import NAME


def likeness(one: str, two: str) -> float:
    """The cosine of two texts."""
    a, b = embedder.embed_passages(NAME, [one, two]).vectors
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return float(dot / (sum(x * x for x in a) * sum(y * y for y in b)) ** 0.5)


def test_embed__what_means_alike_is_nearer() -> None:
    assert likeness("The cat sat on the mat", "A kitten rests on a rug") > likeness(
        "The cat sat on the mat", "Quarterly tax returns are due"
    )


def test_embed__vectors_do_not_depend_on_their_company() -> None:
    texts = ["hello", "a much longer text about dogs and their habits", "x", "日本語 🔴"]
    together = embedder.embed_passages(NAME, texts * 20)
    assert together.dimensions == 256
    for index, text in enumerate(texts):
        alone = embedder.embed_passages(NAME, [text]).vectors[0]
        assert list(together.vectors[index + 40]) == pytest.approx(list(alone), abs=1e-5)


def test_embed__no_library_is_loaded_by_a_web_process() -> None:
    heavy = ("wordllama", "numpy", "tokenizers", "pydantic_ai", "openai", "torch", "fastembed")
    code = (
        "import sys, project.wsgi\n"
        "import mastra_memory.api.urls, mastra_memory.tasks\n"
        f"sys.exit(', '.join(m for m in {heavy!r} if m in sys.modules) or 0)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_embed__keeps_the_logging_configuration() -> None:
    code = (
        "import logging\n"
        "from mastra_memory.embedding import wordllama\n"
        "wordllama.create_embedder(wordllama.NAME)\n"
        "root = logging.getLogger()\n"
        "print(root.level == logging.WARNING, root.handlers)"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.stdout == "True []\n"
