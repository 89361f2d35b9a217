"""Twenty conversations, and what each program would write to an export of them."""

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

Json = dict[str, Any]

START = datetime(2024, 5, 1, 10, tzinfo=UTC)


@dataclass(frozen=True)
class Turn:
    """A message of a conversation."""

    role: str
    """`user`, `assistant`, `system`, `call`, `result`, or one that no format has."""
    text: str = ""
    at: float | None = 0.0
    """Seconds after `START`."""
    upload: str = ""
    after: int | None = None
    """The index of the message that this one follows, if it is not the one before it."""

    @property
    def time(self) -> datetime | None:
        return None if self.at is None else START + timedelta(seconds=self.at)

    @property
    def iso(self) -> str | None:
        return None if self.time is None else self.time.isoformat()

    @property
    def seconds(self) -> float | None:
        return None if self.time is None else self.time.timestamp()


def talk(*turns: tuple[str, str] | Turn) -> list[Turn]:
    """Return turns that are 10 seconds apart."""
    return [
        turn if isinstance(turn, Turn) else Turn(turn[0], turn[1], 10.0 * number)
        for number, turn in enumerate(turns)
    ]


CALL, RESULT = ("call", '{"city": "Paris"}'), ("result", '{"degrees": 21}')
QUESTION, ANSWER = ("user", "Is tea green?"), ("assistant", "It can be.")

CONVERSATIONS: dict[str, list[Turn]] = {
    "plain": talk(QUESTION, ANSWER),
    "long": talk(*[QUESTION, ANSWER] * 15),
    "empty text": talk(QUESTION, ("assistant", ""), ("user", " "), ANSWER),
    "only an upload": talk(Turn("user", "", 0, upload="budget.xlsx"), ANSWER),
    "upload with text": talk(Turn("user", "Read it", 0, upload="plan.pdf"), ANSWER),
    "tool call": talk(QUESTION, CALL, RESULT, ANSWER),
    "call without a result": talk(QUESTION, CALL),
    "two calls": talk(QUESTION, CALL, RESULT, CALL, RESULT, ANSWER),
    "result without a call": talk(QUESTION, RESULT),
    "instructions": talk(("system", "Obey"), QUESTION, ANSWER),
    "unknown role": talk(QUESTION, ("martian", "Zork"), ANSWER),
    "no times": [replace(turn, at=None) for turn in talk(QUESTION, ANSWER, QUESTION)],
    "decreasing times": talk(Turn(*QUESTION, 50), Turn(*ANSWER, 10), Turn(*QUESTION, None)),
    "odd times": talk(Turn(*QUESTION, -1714557600), Turn(*ANSWER, 2e11)),
    "other scripts": talk(("user", "تحية 🍵 \u2028 茶"), ("assistant", "\x00 \ud800 Ünïcödé")),
    "markup": talk(("user", "<b>&amp;</b> ```py\nx\n```"), ("assistant", '{"a": [1]} | "q"')),
    "edited question": talk(QUESTION, ANSWER, Turn("user", "Milk?", 30, after=None), ANSWER,
                            Turn("user", "Juice?", 60, after=1)),
    "regenerated answer": talk(QUESTION, ANSWER, Turn("assistant", "No.", 30, after=0)),
    "long text": talk(("user", "word " * 20_000), ANSWER),
    "empty": [],
}  # fmt: skip


def render_chatgpt(name: str, turns: Sequence[Turn]) -> Json:
    nodes: Json = {"root": {"parent": None, "message": None}}
    for index, turn in enumerate(turns):
        role = {"call": "assistant", "result": "tool"}.get(turn.role, turn.role)
        uploads = [{"id": f"file-{index}", "name": turn.upload}] if turn.upload else []
        message: Json = {
            "author": {"role": role, "name": "weather" if role == "tool" else None},
            "create_time": turn.seconds,
            "content": {"content_type": "text", "parts": [turn.text]},
            "recipient": "weather" if turn.role == "call" else "all",
            "metadata": {"attachments": uploads},
        }
        nodes[f"n{index}"] = {"parent": _get_parent(index, turn, "root"), "message": message}
    return {
        "conversation_id": name,
        "title": name,
        "create_time": START.timestamp(),
        "mapping": nodes,
        "current_node": list(nodes)[-1],
    }


def _get_parent(index: int, turn: Turn, root: Any) -> Any:
    if turn.after is not None:
        return f"n{turn.after}"
    return f"n{index - 1}" if index else root


def render_claude(name: str, turns: Sequence[Turn]) -> Json:
    messages = []
    for index, turn in enumerate(turns):
        sender = {"user": "human", "call": "assistant", "result": "assistant"}
        block: Json = {"type": "text", "text": turn.text}
        if turn.role == "call":
            block = {"type": "tool_use", "name": "weather", "input": json.loads(turn.text)}
        elif turn.role == "result":
            block = {"type": "tool_result", "name": "weather", "content": turn.text}
        messages.append(
            {
                "uuid": f"n{index}",
                "sender": sender.get(turn.role, turn.role),
                "created_at": turn.iso,
                "parent_message_uuid": _get_parent(index, turn, "root"),
                "content": [block] if turn.text else [],
                "files": [{"file_name": turn.upload}] if turn.upload else [],
            }
        )
    return {
        "uuid": name, "name": name, "created_at": START.isoformat(), "chat_messages": messages,
    }  # fmt: skip


def _render_chat(turns: Sequence[Turn]) -> list[Json]:
    """Return messages of OpenAI's chat API."""
    messages: list[Json] = []
    for index, turn in enumerate(turns):
        function = {"name": "weather", "arguments": turn.text}
        if turn.role == "call":
            call = {"id": "call_1", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        elif turn.role == "result":
            messages.append({"role": "tool", "tool_call_id": "call_1", "content": turn.text})
        elif turn.upload:
            file = {"type": "file", "file": {"file_id": f"f{index}", "filename": turn.upload}}
            messages.append(
                {"role": turn.role, "content": [{"type": "text", "text": turn.text}, file]}
            )
        else:
            messages.append({"role": turn.role, "content": turn.text})
    return messages


def render_openai(name: str, turns: Sequence[Turn]) -> Json:
    return {"id": name, "messages": _render_chat(turns)}


def render_wildchat(name: str, turns: Sequence[Turn]) -> Json:
    messages = _render_chat(turns)
    for message, turn in zip(messages, turns, strict=True):
        message["timestamp"] = turn.iso
    return {"conversation_hash": name, "model": "gpt-4", "conversation": messages}


def render_sharegpt(name: str, turns: Sequence[Turn]) -> Json:
    speakers = {"user": "Human", "assistant": "GPT", "call": "function_call"}
    speakers["result"] = "observation"
    values = [{"from": speakers.get(t.role, t.role), "value": t.text} for t in turns]
    return {"id": name, "conversations": values}


def render_locomo(name: str, turns: Sequence[Turn]) -> Json:
    names = {"user": "Ann", "assistant": "Ben"}
    session = [{"speaker": names.get(t.role, t.role), "text": t.text} for t in turns]
    return {
        "sample_id": name,
        "conversation": {
            "speaker_a": "Ann", "speaker_b": "Ben", "session_1": session,
            "session_1_date_time": "1:56 pm on 8 May, 2023",
        },
    }  # fmt: skip


def render_openwebui(name: str, turns: Sequence[Turn]) -> Json:
    messages: Json = {}
    for index, turn in enumerate(turns):
        message: Json = {
            "id": f"n{index}",
            "parentId": _get_parent(index, turn, None),
            "role": {"call": "assistant", "result": "tool"}.get(turn.role, turn.role),
            "content": turn.text,
            "timestamp": turn.seconds,
        }
        if turn.role in ("call", "result"):
            attributes = f'name="weather" arguments="{turn.text.replace(chr(34), "&quot;")}"'
            message["role"] = "assistant"
            message["content"] = f'<details type="tool_calls" done="false" {attributes}></details>'
        if turn.upload:
            message["files"] = [{"type": "file", "name": turn.upload}]
        messages[f"n{index}"] = message
    history = {"messages": messages, "currentId": next(reversed(messages), None)}
    chat = {"title": name, "models": ["llama3"], "history": history}
    return {"id": name, "user_id": "u1", "title": name, "chat": chat, "created_at": 1714557600}


def render_librechat(name: str, turns: Sequence[Turn]) -> Json:
    messages = []
    for index, turn in enumerate(turns):
        message: Json = {
            "messageId": f"n{index}",
            "parentMessageId": _get_parent(index, turn, "00000000-0000-0000-0000-000000000000"),
            "isCreatedByUser": turn.role == "user",
            "sender": turn.role,
            "text": turn.text,
            "createdAt": turn.iso,
        }
        if turn.role == "call":
            call = {"id": f"c{index}", "name": "weather", "args": turn.text, "type": "tool_call"}
            message |= {"text": "", "content": [{"type": "tool_call", "tool_call": call}]}
        if turn.upload:
            message["files"] = [{"filename": turn.upload, "type": "application/pdf"}]
        messages.append(message)
    return {"conversationId": name, "title": name, "endpoint": "openAI", "messages": messages}


def render_responses(name: str, turns: Sequence[Turn]) -> Json:
    items: list[Json] = []
    for turn in turns:
        if turn.role == "call":
            items.append({"type": "function_call", "call_id": "c1", "name": "weather",
                          "arguments": turn.text})  # fmt: skip
        elif turn.role == "result":
            items.append({"type": "function_call_output", "call_id": "c1", "output": turn.text})
        else:
            kind = "output_text" if turn.role == "assistant" else "input_text"
            content: list[Json] = [{"type": kind, "text": turn.text}]
            if turn.upload:
                content.append({"type": "input_file", "filename": turn.upload})
            items.append({"type": "message", "role": turn.role, "content": content})
    return {
        "id": f"resp_{name}", "object": "response", "created_at": 1714557600, "model": "gpt-5",
        "input": items, "output": [],
    }  # fmt: skip


def render_anthropic(name: str, turns: Sequence[Turn]) -> Json:
    messages: list[Json] = []
    for turn in turns:
        if turn.role == "call":
            block: Json = {"type": "tool_use", "id": "c1", "name": "weather",
                           "input": json.loads(turn.text)}  # fmt: skip
            messages.append({"role": "assistant", "content": [block]})
        elif turn.role == "result":
            block = {"type": "tool_result", "tool_use_id": "c1", "content": turn.text}
            messages.append({"role": "user", "content": [block]})
        elif turn.upload:
            source = {"type": "file", "file_id": "f1"}
            document = {"type": "document", "title": turn.upload, "source": source}
            text = [{"type": "text", "text": turn.text}] if turn.text else []
            messages.append({"role": turn.role, "content": [document, *text]})
        else:
            messages.append({"role": turn.role, "content": turn.text})
    return {"custom_id": name, "params": {"model": "claude-x", "messages": messages}}


def _render_steps(turns: Sequence[Turn]) -> list[tuple[list[Json], list[Json], Turn]]:
    """Return the input, the output and the time of each request: one for each answer."""
    steps: list[tuple[list[Json], list[Json], Turn]] = []
    messages = _render_chat(turns)
    for index, turn in enumerate(turns):
        is_last = index == len(turns) - 1
        if turn.role == "assistant" or is_last:
            output = [messages[index]] if turn.role == "assistant" else []
            steps.append((messages[: index + 1 - len(output)], output, turn))
    return steps


def render_langfuse(name: str, turns: Sequence[Turn]) -> list[Json]:
    return [
        {
            "id": f"{name}-{number}", "sessionId": name, "userId": "u1", "timestamp": turn.iso,
            "input": {"messages": inputs}, "output": outputs[0] if outputs else None,
        }
        for number, (inputs, outputs, turn) in enumerate(_render_steps(turns))
    ]  # fmt: skip


def render_langsmith(name: str, turns: Sequence[Turn]) -> list[Json]:
    return [
        {
            "id": f"{name}-{number}", "run_type": "chain", "parent_run_id": None,
            "start_time": turn.iso, "extra": {"metadata": {"thread_id": name}},
            "inputs": {"messages": inputs}, "outputs": {"messages": outputs},
        }
        for number, (inputs, outputs, turn) in enumerate(_render_steps(turns))
    ]  # fmt: skip


RENDERERS: dict[str, Callable[[str, Sequence[Turn]], Any]] = {
    "chatgpt": render_chatgpt,
    "claude": render_claude,
    "openai": render_openai,
    "sharegpt": render_sharegpt,
    "locomo": render_locomo,
    "openwebui": render_openwebui,
    "librechat": render_librechat,
    "openai-responses": render_responses,
    "anthropic": render_anthropic,
    "wildchat": render_wildchat,
    "langfuse": render_langfuse,
    "langsmith": render_langsmith,
}


def render_all(format: str) -> list[Json]:
    """Return the records of all conversations in a format."""
    records: list[Json] = []
    for name, turns in CONVERSATIONS.items():
        rendered = RENDERERS[format](name, turns)
        records.extend(rendered if isinstance(rendered, list) else [rendered])
    return records
