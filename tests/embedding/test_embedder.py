"""The port to embedders."""

from collections.abc import Sequence

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.embedding.embedder import Embedded
from mastra_memory.exceptions import InvalidInput, ProviderRefused, ProviderUnavailable
from mastra_memory.testing import FakeEmbedder


def squares(texts: list[str]) -> list[list[float]]:
    """An embedder that a host could write."""
    return [[float(len(text)), float(len(text) ** 2)] for text in texts]


class Cubes:
    """Another one."""

    passage_bytes = 10
    batch_size = 2
    is_local = True

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embedded:
        return Embedded([[float(len(text) ** 3)] for text in texts], tokens=len(texts))


@pytest.fixture(autouse=True)
def no_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Attempts follow each other at once."""
    monkeypatch.setattr(embedder, "RETRY_AFTER", (0.0, 0.0))


def test_get_embedder__a_function_of_the_host() -> None:
    found = embedder.embed_passages(f"{__name__}.squares", ["a", "bb"])
    assert found == Embedded([[1.0, 1.0], [2.0, 4.0]])
    assert found.dimensions == 2


def test_get_embedder__a_class_of_the_host_is_made_once() -> None:
    path = f"{__name__}.Cubes"
    assert embedder.get_embedder(path) is embedder.get_embedder(path)
    assert embedder.embed_passages(path, ["a", "bb", "ccc"]) == Embedded(
        [[1.0], [8.0], [27.0]], tokens=3
    )


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("nowhere", "neither provider/model nor a dotted path"),
        ("no.such.module", "neither provider/model nor a dotted path"),
        ("local/other", "there is local/wordllama"),
    ],
)
def test_get_embedder__a_faulty_name_is_told(name: str, told: str) -> None:
    with pytest.raises(InvalidInput, match=told):
        embedder.get_embedder(name)


@pytest.mark.parametrize("name", ["fastembed/x", "sentence-transformers/x"])
def test_get_embedder__a_missing_library_names_its_extra(name: str) -> None:
    with pytest.raises(ProviderRefused, match=r"pip install 'django-mastra-memory\["):
        embedder.get_embedder(name)


def test_embed_passages__tries_again_when_that_may_help() -> None:
    class Shaky(FakeEmbedder):
        failures = 2

        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embedded:
            if self.failures:
                self.failures -= 1
                raise ProviderUnavailable("overloaded")
            return super().embed(texts, query=query, timeout=timeout)

    with Shaky() as model:
        embedder.embed_passages("any/model", ["tea"])
        assert model.texts == ["tea"]


def test_embed_passages__gives_up_after_the_last_attempt() -> None:
    with (
        FakeEmbedder(error=ProviderUnavailable("overloaded")),
        pytest.raises(ProviderUnavailable, match="overloaded"),
    ):
        embedder.embed_passages("any/model", ["tea"])


def test_embed_passages__a_refusal_is_not_tried_again() -> None:
    calls = []

    class Strict(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embedded:
            calls.append(texts)
            raise ProviderRefused("bad key")

    with Strict(), pytest.raises(ProviderRefused):
        embedder.embed_passages("any/model", ["tea"])
    assert len(calls) == 1


def test_embed_passages__in_batches() -> None:
    sizes = []

    class Counting(FakeEmbedder):
        batch_size = 3

        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embedded:
            sizes.append(len(texts))
            return super().embed(texts, query=query, timeout=timeout)

    with Counting(tokens_each=2):
        made = embedder.embed_passages("any/model", [str(n) for n in range(8)])
    assert sizes == [3, 3, 2]
    assert (len(made.vectors), made.tokens) == (8, 16)


@pytest.mark.parametrize("vectors", [[], [[1.0]], [[1.0], [1.0, 2.0]], [[], []]])
def test_embed_passages__an_answer_of_the_wrong_shape_is_refused(
    vectors: list[list[float]],
) -> None:
    class Odd(FakeEmbedder):
        def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embedded:
            return Embedded(vectors)

    with Odd(), pytest.raises(ProviderRefused, match="to 2 texts"):
        embedder.embed_passages("any/model", ["a", "b"])


def test_embed_query__asked_again_costs_nothing() -> None:
    with FakeEmbedder(tokens_each=5) as model:
        first = embedder.embed_query("any/model", ["tea"])
        again = embedder.embed_query("any/model", ["tea"])
        embedder.embed_query("other/model", ["tea"])
    assert first.vectors == again.vectors
    assert (first.tokens, again.tokens) == (5, 0)
    assert model.queries == ["tea", "tea"]


def test_embed_query__the_cache_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(embedder, "CACHED_QUERIES", 3)
    with FakeEmbedder() as model:
        for text in ("a", "b", "c", "d", "b", "a"):
            embedder.embed_query("any/model", [text])
        assert model.queries == ["a", "b", "c", "d", "a"]
        assert len(embedder._queries) == 3


def test_embed_query__texts_that_join_alike_are_told_apart() -> None:
    with FakeEmbedder() as model:
        embedder.embed_query("any/model", ["ab", "c"])
        embedder.embed_query("any/model", ["a", "bc"])
        embedder.embed_query("any/mode", ["lab", "c"])
        assert len(model.queries) == 6
