"""Code of a host project that uses every public method of `Memory`; `test_typing.py` checks it."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import assert_type

from mastra_memory.context import Context
from mastra_memory.context.turns import Turn
from mastra_memory.llm.summaries import ConversationSummary
from mastra_memory.memory import Memory
from mastra_memory.models import ObservationalRecord, Thread
from mastra_memory.observational.corrections import ObservationEntry
from mastra_memory.observational.operations import ObservationOutcome
from mastra_memory.observational.recall_tool import RecallTool
from mastra_memory.observational.status import ObservationStatus
from mastra_memory.observational.tracing import MessageTrace
from mastra_memory.types import (
    CloneResult,
    GenerationPage,
    MessageFilter,
    MessagePage,
    MessageSelection,
    RevisionPage,
    SavedMessages,
    SearchResult,
    StoredMessage,
    StoredThread,
    ThreadPage,
)
from mastra_memory.working_memory import MemoryTool, Template

DAY = datetime(2024, 1, 1, tzinfo=UTC)


def use_threads(memory: Memory) -> None:
    thread = memory.create_thread("ann", thread_id="t", title="Trip", metadata={"plan": [1, None]})
    assert_type(thread, StoredThread)
    assert_type(memory.save_thread("t", "ann", metadata={"plan": "gold"}), StoredThread)
    assert_type(memory.get_thread("t", resource_id="ann"), StoredThread)
    assert_type(memory.get_thread_by_id("t"), StoredThread | None)
    page = memory.list_threads(
        resource_id="ann",
        metadata={"plan": "gold"},
        within=Thread.objects.all(),
        per_page=False,
        order_by="updated_at",
        direction="ASC",
    )
    assert_type(page, ThreadPage)
    assert_type(memory.update_thread("t", title="Trip", replace_metadata=True), StoredThread)
    assert_type(memory.transfer_thread("t", "bob"), StoredThread)
    assert_type(memory.update_thread_resource_id("t", "ann"), StoredThread)
    assert_type(memory.delete_thread("t"), bool)


def use_messages(memory: Memory, batch: list[dict[str, object]]) -> None:
    assert_type(memory.save_messages(batch), SavedMessages)
    assert_type(memory.persist_messages(batch), SavedMessages)
    page = memory.list_messages("t", per_page=10, direction="DESC", hide_signals=["reactive"])
    assert_type(page, MessagePage)
    assert_type(memory.list_messages(thread_ids=["t", "u"], newest_page=True), MessagePage)
    assert_type(memory.get_messages(["m"]), list[StoredMessage])
    assert_type(memory.update_messages([{"id": "m", "role": "user"}]), list[StoredMessage])
    assert_type(memory.delete_messages(["m", {"id": "n"}], resource_id="ann"), int)
    assert_type(memory.retry_embeddings([1, 2]), int)
    recalled = memory.recall(
        "t",
        vector_search_string="Lisbon",
        message_filter=MessageFilter(roles=["user"]),
        options={"lastMessages": 5},
    )
    assert_type(recalled, MessagePage)
    found = memory.search("Lisbon", resource_id="ann", search_type="hybrid", limit=5)
    assert_type(found, SearchResult)


def use_clones(memory: Memory) -> None:
    clone = memory.clone_thread("t", selection=MessageSelection(limit=5))
    assert_type(clone, CloneResult[StoredMessage])
    texts = memory.clone_thread("t", convert=lambda message: message.role).messages
    assert_type(texts, list[str])
    assert_type(memory.copy_thread("t", clone_id="u"), CloneResult[StoredMessage])
    assert_type(memory.is_clone(clone.thread), bool)
    assert_type(memory.get_clone_metadata(clone.thread), dict[str, object] | None)
    assert_type(memory.get_source_thread("u"), StoredThread | None)
    assert_type(memory.list_clones("t"), Sequence[StoredThread])
    assert_type(memory.get_clone_history("u"), list[StoredThread])


def use_working_memory(memory: Memory) -> None:
    assert_type(memory.get_working_memory("t", resource_id="ann"), str | None)
    assert_type(memory.update_working_memory("t", "text", mode="merge", author_id=1), int)
    assert_type(memory.get_working_memory_template(), Template | None)
    assert_type(memory.get_system_message("t"), str | None)
    assert_type(memory.working_memory_tool("t", resource_id="ann"), MemoryTool | None)
    assert_type(memory.list_working_memory_revisions("t", page=1), RevisionPage)
    assert_type(memory.restore_working_memory("t", 1), int)


def use_observations(memory: Memory) -> None:
    assert_type(memory.get_observational_record(thread_id="t"), ObservationalRecord | None)
    history = memory.list_observational_history(resource_id="ann", limit=3)
    assert_type(history, list[ObservationalRecord])
    assert_type(memory.wait_for_buffering(thread_id="t", timeout=1), ObservationalRecord | None)
    record = memory.update_observational_memory_config({"scope": "thread"}, thread_id="t")
    assert_type(record, ObservationalRecord)
    assert_type(memory.get_observational_status(thread_id="t"), ObservationStatus)
    assert_type(memory.get_observations(thread_id="t", as_of=DAY), str)
    page = memory.list_observational_generations(thread_id="t", page=1, per_page=5, start=DAY)
    assert_type(page, GenerationPage)
    assert_type(memory.observe(thread_id="t", user_name="ann"), ObservationOutcome)
    assert_type(memory.reflect(thread_id="t", prompt="Keep the dates"), ObservationOutcome)
    assert_type(memory.finalize_observations(thread_id="t"), ObservationOutcome)
    assert_type(memory.clear_observations(thread_id="t"), bool)
    memory.request_observation(thread_id="t")
    memory.start_observing(thread_id="t")
    memory.start_reflecting(thread_id="t")


def use_corrections(memory: Memory) -> None:
    entries = memory.list_observations(thread_id="t")
    assert_type(entries, list[ObservationEntry])
    found = memory.list_messages_of_observation(entries[0].id, thread_id="t")
    assert_type(found, list[StoredMessage])
    assert_type(memory.trace_message("m", thread_id="t"), MessageTrace)
    edited = memory.edit_observation("0.1", "Likes tea", thread_id="t", user_name="ann")
    assert_type(edited, ObservationalRecord)
    assert_type(memory.pin_observation("1.1", pinned=False, thread_id="t"), ObservationalRecord)
    assert_type(memory.delete_observation("1.1", thread_id="t"), ObservationalRecord)
    assert_type(memory.restore_observations(0, thread_id="t"), ObservationalRecord)
    assert_type(memory.recall_tool("t", resource_id="ann"), RecallTool | None)


def use_turns(memory: Memory) -> None:
    assert_type(memory.context("t", new_messages="Hello"), Context)
    turn = memory.save_turn("t", ["Hello"], answer=lambda context: context.system_message or "Hi")
    assert_type(turn, Turn)
    assert_type(memory.save_turn("t", {"role": "user", "content": "Hello"}, answer="Hi"), Turn)
    assert_type(memory.summarize_thread("t", last_messages=20, extract=str), ConversationSummary)
    assert_type(
        memory.summarize_conversation(turn.answer, instructions="Be brief"), ConversationSummary
    )
    memory.start_export(1)


async def use_async_threads(memory: Memory) -> None:
    assert_type(await memory.acreate_thread("ann", title="Trip"), StoredThread)
    assert_type(await memory.asave_thread("t", "ann"), StoredThread)
    assert_type(await memory.aget_thread("t"), StoredThread)
    assert_type(await memory.aget_thread_by_id("t"), StoredThread | None)
    assert_type(await memory.alist_threads(resource_id="ann"), ThreadPage)
    assert_type(await memory.aupdate_thread("t", title="Trip"), StoredThread)
    assert_type(await memory.atransfer_thread("t", "bob"), StoredThread)
    assert_type(await memory.adelete_thread("t"), bool)
    clone = await memory.aclone_thread("t", title="Copy")
    assert_type(clone, CloneResult[StoredMessage])
    assert_type(await memory.acopy_thread("t"), CloneResult[StoredMessage])
    assert_type(await memory.aget_source_thread("u"), StoredThread | None)
    assert_type(await memory.alist_clones("t"), Sequence[StoredThread])
    assert_type(await memory.aget_clone_history("u"), list[StoredThread])


async def use_async_messages(memory: Memory, batch: list[dict[str, object]]) -> None:
    assert_type(await memory.asave_messages(batch), SavedMessages)
    assert_type(await memory.apersist_messages(batch), SavedMessages)
    assert_type(await memory.alist_messages("t", per_page=10), MessagePage)
    assert_type(await memory.aget_messages(["m"]), list[StoredMessage])
    assert_type(await memory.aupdate_messages([{"id": "m"}]), list[StoredMessage])
    assert_type(await memory.adelete_messages(["m"]), int)
    assert_type(await memory.aretry_embeddings(), int)
    assert_type(await memory.arecall("t", per_page=10), MessagePage)
    assert_type(await memory.asearch("Lisbon", resource_id="ann"), SearchResult)


async def use_async_turns(memory: Memory) -> None:
    async def answer(context: Context) -> str:
        return context.system_message or "Hi"

    assert_type(await memory.acontext("t"), Context)
    assert_type(await memory.asave_turn("t", "Hello", answer=answer), Turn)
    assert_type(await memory.asummarize_thread("t"), ConversationSummary)
    assert_type(await memory.asummarize_conversation("Hello"), ConversationSummary)
    assert_type(await memory.aget_working_memory("t"), str | None)
    assert_type(await memory.aupdate_working_memory("t", "text"), int)
    assert_type(await memory.aget_system_message("t"), str | None)
    assert_type(await memory.alist_working_memory_revisions("t"), RevisionPage)
    assert_type(await memory.arestore_working_memory("t", 1), int)
    record = await memory.aget_observational_record(thread_id="t")
    assert_type(record, ObservationalRecord | None)
    history = await memory.alist_observational_history(thread_id="t")
    assert_type(history, list[ObservationalRecord])
    assert_type(await memory.await_for_buffering(thread_id="t"), ObservationalRecord | None)
    config = await memory.aupdate_observational_memory_config({}, thread_id="t")
    assert_type(config, ObservationalRecord)
    await use_observations_async(memory)


async def use_observations_async(memory: Memory) -> None:
    assert_type(await memory.aget_observational_status(thread_id="t"), ObservationStatus)
    assert_type(await memory.aget_observations(thread_id="t"), str)
    page = await memory.alist_observational_generations(thread_id="t")
    assert_type(page, GenerationPage)
    assert_type(await memory.aobserve(thread_id="t"), ObservationOutcome)
    assert_type(await memory.areflect(thread_id="t"), ObservationOutcome)
    assert_type(await memory.afinalize_observations(thread_id="t"), ObservationOutcome)
    assert_type(await memory.aclear_observations(thread_id="t"), bool)
    await memory.arequest_observation(thread_id="t")
    await memory.astart_observing(thread_id="t")
    await memory.astart_reflecting(thread_id="t")
    assert_type(await memory.alist_observations(thread_id="t"), list[ObservationEntry])
    found = await memory.alist_messages_of_observation("0.1", thread_id="t")
    assert_type(found, list[StoredMessage])
    assert_type(await memory.atrace_message("m", thread_id="t"), MessageTrace)
    edited = await memory.aedit_observation("0.1", "Likes tea", thread_id="t")
    assert_type(edited, ObservationalRecord)
    assert_type(await memory.apin_observation("1.1", thread_id="t"), ObservationalRecord)
    assert_type(await memory.adelete_observation("1.1", thread_id="t"), ObservationalRecord)
    assert_type(await memory.arestore_observations(0, thread_id="t"), ObservationalRecord)
