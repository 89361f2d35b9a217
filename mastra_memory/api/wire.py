"""Values as the wire shows them: camelCase, times as text, stored JSON passed through unparsed."""

from typing import Any

import orjson

from mastra_memory.context import Block, Context
from mastra_memory.db import times
from mastra_memory.models import ObservationalRecord, ObservationChunk
from mastra_memory.types import (
    ContextMessage,
    MessagePage,
    RevisionPage,
    SearchHit,
    SearchResult,
    StoredMessage,
    StoredThread,
    ThreadPage,
)

Json = dict[str, Any]

_KINDS = {"working_memory": "workingMemory"}


def thread(value: StoredThread, *, bare: bool = False) -> Json:
    """A thread; `bare` leaves the key `metadata` out where there is none."""
    shown: Json = {
        "id": value.id,
        "resourceId": value.resource_id,
        "title": value.title,
        "metadata": None,
        "createdAt": value.created,
        "updatedAt": value.updated,
    }
    if value.metadata_json is not None:
        shown["metadata"] = orjson.Fragment(value.metadata_json)
    elif bare:
        del shown["metadata"]
    return shown


def message(value: StoredMessage) -> Json:
    """A message; the key `type` is left out for the usual one."""
    shown: Json = {
        "id": value.id,
        "content": orjson.Fragment(value.content_json),
        "role": value.role,
        "createdAt": value.created,
        "threadId": value.thread_id,
        "resourceId": value.resource_id,
    }
    if value.type != "v2":
        shown["type"] = value.type
    return shown


def message_json(value: StoredMessage) -> bytes:
    """The JSON text of a message, in no more memory than it needs."""
    return bytes(memoryview(orjson.dumps(message(value))))  # orjson leaves room at the end


def thread_page(page: ThreadPage) -> Json:
    """A page of threads."""
    return {
        "threads": [thread(value) for value in page.threads],
        "total": page.total,
        "page": page.page,
        "perPage": page.per_page,
        "hasMore": page.has_more,
    }


def usage(tokens: int) -> Json:
    """The key `usage`, where tokens were spent."""
    return {"usage": {"tokens": tokens}} if tokens else {}


def message_page(page: MessagePage) -> Json:
    """A page of messages."""
    return {
        "messages": [message(value) for value in page.messages],
        "total": page.total,
        "page": page.page,
        "perPage": page.per_page,
        "hasMore": page.has_more,
    } | usage(page.usage_tokens)


def search_result(found: SearchResult) -> Json:
    """The answer of a search."""
    return {
        "results": [_hit(hit) for hit in found.results],
        "count": found.count,
        "query": found.query,
        "searchScope": found.search_scope,
        "searchType": found.search_type,
    } | usage(found.usage_tokens)


def _hit(hit: SearchHit) -> Json:
    shown: Json = _said(hit) | {"threadId": hit.thread_id, "threadTitle": hit.thread_title}
    if hit.context is not None:
        shown["context"] = {
            "before": [_said(message) for message in hit.context.before],
            "after": [_said(message) for message in hit.context.after],
        }
    extras = {"score": hit.score, "snippet": hit.snippet}
    return shown | {key: value for key, value in extras.items() if value is not None}


def _said(message: ContextMessage | SearchHit) -> Json:
    return {
        "id": message.id,
        "role": message.role,
        "content": message.text,
        "createdAt": times.format_time(message.created_at),
    }


def revision_page(page: RevisionPage) -> Json:
    """A page of what a working memory was."""
    return {
        "revisions": [
            {
                "version": one.version,
                "workingMemory": one.content,
                "source": one.source,
                "author": one.author or None,
                "createdAt": one.created,
            }
            for one in page.revisions
        ],
        "total": page.total,
        "page": page.page,
        "perPage": page.per_page,
        "hasMore": page.has_more,
    }


def context(value: Context) -> Json:
    """What goes in front of a model; messages once, the blocks name them."""
    return {
        "threadId": value.thread_id,
        "resourceId": value.resource_id,
        "systemMessage": value.system_message,
        "messages": [message(one) for one in value.messages],
        "blocks": [_block(block) for block in value.blocks],
        "tokens": value.tokens,
        "hasObservations": value.has_observations,
        "omRecord": value.record and record(value.record),
    }


def _block(block: Block) -> Json:
    shown: Json = {"kind": _KINDS.get(block.kind, block.kind), "tokens": block.tokens}
    if block.text:
        shown["text"] = block.text
    if block.messages:
        shown["messageIds"] = [one.id for one in block.messages]
    return shown


def record(value: ObservationalRecord) -> Json:
    """An observational record; what was never set is left out, as Mastra does."""
    shown: Json = {
        "id": value.id,
        "scope": value.scope,
        "threadId": value.thread_id,
        "resourceId": value.resource_id,
        "createdAt": times.format_time(value.created_at),
        "updatedAt": times.format_time(value.updated_at),
        "originType": value.origin_type,
        "generationCount": value.generation_count,
        "activeObservations": value.active_observations,
        "totalTokensObserved": value.total_tokens_observed,
        "observationTokenCount": value.observation_token_count,
        "pendingMessageTokens": value.pending_message_tokens,
        "isReflecting": value.is_reflecting,
        "isObserving": value.is_observing,
        "isBufferingObservation": value.is_buffering_observation,
        "isBufferingReflection": value.is_buffering_reflection,
        "lastBufferedAtTokens": value.last_buffered_at_tokens,
        "lastBufferedAtTime": value.last_buffered_at_time
        and times.format_time(value.last_buffered_at_time),
        "config": value.config,
    }
    optional: Json = {
        "lastObservedAt": value.last_observed_at and times.format_time(value.last_observed_at),
        "observedMessageIds": value.observed_message_ids,
        "observedTimezone": value.observed_timezone or None,
        "bufferedReflection": value.buffered_reflection or None,
        "bufferedReflectionTokens": value.buffered_reflection_tokens,
        "bufferedReflectionInputTokens": value.buffered_reflection_input_tokens,
        "reflectedObservationLineCount": value.reflected_observation_line_count,
        "bufferedObservationChunks": [_chunk(one) for one in value.chunks.all()] or None,
        "metadata": value.metadata,
    }
    return shown | {key: found for key, found in optional.items() if found is not None}


def _chunk(value: ObservationChunk) -> Json:
    return {
        "id": value.id,
        "cycleId": value.cycle_id,
        "observations": value.observations,
        "tokenCount": value.token_count,
        "messageIds": value.message_ids,
        "messageTokens": value.message_tokens,
        "lastObservedAt": times.format_time(value.last_observed_at),
        "createdAt": times.format_time(value.created_at),
        **value.hints,
    }
