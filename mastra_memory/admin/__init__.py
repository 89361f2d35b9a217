"""The admin: one module for each model, and the pages of a conversation."""

from django.contrib import admin
from django.contrib.admin import AdminSite

from mastra_memory.admin.embedding_request import EmbeddingRequestAdmin
from mastra_memory.admin.message import MessageAdmin
from mastra_memory.admin.model_usage import ModelUsageAdmin
from mastra_memory.admin.observational_record import ObservationalRecordAdmin
from mastra_memory.admin.tags_and_rubric import CriterionAdmin, TagAdmin
from mastra_memory.admin.thread import ThreadAdmin
from mastra_memory.admin.working_memory import WorkingMemoryAdmin
from mastra_memory.models import (
    Criterion,
    EmbeddingRequest,
    Message,
    ModelUsage,
    ObservationalRecord,
    Tag,
    Thread,
    WorkingMemory,
)

MODEL_ADMINS = {
    Thread: ThreadAdmin,
    Message: MessageAdmin,
    WorkingMemory: WorkingMemoryAdmin,
    ObservationalRecord: ObservationalRecordAdmin,
    EmbeddingRequest: EmbeddingRequestAdmin,
    ModelUsage: ModelUsageAdmin,
    Tag: TagAdmin,
    Criterion: CriterionAdmin,
}


def register(site: AdminSite) -> None:
    """Register our models with an admin site of your own; the default site has them already."""
    for model, model_admin in MODEL_ADMINS.items():
        site.register(model, model_admin)


register(admin.site)
