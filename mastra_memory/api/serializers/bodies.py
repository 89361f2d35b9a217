"""Serializers of request bodies."""

from mastra_memory.api.serializers.fields import (
    DateTimeField,
    IntegerField,
    JsonObjectField,
    MemoryConfigField,
    MessageIdsField,
    MessagesField,
    NewMessagesField,
    NonEmptyTextField,
    OwnerIdField,
    TextField,
    TextListField,
    TitleField,
    VersionField,
    WorkingMemoryConfigField,
)
from mastra_memory.api.serializers.request_base import RequestSerializer


class CreateThreadBody(RequestSerializer):
    """The body of `POST threads`."""

    resourceId = OwnerIdField()
    threadId = TextField(required=False)
    title = TitleField(required=False)
    metadata = JsonObjectField(required=False)


class UpdateThreadBody(RequestSerializer):
    """The body of `PATCH threads/<thread>`."""

    title = TitleField(required=False)
    metadata = JsonObjectField(required=False)
    resourceId = TextField(required=False)


class CloneFilterBody(RequestSerializer):
    """Which messages a clone gets."""

    startDate = DateTimeField(required=False, allow_null=True)
    endDate = DateTimeField(required=False, allow_null=True)
    messageIds = TextListField(limit="MAX_IDS", required=False)


class CloneOptionsBody(RequestSerializer):
    """The `options` of a clone."""

    messageLimit = IntegerField(required=False)
    messageFilter = CloneFilterBody(required=False)


class CloneThreadBody(RequestSerializer):
    """The body of `POST threads/<thread>/clone`."""

    newThreadId = TextField(required=False)
    resourceId = TextField(required=False)
    title = TitleField(required=False)
    metadata = JsonObjectField(required=False)
    options = CloneOptionsBody(required=False)


class TransferThreadBody(RequestSerializer):
    """The body of `POST threads/<thread>/transfer`."""

    resourceId = NonEmptyTextField()


class SaveMessagesBody(RequestSerializer):
    """The body of `POST save-messages`."""

    messages = MessagesField(limit="MAX_MESSAGES_PER_SAVE")


class DeleteMessagesBody(RequestSerializer):
    """The body of `POST messages/delete`."""

    messageIds = MessageIdsField()


class UpdateWorkingMemoryBody(RequestSerializer):
    """The body of `POST threads/<thread>/working-memory`."""

    workingMemory = NonEmptyTextField()
    resourceId = TextField(required=False)
    memoryConfig = WorkingMemoryConfigField(required=False)


class RestoreWorkingMemoryBody(RequestSerializer):
    """The body of `POST threads/<thread>/working-memory/restore`."""

    version = VersionField()
    resourceId = TextField(required=False)
    memoryConfig = WorkingMemoryConfigField(required=False)


class ContextBody(RequestSerializer):
    """The body of `POST threads/<thread>/context`."""

    newMessages = NewMessagesField(limit="MAX_NEW_MESSAGES", required=False)
    resourceId = TextField(required=False)
    memoryConfig = MemoryConfigField(required=False)


class BufferStatusBody(RequestSerializer):
    """The body of `POST observational-memory/buffer-status`."""

    agentId = NonEmptyTextField()
    resourceId = TextField(required=False)
    threadId = TextField(required=False)


class BufferStatusSchema(BufferStatusBody):
    """`BufferStatusBody` in the OpenAPI schema: unscoped callers must send `resourceId`."""

    resourceId = OwnerIdField()
