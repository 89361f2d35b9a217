"""Serializers of the routes of observational memory that Mastra does not have."""

from typing import Any

from drf_spectacular.utils import extend_schema_field
from rest_framework import serializers

from mastra_memory.api.serializers.fields import (
    ChoiceField,
    Field,
    FlagField,
    IdListField,
    IntegerField,
    NonEmptyTextField,
    OptionalTextField,
    OwnerIdField,
    TextField,
)
from mastra_memory.api.serializers.query_parameters import DateTimeParameter, Parameter
from mastra_memory.api.serializers.query_strings import AgentQuery
from mastra_memory.api.serializers.request_base import RequestSerializer
from mastra_memory.api.serializers.response_base import ResponseSerializer
from mastra_memory.api.serializers.response_bodies import ObservationalRecordSerializer

MAX_PROMPT_CHARS = 10_000
"""The longest guidance for a reflection."""
CORRECTIONS = ("edit", "pin", "unpin", "delete", "restore")


class ObservedQuery(AgentQuery):
    """The thread or resource whose observations are read."""

    resourceId = Parameter("The resource; scoped callers always get their own.")
    threadId = Parameter("The thread, if the agent observes each thread.")


class ObservedQuerySchema(ObservedQuery):
    """`ObservedQuery` in the OpenAPI schema: unscoped callers must send `resourceId`."""

    resourceId = Parameter("The resource; scoped callers always get their own.", required=True)


class GenerationListQuery(ObservedQuery):
    """The query of `GET observational-memory/history`, besides the page."""

    to = DateTimeParameter("Only generations created at or before.")

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, which Python does not allow as the name of an attribute."""
        start = DateTimeParameter("Only generations created at or after.")
        return {**super().get_fields(), "from": start}


class GenerationListQuerySchema(GenerationListQuery):
    """`GenerationListQuery` in the OpenAPI schema."""

    resourceId = Parameter("The resource; scoped callers always get their own.", required=True)


class ObserveBody(RequestSerializer):
    """The body of `POST observational-memory/observe`."""

    resourceId = TextField(required=False)
    threadId = TextField(required=False)


class ObserveSchema(ObserveBody):
    """`ObserveBody` in the OpenAPI schema: unscoped callers must send `resourceId`."""

    resourceId = OwnerIdField()


@extend_schema_field({"type": "string", "maxLength": MAX_PROMPT_CHARS})
class PromptField(TextField):
    """Guidance for a reflection."""

    default_error_messages = {"long": f"may have at most {MAX_PROMPT_CHARS} characters"}

    def to_internal_value(self, data: Any) -> str:
        """Return the text, unless it is too long."""
        text = super().to_internal_value(data)
        if len(text) > MAX_PROMPT_CHARS:
            self.fail("long")
        return text


class ReflectBody(ObserveBody):
    """The body of `POST observational-memory/reflect`."""

    prompt = PromptField(required=False, default="")


class ReflectSchema(ReflectBody):
    """`ReflectBody` in the OpenAPI schema."""

    resourceId = OwnerIdField()


@extend_schema_field({"type": "integer", "minimum": 0, "maximum": 2**31 - 1})
class GenerationField(IntegerField):
    """The number of a generation."""

    def to_internal_value(self, data: Any) -> int:
        """Return the number, if there can be such a generation."""
        number = super().to_internal_value(data)
        if not 0 <= number < 2**31:
            self.fail("invalid")
        return number


class CorrectionBody(ObserveBody):
    """The body of `POST observational-memory/corrections`."""

    action = ChoiceField(CORRECTIONS)
    observation = NonEmptyTextField(required=False)
    text = TextField(required=False)
    generation = GenerationField(required=False)

    def validate(self, attrs: dict[str, Any]) -> dict[str, Any]:
        """Check that the values that the action needs are there."""
        action = attrs["action"]
        needed = ["generation"] if action == "restore" else ["observation"]
        needed += ["text"] if action == "edit" else []
        missing = {name: f"is required for {action}" for name in needed if name not in attrs}
        if missing:
            raise serializers.ValidationError(missing)
        return attrs


class CorrectionSchema(CorrectionBody):
    """`CorrectionBody` in the OpenAPI schema."""

    resourceId = OwnerIdField()


class ObservationOutcomeSerializer(ResponseSerializer):
    """What observing or reflecting did, and the current generation."""

    observed = FlagField()
    activated = FlagField()
    reflected = FlagField()
    record = ObservationalRecordSerializer(allow_null=True)


class CorrectedSerializer(ResponseSerializer):
    """The generation that a correction has opened."""

    record = ObservationalRecordSerializer()


@extend_schema_field({"type": "string", "format": "date", "nullable": True})
class DateField(Field):
    """A day."""

    converts = True

    def to_representation(self, value: Any) -> str | None:
        """Return the day as `2025-12-04`."""
        return value.isoformat() if value else None


class ObservationItemSerializer(ResponseSerializer):
    """One observation, with the messages that it was made of."""

    id = TextField(help_text="Its generation and line, for corrections.")
    text = TextField(source="item.text")
    line = TextField(source="item.raw", help_text="The line as it is stored.")
    priority = OptionalTextField(source="item.priority", allow_null=True)
    date = DateField(source="item.day", allow_null=True)
    time = OptionalTextField(source="item.time", allow_null=True)
    threadId = OptionalTextField(source="item.thread_id", required=False)
    depth = IntegerField(source="item.depth", help_text="0, or more for a nested observation.")
    isPinned = FlagField(source="is_pinned")
    messageIds = IdListField(source="message_ids")
    isExact = FlagField(
        source="is_exact",
        help_text="False if the text was changed since, so that the messages are a guess.",
    )


class ObservationListSerializer(ResponseSerializer):
    """The observations of the current generation."""

    observations = ObservationItemSerializer(many=True)


class ObservationStatusSerializer(ResponseSerializer):
    """The tokens of messages and observations, and what is due. Names are Mastra's."""

    scope = TextField(source="settings.scope")
    pendingTokens = IntegerField(source="pending_tokens")
    unbufferedPendingTokens = IntegerField(source="unbuffered_tokens")
    threshold = IntegerField()
    effectiveObservationTokensThreshold = IntegerField(source="reflection_threshold")
    observationTokens = IntegerField(source="observation_tokens")
    bufferedChunkCount = IntegerField(source="chunk_count")
    bufferedChunkTokens = IntegerField(source="buffered_tokens")
    asyncObservationEnabled = FlagField(source="settings.asynchronous")
    asyncReflectionEnabled = FlagField(source="settings.asynchronous")
    shouldObserve = FlagField(source="should_observe")
    shouldBuffer = FlagField(source="should_buffer")
    shouldReflect = FlagField(source="should_reflect")
    canActivate = FlagField(source="can_activate")
    error = OptionalTextField(allow_null=True, help_text="Why the last attempt failed.")
    attempts = IntegerField(help_text="Failed attempts in a row.")
    record = ObservationalRecordSerializer(allow_null=True)
