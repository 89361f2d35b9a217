"""Embedders of providers: real HTTP to a server of our own that speaks their protocol."""

from collections.abc import Callable

import pytest

from mastra_memory.embedding import embedder
from mastra_memory.embedding.provider import create_embedder
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from tests.support.openai_server import OpenAIServer, ScriptEntry, openai_server

NAME = "openai/text-embedding-3-small"
Server = Callable[..., OpenAIServer]


@pytest.fixture
def at(memory_settings: Callable[..., None]) -> Callable[[OpenAIServer], None]:
    """Point the provider `openai`, and one that nobody knows, to a server."""

    def point(server: OpenAIServer) -> None:
        reached = {"base_url": server.base_url, "api_key": "secret"}
        memory_settings(PROVIDERS={"openai": reached, "ours": reached})

    return point


def ask(name: str = NAME, *, timeout: float = 5.0, query: bool = False) -> embedder.Embeddings:
    """Vectors of two texts."""
    return create_embedder(name).embed(["tea", "a cup of tea"], query=query, timeout=timeout)


@pytest.mark.parametrize("name", [NAME, "ours/some-model"])
def test_embed__vectors_and_tokens(at: Callable[[OpenAIServer], None], name: str) -> None:
    with openai_server() as server:
        at(server)
        made = ask(name)
    assert made.vectors == [[3.0, 1.0], [12.0, 1.0]]
    assert made.tokens == 14
    assert server.requests[0]["model"] == name.partition("/")[2]
    assert server.requests[0]["input"] == ["tea", "a cup of tea"]
    assert server.keys == ["Bearer secret"]


@pytest.mark.parametrize("status", [408, 429, 500, 503])
def test_embed__what_may_heal(at: Callable[[OpenAIServer], None], status: ScriptEntry) -> None:
    with openai_server(status) as server:
        at(server)
        with pytest.raises(ProviderUnavailable):
            ask()


@pytest.mark.parametrize("status", [400, 401, 404])
def test_embed__what_will_not_heal(at: Callable[[OpenAIServer], None], status: ScriptEntry) -> None:
    with openai_server(status) as server:
        at(server)
        with pytest.raises(ProviderRefused):
            ask()


def test_embed__stops_after_the_timeout(at: Callable[[OpenAIServer], None]) -> None:
    with openai_server(2.0) as server:
        at(server)
        with pytest.raises(ProviderUnavailable, match=r"did not answer within 0\.2 s"):
            ask(timeout=0.2)


def test_embed__connection_is_refused(memory_settings: Callable[..., None]) -> None:
    nowhere = {"base_url": "http://127.0.0.1:1/v1", "api_key": "x"}
    memory_settings(PROVIDERS={"openai": nowhere})
    with pytest.raises(ProviderUnavailable):
        ask()


def test_embed__an_unknown_provider_says_what_is_missing(
    memory_settings: Callable[..., None],
) -> None:
    memory_settings()
    with pytest.raises(ProviderRefused, match="base_url"):
        ask("nobody/knows")


def test_embed_passages__through_the_port(at: Callable[[OpenAIServer], None]) -> None:
    with openai_server(503, "") as server:
        at(server)
        made = embedder.embed_passages(NAME, ["tea"])
    assert made.vectors == [[3.0, 1.0]]
    assert len(server.requests) == 2
