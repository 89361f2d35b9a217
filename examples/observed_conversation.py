"""A long conversation that becomes a dated log, turn by turn, without a key.

    python -m examples.observed_conversation

The conversation is put together from the sample conversations. `local/extractive` observes it with
small thresholds. To use a real model, set MASTRA_MEMORY_MODEL=openai/gpt-5-mini and OPENAI_API_KEY,
or name any server that speaks OpenAI's protocol: MASTRA_MEMORY_MODEL=home/llama HOME_BASE_URL=...
"""

import os
import uuid
from collections.abc import Iterator
from itertools import islice
from typing import Any

from examples.django_setup import prepare, say

THRESHOLD = "600"
"""Tokens of messages from which they are observed, and of the log from which it is condensed."""
MAX_MESSAGES = 60


def iterate_turns() -> Iterator[tuple[str, Any]]:
    """Yield the role and the content of the messages of several sample conversations."""
    from project import samples

    messages = (
        (role, content)
        for conversation in samples.read_conversations()
        for _, role, content in samples.iterate_messages(conversation)
    )
    yield from islice(messages, MAX_MESSAGES)


def main() -> None:
    """Play the conversation, then correct what is remembered of it."""
    os.environ.setdefault("MASTRA_MEMORY_OBSERVE_FROM", THRESHOLD)
    prepare()
    from mastra_memory.memory import Memory, maintenance

    memory, thread_id = Memory(), f"long-{uuid.uuid4().hex[:8]}"
    memory.create_thread("reader", thread_id=thread_id)
    about = {"thread_id": thread_id}
    said = largest = 0
    for number, (role, content) in enumerate(iterate_turns(), 1):
        message = {"role": role, "content": content, "threadId": thread_id, "resourceId": "reader"}
        memory.save_messages([message])
        status = memory.get_observational_status(**about)
        due, before = status.needs_work, status.pending_tokens
        maintenance.run_due_observations()  # A Celery worker would do it.
        built = memory.context(thread_id, resource_id="reader")
        said, largest = number, max(largest, built.tokens)
        if due:
            after = memory.get_observational_status(**about)
            say(
                f"{number:3} messages: history {before:4} -> {after.pending_tokens:4} tokens,"
                f" {after.chunk_count} chunks, log {after.observation_tokens:4} tokens,"
                f" generation {after.record.generation_count if after.record else 0}"
            )
    say(f"\n{said} messages were said. No context had more than {largest} tokens.\n")
    memory.finalize_observations(**about)
    say(memory.get_observations(**about))
    correct(memory, thread_id)


def correct(memory: Any, thread_id: str) -> None:
    """Trace an observation to its messages, pin it, edit another one, and undo that."""
    about = {"thread_id": thread_id}
    first, second, *_ = memory.list_observations(**about)
    messages = memory.list_messages_of_observation(first.id, **about)
    say(f"\nObservation {first.id} was made of {len(messages)} messages.")
    memory.pin_observation(first.id, **about, user_name="Ann")
    record = memory.get_observational_record(**about)
    address = f"{record.generation_count}.{second.item.line}"
    memory.edit_observation(address, "Corrected by a person", **about, user_name="Ann")
    say(f"Ann corrected it: {'Corrected by a person' in memory.get_observations(**about)}")
    memory.restore_observations(record.generation_count, **about, user_name="Ann")
    say(f"Ann undid it: {'Corrected by a person' not in memory.get_observations(**about)}")


if __name__ == "__main__":
    main()
