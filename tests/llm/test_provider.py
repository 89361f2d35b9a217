"""Text models of providers: names, addresses, keys, errors, prices; against a real HTTP server."""

from collections.abc import Iterator
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel

from mastra_memory import llm
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.llm import provider
from mastra_memory.llm.text_models import Purpose, TextRequest
from mastra_memory.models import ModelUsage
from tests.support.openai_server import OpenAIServer, openai_server

pytestmark = pytest.mark.django_db
MODELS = ("openai/gpt-5-mini", "anthropic/claude-haiku-4-5", "deepseek/chat", "acme/vendor/large")


class Order(BaseModel):
    """Something with a shape."""

    number: int


@pytest.fixture
def server(memory_settings: Any, monkeypatch: pytest.MonkeyPatch) -> Iterator[OpenAIServer]:
    """A server that all four providers are to be found at."""
    with openai_server() as state:
        root = state.base_url.removesuffix("/v1")
        place = {"base_url": state.base_url, "api_key": "key-1"}
        memory_settings(
            PROVIDERS={
                "openai": place,
                "anthropic": {**place, "base_url": root},
                "deepseek": place,
                "acme": place,
            },
            MODEL_TIMEOUT=5.0,
        )
        yield state


def ask(model: str, **more: Any) -> Any:
    """One question."""
    request = TextRequest(
        purpose=Purpose.TITLE, instructions="Be short.", prompt="Say it", model=model, **more
    )
    return llm.generate(request)


@pytest.mark.parametrize(
    ("name", "kind", "model", "host"),
    [
        ("openai/gpt-5-mini", "OpenAIResponsesModel", "gpt-5-mini", "api.openai.com"),
        ("anthropic/claude-haiku-4-5", "AnthropicModel", "claude-haiku-4-5", "api.anthropic.com"),
        ("openrouter/a/b:free", "OpenRouterModel", "a/b:free", "openrouter.ai"),
        ("deepseek/chat", "OpenAIChatModel", "chat", "api.deepseek.com"),
        ("togetherai/meta/llama", "OpenAIChatModel", "meta/llama", "api.together.xyz"),
        ("acme/vendor/large", "OpenAIChatModel", "vendor/large", "acme.example"),
    ],
)
def test_model__names_are_those_of_mastra(
    name: str,
    kind: str,
    model: str,
    host: str,
    memory_settings: Any,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    place = {"base_url": "https://acme.example/v1", "api_key": "x"}
    memory_settings(PROVIDERS={"acme": place})
    for known in ("OPENAI", "ANTHROPIC", "OPENROUTER", "DEEPSEEK", "TOGETHERAI"):
        monkeypatch.setenv(f"{known}_API_KEY", "x")
        monkeypatch.delenv(f"{known}_BASE_URL", raising=False)
    made: Any = provider._build_model(name)
    assert (type(made).__name__, made.model_name) == (kind, model)
    assert host in made.base_url


@pytest.mark.parametrize("name", MODELS)
def test_ask__text_key_and_usage(name: str, server: OpenAIServer) -> None:
    reply = ask(name, max_tokens=50)
    assert (reply.text, reply.input_tokens, reply.output_tokens) == ("Hello", 120, 8)
    (asked,) = server.requests
    assert asked["model"] == name.partition("/")[2]
    assert 50 in (asked.get("max_tokens"), asked.get("max_completion_tokens"))
    assert "Be short." in str(asked)
    assert server.keys[0] in ("Bearer key-1", "key-1")
    row = ModelUsage.objects.get()
    assert (row.model, row.input_tokens, row.output_tokens) == (name, 120, 8)


@pytest.mark.parametrize("name", MODELS)
def test_ask__a_shape(name: str, server: OpenAIServer) -> None:
    server.script = [{"number": 7}]
    assert ask(name, output=Order).value == Order(number=7)
    assert ask(name, output=Order.model_json_schema()).value == {"number": 7}


@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize(
    ("status", "error"),
    [
        (429, ProviderUnavailable),
        (503, ProviderUnavailable),
        (529, ProviderUnavailable),
        (400, ProviderRefused),
        (401, ProviderRefused),
        (404, ProviderRefused),
    ],
)
def test_ask__two_kinds_of_error(
    name: str, status: int, error: type[Exception], server: OpenAIServer
) -> None:
    server.script = [status]
    with pytest.raises(error, match=name):
        ask(name)
    assert len(server.requests) == 1
    assert not ModelUsage.objects.exists()


@pytest.mark.parametrize("name", MODELS)
def test_ask__an_answer_that_takes_too_long_may_heal(
    name: str, server: OpenAIServer, memory_settings: Any
) -> None:
    places = {"openai", "anthropic", "deepseek", "acme"}
    root = server.base_url.removesuffix("/v1")
    memory_settings(
        PROVIDERS={
            place: {
                "base_url": root if place == "anthropic" else server.base_url,
                "api_key": "x",
            }
            for place in places
        },
        MODEL_TIMEOUT=0.3,
    )
    server.script = [2.0]
    with pytest.raises(ProviderUnavailable):
        ask(name)


@pytest.mark.parametrize("name", MODELS)
def test_ask__a_server_that_is_down_may_heal(name: str, memory_settings: Any) -> None:
    with openai_server() as state:
        gone = {"base_url": state.base_url, "api_key": "x"}
    memory_settings(PROVIDERS=dict.fromkeys(("openai", "anthropic", "deepseek", "acme"), gone))
    with pytest.raises(ProviderUnavailable):
        ask(name)


def test_ask__prices_are_those_of_the_settings_or_the_public_list(
    server: OpenAIServer, memory_settings: Any
) -> None:
    root = server.base_url.removesuffix("/v1")
    memory_settings(
        PROVIDERS={
            "anthropic": {"base_url": root, "api_key": "x"},
            "acme": {"base_url": server.base_url, "api_key": "x"},
        },
        PRICES={"acme/large": {"input": 1.0, "output": 10.0}},
    )
    assert ask("acme/large").cost == Decimal("0.0002")
    assert ask("acme/other").cost is None
    assert ask("anthropic/claude-haiku-4-5").cost == Decimal("0.00016")
    assert ModelUsage.objects.count() == 3


@pytest.mark.parametrize(
    ("name", "message"),
    [("groq/llama-3", "pip install"), ("unknown/x", "base_url"), ("openai/x", "api_key|API_KEY")],
)
def test_ask__missing_setup_is_a_clear_error(
    name: str, message: str, memory_settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    memory_settings()
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ProviderRefused, match=message):
        ask(name)


def test_ask__temperature_and_attachments(server: OpenAIServer) -> None:
    files = (
        llm.Attachment(mime_type="image/png", data=b"\x89PNG"),
        llm.Attachment(mime_type="image/*", url="https://x.example/a.png"),
    )
    ask("openai/gpt-4o-mini", temperature=0.3, max_tokens=50, attachments=files)
    [request] = server.requests
    assert request["temperature"] == 0.3
    parts = request["messages"][-1]["content"]
    assert [part["type"] for part in parts] == ["text", "image_url", "image_url"]
    urls = [part["image_url"]["url"] for part in parts[1:]]
    assert urls == ["data:image/png;base64,iVBORw==", "https://x.example/a.png"]


@pytest.mark.parametrize("name", MODELS)
def test_ask__a_temperature_never_fails(name: str, server: OpenAIServer) -> None:
    assert ask(name, temperature=0.3).text == "Hello"
