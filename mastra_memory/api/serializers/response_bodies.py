"""Serializers of response bodies. The OpenAPI schema is generated from the same fields.

Keys are in camelCase. Stored JSON (metadata and message contents) is inserted without parsing it.
"""

from collections.abc import Sequence
from typing import Any

import orjson
from drf_spectacular.utils import extend_schema_field

from mastra_memory.api.serializers.fields import (
    ChoiceField,
    DateTimeTextField,
    Field,
    FlagField,
    IdListField,
    IntegerField,
    JsonObjectField,
    NumberField,
    OptionalTextField,
    TextField,
    TextMapField,
    UsageField,
    UtcDateTimeField,
)
from mastra_memory.api.serializers.response_base import Json, ResponseSerializer
from mastra_memory.models import ObservationChunk
from mastra_memory.types import StoredMessage, StoredThread


class ThreadSerializer(ResponseSerializer):
    """A thread."""

    id = TextField()
    resourceId = TextField()
    title = TextField()
    metadata = JsonObjectField(allow_null=True)
    createdAt = DateTimeTextField()
    updatedAt = DateTimeTextField()

    def to_representation(self, instance: StoredThread) -> Json:
        """Return the thread, with its metadata as it is stored."""
        # Not the general method, since a dictionary literal takes half the time, and lists of
        # threads and messages are the most frequent responses. The same applies to messages.
        metadata = instance.metadata_json
        return {
            "id": instance.id,
            "resourceId": instance.resource_id,
            "title": instance.title,
            "metadata": None if metadata is None else orjson.Fragment(metadata),
            "createdAt": instance.created,
            "updatedAt": instance.updated,
        }


class NewThreadSerializer(ThreadSerializer):
    """A thread that was just created or cloned; without metadata the key is left out."""

    metadata = JsonObjectField(required=False)

    def to_representation(self, instance: StoredThread) -> Json:
        """Return the thread."""
        answer = super().to_representation(instance)
        if answer["metadata"] is None:
            del answer["metadata"]
        return answer


class MessageSerializer(ResponseSerializer):
    """A message."""

    id = TextField()
    content = JsonObjectField()
    role = ChoiceField(["user", "assistant", "tool", "signal"])
    createdAt = DateTimeTextField()
    threadId = TextField()
    resourceId = TextField()
    type = TextField(required=False, help_text="Left out for the usual type, `v2`.")

    def to_representation(self, instance: StoredMessage) -> Json:
        """Return the message, with its content as it is stored."""
        answer = {
            "id": instance.id,
            "content": orjson.Fragment(instance.content_json),
            "role": instance.role,
            "createdAt": instance.created,
            "threadId": instance.thread_id,
            "resourceId": instance.resource_id,
        }
        if instance.type != "v2":
            answer["type"] = instance.type
        return answer


def render_message(message: StoredMessage) -> bytes:
    """Return the JSON text of a message."""
    # orjson returns a buffer that is larger than the text. The copy saves this memory.
    return bytes(memoryview(orjson.dumps(MessageSerializer.represent(message))))


class SavedMessagesSerializer(ResponseSerializer):
    """The messages that a request saved."""

    messages = MessageSerializer(many=True)
    usage = UsageField()


class CloneResultSerializer(ResponseSerializer):
    """A clone, with the new id of each copied message.

    `hasMore` is set if the messages are too large for one response. Then `clonedMessages` contains
    only the first ones; read the others from the message list of the clone.
    """

    thread = NewThreadSerializer()
    clonedMessages = MessageSerializer(many=True)
    messageIdMap = TextMapField()
    hasMore = FlagField(required=False)


class DeletedThreadSerializer(ResponseSerializer):
    """The response after a thread was deleted."""

    result = TextField()


class DeletedMessagesSerializer(ResponseSerializer):
    """The response after messages were deleted."""

    success = FlagField()
    message = TextField()


class WorkingMemoryTemplateSerializer(ResponseSerializer):
    """The template of an agent's working memory."""

    format = ChoiceField(["markdown", "json"])
    content = TextField(source="empty_content")


class WorkingMemorySerializer(ResponseSerializer):
    """The working memory of a thread or of its resource."""

    workingMemory = TextField(allow_null=True)
    source = ChoiceField(["thread", "resource"])  # type: ignore[assignment]
    workingMemoryTemplate = WorkingMemoryTemplateSerializer(allow_null=True)
    threadExists = FlagField()


class RevisionSerializer(ResponseSerializer):
    """An earlier or the current version of a working memory."""

    version = IntegerField()
    workingMemory = TextField(source="content")
    source = TextField()  # type: ignore[assignment]
    author = OptionalTextField(allow_null=True)
    createdAt = DateTimeTextField(source="created")


class RestoredSerializer(ResponseSerializer):
    """The response after a working memory was restored, with the number of the new version."""

    success = FlagField()
    version = IntegerField()


class ContextMessageSerializer(ResponseSerializer):
    """A message next to a search result."""

    id = TextField()
    role = TextField()
    content = TextField(source="text")
    createdAt = UtcDateTimeField(source="created_at")


class SearchContextSerializer(ResponseSerializer):
    """The messages before and after a search result."""

    before = ContextMessageSerializer(many=True)
    after = ContextMessageSerializer(many=True)


class SearchHitSerializer(ContextMessageSerializer):
    """One message of a search result."""

    threadId = TextField(source="thread_id")
    threadTitle = TextField(source="thread_title")
    context = SearchContextSerializer(required=False)  # type: ignore[assignment]
    score = NumberField(required=False)
    snippet = TextField(required=False)


class TimeRangeSerializer(ResponseSerializer):
    """A range of time that the query names, such as `last week`."""

    text = TextField(help_text="The words of the query.")
    start = UtcDateTimeField()
    end = UtcDateTimeField(help_text="The first instant after the range.")


@extend_schema_field(TimeRangeSerializer(many=True))
class InterpretedTimeField(Field):
    """The ranges of time that the query names; left out if there are none."""

    converts = True

    def __init__(self, **options: Any) -> None:
        super().__init__(source="interpreted_time", required=False, **options)

    def to_representation(self, value: Any) -> list[Json] | None:
        """Return the ranges, or None if there are none."""
        return TimeRangeSerializer.represent_list(value) or None


class SearchResultSerializer(ResponseSerializer):
    """The result of a search."""

    results = SearchHitSerializer(many=True)
    count = IntegerField()
    query = TextField()
    searchScope = TextField(source="search_scope", help_text="`thread` or `resource`.")
    searchType = ChoiceField(["semantic", "text", "hybrid"], source="search_type")
    interpretedTime = InterpretedTimeField()
    usage = UsageField()
    notice = TextField(
        required=False,
        help_text="Why the words of the query cannot find anything; left out otherwise.",
    )


class ChunkSerializer(ResponseSerializer):
    """A buffered observation, which is not active yet."""

    id = TextField()
    cycleId = TextField(source="cycle_id")
    observations = TextField()
    tokenCount = IntegerField(source="token_count")
    messageIds = IdListField(source="message_ids")
    messageTokens = IntegerField(source="message_tokens")
    lastObservedAt = UtcDateTimeField(source="last_observed_at")
    createdAt = UtcDateTimeField(source="created_at")

    def to_representation(self, instance: ObservationChunk) -> Json:
        """Return the observation with the hints that the Observer gave, such as `currentTask`."""
        return {**super().to_representation(instance), **instance.hints}


@extend_schema_field(ChunkSerializer(many=True))
class ChunkListField(Field):
    """The buffered observations of a record; left out if there are none."""

    converts = True

    def to_representation(self, value: Any) -> list[Json] | None:
        """Return the observations, or None if there are none."""
        return ChunkSerializer.represent_list(value) or None


class ObservationalRecordSerializer(ResponseSerializer):
    """An observational record. Values that were never set are left out, as in Mastra."""

    id = TextField()
    scope = TextField(help_text="`thread` or `resource`.")
    threadId = TextField(source="thread_id", allow_null=True)
    resourceId = TextField(source="resource_id")
    createdAt = UtcDateTimeField(source="created_at")
    updatedAt = UtcDateTimeField(source="updated_at")
    originType = TextField(source="origin_type")
    generationCount = IntegerField(source="generation_count")
    activeObservations = TextField(source="active_observations")
    totalTokensObserved = IntegerField(source="total_tokens_observed")
    observationTokenCount = IntegerField(source="observation_token_count")
    pendingMessageTokens = IntegerField(source="pending_message_tokens")
    isReflecting = FlagField(source="is_reflecting")
    isObserving = FlagField(source="is_observing")
    isBufferingObservation = FlagField(source="is_buffering_observation")
    isBufferingReflection = FlagField(source="is_buffering_reflection")
    lastBufferedAtTokens = IntegerField(source="last_buffered_at_tokens")
    lastBufferedAtTime = UtcDateTimeField(source="last_buffered_at_time", allow_null=True)
    config = JsonObjectField()
    lastObservedAt = UtcDateTimeField(source="last_observed_at", required=False)
    observedMessageIds = IdListField(source="observed_message_ids", required=False)
    observedTimezone = OptionalTextField(source="observed_timezone", required=False)
    bufferedReflection = OptionalTextField(source="buffered_reflection", required=False)
    bufferedReflectionTokens = IntegerField(source="buffered_reflection_tokens", required=False)
    bufferedReflectionInputTokens = IntegerField(
        source="buffered_reflection_input_tokens", required=False
    )
    reflectedObservationLineCount = IntegerField(
        source="reflected_observation_line_count", required=False
    )
    bufferedObservationChunks = ChunkListField(source="buffered_chunks", required=False)
    metadata = JsonObjectField(required=False)


class ObservationsSerializer(ResponseSerializer):
    """The live observational record and earlier generations, newest first."""

    record = ObservationalRecordSerializer(allow_null=True)
    history = ObservationalRecordSerializer(many=True, required=False)


class StatusSerializer(ResponseSerializer):
    """Whether an agent has memory, and how much of it is observed."""

    result = FlagField()
    memoryType = TextField(required=False)
    observationalMemory = JsonObjectField(required=False)


class ConfigSerializer(ResponseSerializer):
    """The options of an agent, or null for an agent without memory."""

    config = JsonObjectField(allow_null=True)


class BlockKindField(ChoiceField):
    """The kind of a context block."""

    converts = True

    def to_representation(self, value: Any) -> Any:
        """Return the kind in camelCase."""
        return "workingMemory" if value == "working_memory" else value


class BlockMessageIdsField(IdListField):
    """The ids of a block's messages; left out if it has none."""

    converts = True

    def to_representation(self, value: Sequence[StoredMessage]) -> list[str] | None:
        """Return the ids, or None if there are none."""
        return [message.id for message in value] or None


class ContextBlockSerializer(ResponseSerializer):
    """One block of a context: text of the system prompt, or messages, named by their ids."""

    kind = BlockKindField(
        ["workingMemory", "observations", "remembered", "continuation", "history", "new"]
    )
    tokens = IntegerField()
    text = OptionalTextField(required=False)
    messageIds = BlockMessageIdsField(source="messages", required=False)


class ContextSerializer(ResponseSerializer):
    """Everything that an agent passes to its model for the next turn."""

    threadId = TextField(source="thread_id")
    resourceId = TextField(source="resource_id")
    systemMessage = TextField(source="system_message", allow_null=True)
    messages = MessageSerializer(many=True)
    blocks = ContextBlockSerializer(many=True)
    tokens = IntegerField()
    hasObservations = FlagField(source="has_observations")
    omRecord = ObservationalRecordSerializer(source="record", allow_null=True)


class IssueSerializer(ResponseSerializer):
    """One invalid field of a request."""

    field = TextField()
    message = TextField()


class ErrorSerializer(ResponseSerializer):
    """Why a request was refused."""

    error = TextField()
    issues = IssueSerializer(many=True, required=False)


class SuccessSerializer(ResponseSerializer):
    """The answer to a request that returns no data."""

    success = FlagField()
