"""A long conversation that becomes a dated log, turn by turn, without a key.

    python -m examples.observed_conversation [LOCOMO.json]

It plays a sample conversation, or the sessions of a LoCoMo file as one conversation, with small
thresholds. `local/extractive` observes. For a real model, set its key and give its name, or give
the address of any server that speaks OpenAI's protocol:

    python -m examples.observed_conversation --model openai/gpt-5-mini
    python -m examples.observed_conversation --model home/llama --base-url http://host:8080/v1
"""

import argparse
import json
import os
import uuid
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any

from examples.django_setup import prepare, say

if TYPE_CHECKING:
    from mastra_memory.memory import Memory

SAMPLE = "sample-postgres-upgrade"
PAUSE = timedelta(seconds=40)
"""The time between two messages of a LoCoMo session, which has no times."""

Message = tuple[datetime, str, Any]
State = tuple[int, int, int]


def parse_arguments() -> argparse.Namespace:
    """Read the command line."""
    parser = argparse.ArgumentParser(description="Observe a long conversation.")
    parser.add_argument("file", nargs="?", type=Path, help="a conversation of LoCoMo")
    parser.add_argument("--model", default="local/extractive", help="provider/model")
    parser.add_argument("--base-url", help="the address of a server with OpenAI's protocol")
    parser.add_argument("--api-key", default="no-key", help="the key of that server")
    parser.add_argument("--tokens", type=int, default=800, help="observe and reflect from here")
    parser.add_argument("--messages", type=int, help="play only this many messages")
    return parser.parse_args()


def configure(arguments: argparse.Namespace) -> None:
    """Set the variables that the settings read when Django is set up."""
    os.environ["MASTRA_MEMORY_MODEL"] = arguments.model
    os.environ["MASTRA_MEMORY_OBSERVE_FROM"] = str(arguments.tokens)
    if arguments.base_url:
        provider = arguments.model.partition("/")[0].upper().replace("-", "_")
        os.environ[f"{provider}_BASE_URL"] = arguments.base_url
        os.environ[f"{provider}_API_KEY"] = arguments.api_key


def read_sample() -> Iterator[Message]:
    """Yield the time, role and content of each message of the sample conversation."""
    from project import samples

    conversations = samples.read_conversations()
    conversation = next(item for item in conversations if item["thread"]["id"] == SAMPLE)
    yield from samples.iterate_messages(conversation)


def read_locomo(path: Path) -> Iterator[Message]:
    """Yield the messages of all sessions. The first speaker is the user."""
    conversation = json.loads(path.read_text(encoding="utf-8"))["conversation"]
    number = 1
    while turns := conversation.get(f"session_{number}"):
        date = conversation[f"session_{number}_date_time"]
        start = datetime.strptime(date, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
        for index, turn in enumerate(turns):
            role = "user" if turn["speaker"] == conversation["speaker_a"] else "assistant"
            yield start + index * PAUSE, role, turn["text"]
        number += 1


def play(memory: "Memory", thread_id: str, messages: Sequence[Message]) -> None:
    """Save the messages one after the other, and print what observational memory did."""
    from mastra_memory.memory import maintenance

    say("message  context  history   log  chunks  generation")
    before: State = (0, 0, 0)
    for number, (moment, role, content) in enumerate(messages, 1):
        message = {"role": role, "content": content, "createdAt": moment.isoformat()}
        memory.save_messages([message | {"threadId": thread_id, "resourceId": thread_id}])
        maintenance.run_due_observations()  # A Celery worker would do it.
        status = memory.get_observational_status(thread_id=thread_id)
        generation = status.record.generation_count if status.record else 0
        after = (status.chunk_count, generation, status.observation_tokens)
        if after != before or number == len(messages):
            context = memory.context(thread_id)
            say(
                f"{number:7}  {context.tokens:7}  {status.pending_tokens:7}"
                f"  {status.observation_tokens:4}  {status.chunk_count:6}  {generation:10}"
                f"  {describe_change(before, after)}"
            )
        before = after


def describe_change(before: State, after: State) -> str:
    """Return what happened, from the number of chunks, the generation and the size of the log."""
    if after[1] > before[1]:
        return "reflected: the older observations are condensed"
    if after[2] > before[2]:
        return "activated: observations replace messages" if before[0] else "observed"
    return "buffered: observed in advance" if after[0] > before[0] else ""


def correct(memory: "Memory", thread_id: str) -> None:
    """Trace an observation to its messages, pin it, edit another one, and undo that."""
    first, second, *_ = memory.list_observations(thread_id=thread_id)
    messages = memory.list_messages_of_observation(first.id, thread_id=thread_id)
    say(f"\nObservation {first.id} was made of {len(messages)} messages.")
    pinned = memory.pin_observation(first.id, thread_id=thread_id, user_name="Ann")
    generation = pinned.generation_count
    address, text = f"{generation}.{second.item.line}", "Corrected by a person"
    memory.edit_observation(address, text, thread_id=thread_id, user_name="Ann")
    say(f"Ann corrected it: {text in memory.get_observations(thread_id=thread_id)}")
    memory.restore_observations(generation, thread_id=thread_id, user_name="Ann")
    say(f"Ann undid it: {text not in memory.get_observations(thread_id=thread_id)}")


def main() -> None:
    """Play the conversation, print the log, and correct it."""
    arguments = parse_arguments()
    configure(arguments)
    prepare()
    from mastra_memory.memory import Memory

    messages = list(read_locomo(arguments.file) if arguments.file else read_sample())
    messages = messages[: arguments.messages]
    memory, thread_id = Memory(), f"observed-{uuid.uuid4().hex[:8]}"
    memory.create_thread(thread_id, thread_id=thread_id)
    say(f"{len(messages)} messages, observed by {arguments.model}\n")
    play(memory, thread_id, messages)
    memory.finalize_observations(thread_id=thread_id)
    say("\nGenerations of the log, at the end of the conversation:")
    for record in reversed(memory.list_observational_history(thread_id=thread_id)):
        say(f"{record.generation_count:3}  {record.observation_token_count} tokens")
    if error := memory.get_observational_status(thread_id=thread_id).error:
        say(f"The last attempt failed: {error}")
    say(f"\nThe log:\n\n{memory.get_observations(thread_id=thread_id)}")
    correct(memory, thread_id)


if __name__ == "__main__":
    main()
