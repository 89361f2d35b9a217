"""Serializers of the query strings of each route."""

import functools
from collections.abc import Mapping
from typing import Any

from rest_framework import serializers
from rest_framework.fields import SkipField, empty

from mastra_memory.api.serializers import json_schemas
from mastra_memory.api.serializers.fields import (
    DateTimeField,
    FlagField,
    JsonObjectField,
    TextField,
)
from mastra_memory.api.serializers.query_parameters import (
    ChoiceParameter,
    DateTimeParameter,
    FlagParameter,
    IntegerParameter,
    JsonParameter,
    MetadataParameter,
    OrderParameter,
    Parameter,
)
from mastra_memory.api.serializers.request_base import RequestSerializer
from mastra_memory.db.sql import MAX_PAGE
from mastra_memory.types import Include, MessageFilter

MAX_INCLUDES = 1_000
"""The largest number of entries of one `include`."""


class QuerySerializer(RequestSerializer):
    """The base of the serializers of query strings."""

    subject = "query parameters"

    @functools.cached_property
    def _parameters(self) -> list[tuple[str, serializers.Field[Any, Any, Any, Any]]]:
        return list(self.fields.items())

    def run_validation(self, data: Any = empty) -> dict[str, Any]:
        """Return the validated parameters.

        Only parameters that were sent are validated. REST framework raises and catches an
        exception for each missing field, which takes longer than the rest of the validation.
        """
        names = {name.partition("[")[0] for name in data}
        values: dict[str, Any] = {}
        errors: dict[str, Any] = {}
        for name, field in self._parameters:
            if name not in names and not field.required:
                if field.default is not empty:
                    values[name] = field.default
                continue
            try:
                values[name] = field.run_validation(field.get_value(data))
            except SkipField:
                pass
            except serializers.ValidationError as error:
                errors[name] = error.detail
        if errors:
            raise serializers.ValidationError(errors)
        return values


class AgentQuery(QuerySerializer):
    """The agent whose memory is used."""

    agentId = Parameter("The agent whose memory is used.", required=True)


class OptionalAgentQuery(QuerySerializer):
    """The agent whose options are used to read stored data."""

    agentId = Parameter("The agent. If it is missing, data is read without an agent's options.")


class OwnerQuery(QuerySerializer):
    """The expected owner of a thread."""

    resourceId = Parameter("The owner of the thread. The response is 403 for any other resource.")


class ReadThreadQuery(OptionalAgentQuery, OwnerQuery):
    """The query of `GET threads/<thread>`."""


class DeleteQuery(AgentQuery, OwnerQuery):
    """The query of requests that delete threads or messages."""


class PageQuery(QuerySerializer):
    """A page of a list, and its size."""

    page = IntegerParameter("The page, counted from 0.", default=0)
    perPage = IntegerParameter("The number of items of a page.")


class ThreadListQuery(OptionalAgentQuery):
    """The query of `GET threads`, besides the page and the filters."""

    resourceId = Parameter("The owner of the threads; scoped callers always get their own.")
    metadata = MetadataParameter(
        "Values that the metadata must contain.", JsonObjectField(), json_schemas.OBJECT
    )
    orderBy = OrderParameter(["createdAt", "updatedAt"], accept_name=True)
    sortDirection = Parameter("The direction if `orderBy` is the name of a field.")


class UpdateThreadQuery(AgentQuery):
    """The query of `PATCH threads/<thread>`."""

    metadataMode = ChoiceParameter(
        "`replace` removes other keys, `merge` keeps them.",
        ["replace", "merge"],
        default="replace",
    )


class DateRangeQuery(serializers.Serializer[Any]):
    """The `dateRange` of a filter of messages."""

    default_error_messages = {"invalid": "expected an object"}

    start = DateTimeField(required=False, allow_null=True)
    end = DateTimeField(required=False, allow_null=True)
    startExclusive = FlagField(required=False, allow_null=True)
    endExclusive = FlagField(required=False, allow_null=True)


class RoleListField(serializers.Field[Any, Any, Any, Any]):
    """The roles of messages to return. Unknown roles match no messages."""

    default_error_messages = {"invalid": "expected a list of roles"}

    def to_internal_value(self, data: Any) -> list[str]:
        """Return the roles."""
        if not (isinstance(data, list) and all(isinstance(role, str) for role in data)):
            self.fail("invalid")
        return data


class MessageFilterQuery(serializers.Serializer[Any]):
    """The `filter` of a list of messages."""

    default_error_messages = {"invalid": "expected an object"}

    dateRange = DateRangeQuery(required=False)
    roles = RoleListField(required=False, allow_null=True)
    metadata = JsonObjectField(required=False)


def make_message_filter(values: Mapping[str, Any]) -> MessageFilter:
    """Return the filter that a validated `MessageFilterQuery` describes."""
    dates = values.get("dateRange", {})
    return MessageFilter(
        start=dates.get("start"),
        end=dates.get("end"),
        start_exclusive=bool(dates.get("startExclusive")),
        end_exclusive=bool(dates.get("endExclusive")),
        metadata=values.get("metadata", {}),
        roles=values.get("roles"),
    )


class NeighbourCountField(serializers.Field[Any, Any, Any, Any]):
    """A number of neighbouring messages. Null and negative numbers count as 0."""

    default_error_messages = {"invalid": "expected a whole number"}

    def to_internal_value(self, data: Any) -> int:
        """Return the number."""
        is_number = isinstance(data, int | float) and not isinstance(data, bool)
        if not (is_number and -MAX_PAGE <= data <= MAX_PAGE and data == int(data)):
            self.fail("invalid")
        return int(data)


class IncludeQuery(serializers.Serializer[Any]):
    """One entry of `include`: a message, and how many of its neighbours to add."""

    default_error_messages = {"invalid": "expected an object"}

    id = TextField(error_messages={"required": "expected text", "null": "expected text"})
    withPreviousMessages = NeighbourCountField(required=False, allow_null=True)
    withNextMessages = NeighbourCountField(required=False, allow_null=True)


class IncludeListField(serializers.Field[Any, Any, Any, Any]):
    """The entries of `include`."""

    default_error_messages = {
        "invalid": "expected a list",
        "too_many": "expected at most {limit} entries",
    }

    def to_internal_value(self, data: Any) -> list[Include]:
        """Return the entries; report the first invalid one."""
        if not isinstance(data, list):
            self.fail("invalid")
        if len(data) > MAX_INCLUDES:
            self.fail("too_many", limit=MAX_INCLUDES)
        entry_serializer = IncludeQuery()
        includes = []
        for index, entry in enumerate(data):
            try:
                values = entry_serializer.run_validation(entry)
            except serializers.ValidationError as error:
                raise serializers.ValidationError({str(index): error.detail}) from None
            includes.append(
                Include(
                    id=values["id"],
                    before=values.get("withPreviousMessages") or 0,
                    after=values.get("withNextMessages") or 0,
                )
            )
        return includes


class MessageListQuery(ReadThreadQuery):
    """The query of `GET threads/<thread>/messages`, besides the page."""

    orderBy = OrderParameter(["createdAt"])
    filter = JsonParameter(
        "Only messages with these times, roles and metadata.",
        MessageFilterQuery(),
        json_schemas.MESSAGE_FILTER,
    )
    include = JsonParameter(
        "Messages to add, with their neighbours.", IncludeListField(), json_schemas.INCLUDE
    )
    includeSystemReminders = FlagParameter("Include system reminders.", default=False)


def make_config_parameter(schema: json_schemas.Schema) -> JsonParameter:
    """Return the parameter `memoryConfig`."""
    return JsonParameter("Options that override those of the agent.", JsonObjectField(), schema)


class WorkingMemoryQuery(AgentQuery, OwnerQuery):
    """The query of `GET threads/<thread>/working-memory`."""

    memoryConfig = make_config_parameter(json_schemas.MEMORY_CONFIG)


class UpdateWorkingMemoryQuery(AgentQuery):
    """The query of `POST threads/<thread>/working-memory`."""

    mode = ChoiceParameter(
        "`merge` merges a JSON object into the stored one. Without a schema it replaces the text.",
        ["replace", "merge"],
        default="replace",
    )


class RevisionListQuery(AgentQuery, OwnerQuery):
    """The query of `GET threads/<thread>/working-memory/revisions`, besides the page."""

    memoryConfig = make_config_parameter(json_schemas.WORKING_MEMORY_CONFIG)


class NewMessageListField(serializers.Field[Any, Any, Any, Any]):
    """A list of new messages; `Memory.context` checks each of them."""

    default_error_messages = {"invalid": "expected a list"}

    def to_internal_value(self, data: Any) -> list[Any]:
        """Return the list."""
        if not isinstance(data, list):
            self.fail("invalid")
        return data


class ContextQuery(WorkingMemoryQuery):
    """The query of `GET threads/<thread>/context`."""

    query = Parameter("The user's new message. Semantic recall searches for this text.")
    newMessages = JsonParameter(
        "New messages, if there are several or if they are not plain text.",
        NewMessageListField(),
        json_schemas.NEW_MESSAGES,
    )


class ObservationsQuery(AgentQuery):
    """The query of `GET observational-memory`."""

    resourceId = Parameter("The resource; scoped callers always get their own.")
    threadId = Parameter("The thread. Needed if the scope of observational memory is `thread`.")
    to = DateTimeParameter("Only generations of the observations created at this time or earlier.")
    offset = IntegerParameter("The number of generations to skip.", default=0)
    limit = IntegerParameter("The number of generations to return.", minimum=1, default=5)

    def get_fields(self) -> dict[str, serializers.Field[Any, Any, Any, Any]]:
        """Add `from`, which Python does not allow as the name of an attribute."""
        start = DateTimeParameter(
            "Only generations of the observations created at this time or later."
        )
        return {**super().get_fields(), "from": start}


class ObservationsQuerySchema(ObservationsQuery):
    """`ObservationsQuery` in the OpenAPI schema: unscoped callers must send `resourceId`."""

    resourceId = Parameter("The resource; scoped callers always get their own.", required=True)


class SearchQuery(AgentQuery):
    """The query of `GET search`."""

    searchQuery = Parameter(
        'Words to search for. `"a phrase"`, `-excluded`, `this OR that` and fields such as '
        "`tool:refundPayment` are supported unless the search is semantic.",
        required=True,
    )
    resourceId = Parameter("The resource; scoped callers always search their own.", required=True)
    threadId = Parameter(
        "Search only this thread. Without `searchType`, the scope of semantic recall decides."
    )
    limit = IntegerParameter("The largest number of results.", default=20)
    searchType = ChoiceParameter(
        "Return the best results first, with scores. Without it the newest come first, as in "
        "Mastra.",
        ["semantic", "text", "hybrid"],
    )
    memoryConfig = make_config_parameter(json_schemas.MEMORY_CONFIG)


class StatusQuery(AgentQuery):
    """The query of `GET status`."""

    resourceId = Parameter("The resource whose observations are described.")
    threadId = Parameter("The thread whose observations are described.")
