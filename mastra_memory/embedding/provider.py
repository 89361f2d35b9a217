"""Embedders of providers, through pydantic-ai.

Importing pydantic-ai is slow, so this module is imported only when an embedder is created.
"""

import asyncio
from collections.abc import Sequence
from typing import Any

from pydantic_ai import exceptions as theirs
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
    """Providers accept about 8,000 tokens, and every token has at least one byte."""
    batch_size = 64
    is_local = False

    def __init__(self, name: str) -> None:
        self.name = name

    def embed(self, texts: Sequence[str], *, query: bool, timeout: float) -> Embeddings:
        """Return the vectors of the texts; see `Embedder.embed`."""
        try:
            result = asyncio.run(self._ask(texts, query, timeout))
        except TimeoutError as error:
            raise ProviderUnavailable(f"{self.name} did not answer within {timeout} s") from error
        except theirs.ModelAPIError as error:
            kind = ProviderUnavailable if is_retryable(error) else ProviderRefused
            raise kind(f"{self.name}: {error.message}") from error
        except (theirs.UserError, ImportError, ValueError, TypeError) as error:
            raise ProviderRefused(f"{self.name}: {error}") from error
        return Embeddings(result.embeddings, result.usage.input_tokens)

    async def _ask(self, texts: Sequence[str], query: bool, timeout: float) -> EmbeddingResult:
        kind, provider = build_provider(self.name)
        async with asyncio.timeout(timeout), provider:
            return await self._model(kind, provider).embed(
                list(texts), input_type="query" if query else "document"
            )

    def _model(self, kind: str, provider: Provider[Any]) -> EmbeddingModel:
        # pydantic-ai names the provider differently for chats and for embeddings.
        prefix = "openai" if kind == "openai-chat" else kind
        name = self.name.partition("/")[2]
        return infer_embedding_model(f"{prefix}:{name}", provider_factory=lambda _: provider)
