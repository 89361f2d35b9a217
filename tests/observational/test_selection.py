"""What one call of the Observer reads."""

import pytest

from mastra_memory.observational import selection
from mastra_memory.types import StoredMessage
from tests.support.factories import api_time


def call(message_id: str, at: float, call_id: str | None, *, done: bool = False) -> StoredMessage:
    part = '{"type":"text","text":"x"}'
    if call_id:
        state = "result" if done else "call"
        part = (
            '{"type":"tool-invocation","toolInvocation":'
            f'{{"toolCallId":"{call_id}","toolName":"t","state":"{state}"}}}}'
        )
    content = f'{{"format":2,"parts":[{part}]}}'
    return StoredMessage(message_id, "t", "r", "assistant", "v2", content, api_time(at), 0)


@pytest.mark.parametrize(
    ("messages", "kept"),
    [
        ([call("m1", 1, None), call("m2", 2, None)], ["m1", "m2"]),
        ([call("m1", 1, None), call("m2", 2, "c1")], ["m1"]),
        ([call("m1", 1, None), call("m2", 2, "c1", done=True)], ["m1", "m2"]),
        ([call("m1", 2, None), call("m2", 2, "c1")], []),
        ([call("m1", 1.9995, None), call("m2", 2, "c1")], []),
        ([call("m1", 1, "c1"), call("m2", 2, "c1")], []),
        ([call("m1", 1, "c1"), call("m2", 2, None)], ["m1", "m2"]),
        ([], []),
    ],
)
def test_drop_pending_call__never_splits_a_call_and_its_outcome(
    messages: list[StoredMessage], kept: list[str]
) -> None:
    assert [message.id for message in selection.drop_pending_call(messages)] == kept
