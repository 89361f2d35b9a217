"""Tests that odd values anywhere in a source are refused or stored, and never raise."""

import copy
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from mastra_memory.importers.records import RecordKind, ResourceMapping
from tests.support.importing import count_outcomes, import_path

pytestmark = pytest.mark.django_db

WHEN = "2024-01-01T00:00:00Z"
CONTENT = {"content_type": "text", "parts": ["Hi", {"content_type": "image_asset_pointer"}]}
RECORDS: dict[str, list[Any]] = {
    "chatgpt": [
        {
            "id": "c",
            "title": "A talk",
            "create_time": 1700000000.5,
            "update_time": 1700000009,
            "current_node": "b",
            "mapping": {
                "root": {"parent": None, "message": None},
                "a": {
                    "parent": "root",
                    "message": {"author": {"role": "user"}, "content": CONTENT},
                },
                "b": {
                    "parent": "a",
                    "message": {
                        "author": {"role": "assistant"},
                        "create_time": 1700000003,
                        "recipient": "python",
                        "content": {"content_type": "code", "language": "python", "text": "1"},
                        "metadata": {"model_slug": "m"},
                    },
                },
                "c": {"parent": "a", "message": {"author": {"role": "tool", "name": "python"}}},
            },
        }
    ],
    "claude": [
        {
            "uuid": "c",
            "name": "A talk",
            "created_at": WHEN,
            "account": {"uuid": "me"},
            "chat_messages": [
                {
                    "uuid": "a",
                    "sender": "human",
                    "created_at": WHEN,
                    "text": "Hi",
                    "attachments": [{"file_name": "f", "extracted_content": "x"}],
                    "files": [{"file_name": "g"}],
                },
                {
                    "uuid": "b",
                    "parent_message_uuid": "a",
                    "sender": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "x"},
                        {"type": "tool_use", "id": "1", "name": "f", "input": {}},
                        {"type": "tool_result", "tool_use_id": "1", "content": []},
                    ],
                },
            ],
        }
    ],
    "openai": [
        {
            "id": "c",
            "user": "me",
            "created": 1700000000,
            "messages": [
                {"role": "user", "name": "n", "content": [{"type": "text", "text": "Hi"}]},
                {
                    "role": "assistant",
                    "refusal": "No",
                    "tool_calls": [{"id": "1", "function": {"name": "f", "arguments": "{}"}}],
                },
                {"role": "tool", "tool_call_id": "1", "content": "4"},
            ],
        }
    ],
    "sharegpt": [
        {
            "id": "c",
            "conversations": [
                {"from": "human", "value": "Hi"},
                {"from": "function_call", "value": "{}"},
                {"from": "observation", "value": "4"},
            ],
        }
    ],
    "locomo": [
        {
            "sample_id": "c",
            "conversation": {
                "speaker_a": "Ann",
                "speaker_b": "Ben",
                "session_1": [{"speaker": "Ann", "text": "Hi", "img_url": ["x"], "query": "q"}],
                "session_1_date_time": "1:56 pm on 8 May, 2023",
            },
        }
    ],
    "openwebui": [
        {
            "id": "c",
            "user_id": "me",
            "title": "A talk",
            "created_at": 1700000000,
            "chat": {
                "models": ["m"],
                "history": {
                    "currentId": "b",
                    "messages": {
                        "a": {"role": "user", "content": "Hi", "files": [{"name": "f"}]},
                        "b": {
                            "parentId": "a",
                            "role": "assistant",
                            "timestamp": 1700000003,
                            "content": '<details type="reasoning"><summary>x</summary>y</details>',
                            "output": [{"type": "function_call", "call_id": "1", "name": "f"}],
                            "sources": [{"source": {"name": "n"}, "metadata": [{"source": "u"}]}],
                            "error": {"content": "e"},
                        },
                    },
                },
            },
        }
    ],
    "librechat": [
        {
            "conversationId": "c",
            "title": "A talk",
            "options": {"model": "m"},
            "messagesTree": [
                {
                    "messageId": "a",
                    "isCreatedByUser": True,
                    "text": "Hi",
                    "createdAt": WHEN,
                    "files": [{"filename": "f", "type": "image/png", "filepath": "/x"}],
                    "children": [
                        {
                            "messageId": "b",
                            "sender": "GPT",
                            "content": [
                                {"type": "think", "think": "x"},
                                {"type": "tool_call", "tool_call": {"name": "f", "args": "{}"}},
                            ],
                        }
                    ],
                }
            ],
        }
    ],
    "openai-responses": [
        {
            "id": "r1",
            "object": "response",
            "created_at": 1700000000,
            "previous_response_id": None,
            "conversation": {"id": "c"},
            "user": "me",
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}],
            "output": [
                {"type": "reasoning", "summary": [{"type": "summary_text", "text": "x"}]},
                {"type": "function_call", "call_id": "1", "name": "f", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "1", "output": "4"},
            ],
        },
        {
            "object": "list",
            "data": [
                {
                    "object": "thread.message",
                    "thread_id": "t",
                    "role": "user",
                    "created_at": 1700000000,
                    "content": [{"type": "text", "text": {"value": "Hi"}}],
                    "attachments": [{"file_id": "f"}],
                },
                {
                    "object": "thread.run.step",
                    "thread_id": "t",
                    "step_details": {"tool_calls": [{"type": "function", "function": {}}]},
                },
            ],
        },
    ],
    "anthropic": [
        {
            "custom_id": "c",
            "params": {
                "system": "Obey",
                "metadata": {"user_id": "me"},
                "messages": [
                    {"role": "user", "content": "Hi"},
                    {
                        "role": "assistant",
                        "content": [
                            {"type": "thinking", "thinking": "x"},
                            {"type": "tool_use", "id": "1", "name": "f", "input": {}},
                        ],
                    },
                    {
                        "role": "user",
                        "content": [
                            {"type": "tool_result", "tool_use_id": "1", "content": "4"},
                            {"type": "image", "source": {"type": "base64", "data": "eA=="}},
                        ],
                    },
                ],
            },
        },
        {
            "custom_id": "c",
            "result": {
                "message": {
                    "type": "message",
                    "role": "assistant",
                    "content": [{"type": "text", "text": "Hi", "citations": [{"url": "u"}]}],
                }
            },
        },
    ],
    "langfuse": [
        {
            "id": "t",
            "sessionId": "s",
            "userId": "me",
            "timestamp": WHEN,
            "input": {"messages": [{"role": "user", "content": "Hi"}]},
            "output": {"choices": [{"message": {"role": "assistant", "content": "Hello"}}]},
        }
    ],
    "langsmith": [
        {
            "id": "r",
            "run_type": "chain",
            "parent_run_id": None,
            "start_time": WHEN,
            "extra": {"metadata": {"thread_id": "t", "user_id": "me"}},
            "inputs": {
                "messages": [[{"lc": 1, "id": ["x", "HumanMessage"], "kwargs": {"content": "Hi"}}]]
            },
            "outputs": {
                "generations": [
                    [
                        {
                            "message": {
                                "type": "ai",
                                "content": "Hello",
                                "tool_calls": [{"id": "1", "name": "f", "args": {}}],
                            }
                        }
                    ]
                ]
            },
        }
    ],
    "wildchat": [
        {
            "conversation_hash": "c",
            "hashed_ip": "me",
            "timestamp": WHEN,
            "conversation": [{"role": "user", "content": "Hi", "timestamp": WHEN}],
        }
    ],
    "own": [
        {
            "kind": "thread",
            "id": "t",
            "resourceId": "r",
            "title": "A talk",
            "titleSource": "manual",
            "cloneSourceId": None,
            "createdAt": WHEN,
            "updatedAt": WHEN,
            "metadata": {},
        },
        {
            "kind": "message",
            "id": "m",
            "threadId": "t",
            "resourceId": "r",
            "role": "user",
            "type": "v2",
            "createdAt": WHEN,
            "editedAt": None,
            "content": {"format": 2, "parts": [{"type": "text", "text": "Hi"}], "metadata": {}},
        },
        {
            "kind": "workingMemory",
            "threadId": "t",
            "resourceId": "r",
            "content": "x",
            "createdAt": WHEN,
            "updatedAt": WHEN,
            "revisions": [{"version": 1, "content": "x", "source": "api", "createdAt": WHEN}],
        },
        {
            "kind": "observationalRecord",
            "id": "o",
            "threadId": "t",
            "resourceId": "r",
            "generationCount": 0,
            "originType": "initial",
            "totalTokensObserved": 1,
            "observedMessageIds": ["m"],
            "lastObservedAt": None,
            "config": {},
            "createdAt": WHEN,
            "updatedAt": WHEN,
            "chunks": [{"id": "c", "cycleId": "d", "tokenCount": 1, "messageIds": ["m"]}],
        },
    ],
}
ODD = (
    *("null", "true", "-1", "1.5", "1e400", "-1e400", "1e308", "9" * 30, "253402300799.999"),
    *('""', '"\\u0000"', '"\\ud800"', '"a"', json.dumps("i" * 1100), "[" * 300 + "]" * 300),
    *("[]", "{}", "[[]]", "[{}]", '{"a":[1]}', '"9999-12-31T23:59:59.999Z"', '"2024-02-30"'),
)
ODD_KEYS = ("", "\x00", "session_01", "session_٣", f"session_{'9' * 5_000}")


def iter_paths(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of every value inside a JSON value."""
    inner = value.items() if isinstance(value, dict) else enumerate(value)
    for key, part in inner:
        yield (*path, key)
        if isinstance(part, dict | list):
            yield from iter_paths(part, (*path, key))


def iter_variants(record: Any) -> Iterator[str]:
    """Yield the record as JSON with each odd value, and each odd key, at each path."""
    for *parents, last in iter_paths(record):
        changed = copy.deepcopy(record)
        inner = changed
        for key in parents:
            inner = inner[key]
        value, inner[last] = inner[last], "@here@"
        template = json.dumps(changed)
        yield from (template.replace('"@here@"', value) for value in ODD)
        if isinstance(inner, dict):
            del inner[last]
            yield from (_dump_with_key(changed, inner, key, value) for key in ODD_KEYS)


def _dump_with_key(whole: Any, inner: dict[str, Any], key: str, value: Any) -> str:
    inner[key] = value
    text = json.dumps(whole)
    del inner[key]
    return text


@pytest.mark.parametrize("name", RECORDS)
def test_load__odd_values_never_raise(tmp_path: Path, name: str) -> None:
    lines = [
        line for record in RECORDS[name] for line in (json.dumps(record), *iter_variants(record))
    ]
    path = tmp_path / "source.jsonl"
    path.write_text("\n".join(lines))
    report = import_path(path, ResourceMapping(prefix="x-"), format=name)
    # The traces of one session are one thread, in which repeated messages are joined.
    kind: RecordKind = "messages" if name in ("langfuse", "langsmith") else "threads"
    assert report.count_read(kind) > 100 and count_outcomes(report, "messages")["stored"] > 0
    assert (
        import_path(path, ResourceMapping(prefix="x-"), format=name).get_count("threads", "stored")
        == 0
    )
