"""Embedders of providers, through pydantic-ai.

Importing pydantic-ai is slow, so this module is imported only when an embedder is created.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai import exceptions as model_errors
from pydantic_ai.embeddings import EmbeddingModel, EmbeddingResult, infer_embedding_model
from pydantic_ai.providers import Provider

from mastra_memory.embedding.embedder import Embeddings
from mastra_memory.exceptions import ProviderRefused, ProviderUnavailable
from mastra_memory.llm.provider import build_provider, is_retryable


def create_embedder(name: str) -> "ProviderEmbedder":
    """Return the embedder `provider/model`. This does not call the provider yet."""
    return ProviderEmbedder(name)


class ProviderEmbedder:
    """A model of a provider."""

    passage_bytes = 8_000
    """Providers accept about 8,000 tokens, and a token has at least one byte."""
    batch_size = 64
    is_local = False

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts; see `Embedder.embed`."""
        try:
            result = asyncio.run(self._request_embeddings(texts, query, timeout))
        except TimeoutError as error:
            raise ProviderUnavailable(f"{self.name} did not answer within {timeout} s") from error
        except model_errors.ModelAPIError as error:
            error_class = ProviderUnavailable if is_retryable(error) else ProviderRefused
            raise error_class(f"{self.name}: {error.message}") from error
        except (model_errors.UserError, ImportError, ValueError, TypeError) as error:
            raise ProviderRefused(f"{self.name}: {error}") from error
        return Embeddings(result.embeddings, result.usage.input_tokens)

    async def _request_embeddings(
        self, texts: Sequence[str], query: bool, timeout: float
    ) -> EmbeddingResult:
        provider_name, provider = build_provider(self.name)
        async with asyncio.timeout(timeout), provider:
            return await self._build_model(provider_name, provider).embed(
                list(texts), input_type="query" if query else "document"
            )

    def _build_model(self, provider_name: str, provider: Provider[Any]) -> EmbeddingModel:
        # pydantic-ai names the provider differently for chats and for embeddings.
        prefix = "openai" if provider_name == "openai-chat" else provider_name
        name = self.name.partition("/")[2]
        return infer_embedding_model(f"{prefix}:{name}", provider_factory=lambda _: provider)
