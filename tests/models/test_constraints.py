"""Constraints of the database: what it refuses from any client."""

from typing import Any

import pytest
from django.db import IntegrityError, transaction

from mastra_memory.db import sql
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory
from tests.support.factories import a_message, make_chunk, make_record, make_thread, save

pytestmark = pytest.mark.django_db

THREAD = "INSERT INTO mastra_memory_thread (id, resource_id, title, title_source, metadata) VALUES "
MESSAGE = """INSERT INTO mastra_memory_message
    (id, thread_id, resource_id, role, type, signal, content, text) VALUES """
MEMORY = """INSERT INTO mastra_memory_workingmemory
    (scope, thread_id, resource_id, content, version) VALUES """
RECORD = """INSERT INTO mastra_memory_observationalrecord
    (id, scope, thread_id, resource_id, generation_count, origin_type, active_observations,
    observation_token_count, total_tokens_observed, pending_message_tokens, observed_timezone,
    last_buffered_at_tokens, buffered_reflection, config) VALUES """
TRACKING = """INSERT INTO mastra_memory_messageobservation
    (message_id, scope, thread_id, resource_id) VALUES """
EVENT = """INSERT INTO mastra_memory_observationevent
    (record_id, cycle_id, data, operation, state, finished_at) SELECT id, 'c', '{}', """
RECORDS = "mastra_memory_observationalrecord"
REST = "'initial', '', 0, 0, 0, '', 0, '', '{}'"
LONG_ID = "i" * 1025
VALID = [
    THREAD + "('x', 'r', '', '', NULL)",
    THREAD + "('x', 'r', '', '', '{}')",
    MESSAGE + "('x', 't', 'r', 'user', 'v2', '', '{}', '')",
    MEMORY + "('thread', 't', 'r', '', 1)",
    MEMORY + "('resource', NULL, 'x', '', 1)",
    RECORD + f"('x', 'thread', 't2', 'r', 7, {REST})",
    RECORD + f"('x', 'resource', NULL, 'x', 7, {REST})",
    f"""WITH old AS (UPDATE mastra_memory_observationalrecord SET superseded_by_id = 'x'
        WHERE thread_id = 't') {RECORD} ('x', 'thread', 't2', 'r', 7, {REST})""",
    TRACKING + "('m', 'thread', 't', 'r')",
    TRACKING + "('m', 'resource', 't', 'r')",
    EVENT + "'activation', 'done', now() FROM mastra_memory_observationalrecord LIMIT 1",
]
INVALID = {
    "thread: empty id": THREAD + "('', 'r', '', '', NULL)",
    "thread: empty resource": THREAD + "('x', '', '', '', NULL)",
    "thread: long id": THREAD + f"('{LONG_ID}', 'r', '', '', NULL)",
    "thread: long resource": THREAD + f"('x', '{LONG_ID}', '', '', NULL)",
    "thread: id taken": THREAD + "('t', 's', '', '', NULL)",
    "thread: no resource": THREAD + "('x', NULL, '', '', NULL)",
    "thread: metadata a list": THREAD + "('x', 'r', '', '', '[]')",
    "thread: metadata null": THREAD + "('x', 'r', '', '', 'null')",
    "message: empty id": MESSAGE + "('', 't', 'r', 'user', 'v2', '', '{}', '')",
    "message: long id": MESSAGE + f"('{LONG_ID}', 't', 'r', 'user', 'v2', '', '{{}}', '')",
    "message: id taken": MESSAGE + "('m', 't', 'r', 'user', 'v2', '', '{}', '')",
    "message: system": MESSAGE + "('x', 't', 'r', 'system', 'v2', '', '{}', '')",
    "message: unknown role": MESSAGE + "('x', 't', 'r', 'robot', 'v2', '', '{}', '')",
    "message: content a list": MESSAGE + "('x', 't', 'r', 'user', 'v2', '', '[]', '')",
    "message: content a text": MESSAGE + "('x', 't', 'r', 'user', 'v2', '', '\"x\"', '')",
    "message: no thread": MESSAGE + "('x', 'missing', 'r', 'user', 'v2', '', '{}', '')",
    "message: another owner": MESSAGE + "('x', 't', 's', 'user', 'v2', '', '{}', '')",
    "message: moved away": "UPDATE mastra_memory_message SET resource_id = 's' WHERE id = 'm'",
    "message: one place": """UPDATE mastra_memory_message SET sequence =
        (SELECT sequence FROM mastra_memory_message WHERE id = 'm'), created_at =
        (SELECT created_at FROM mastra_memory_message WHERE id = 'm') WHERE id = 'm2'""",
    "memory: thread scope alone": MEMORY + "('thread', NULL, 'x', '', 1)",
    "memory: resource scope with thread": MEMORY + "('resource', 't', 'r', '', 1)",
    "memory: unknown scope": MEMORY + "('planet', NULL, 'x', '', 1)",
    "memory: empty resource": MEMORY + "('resource', NULL, '', '', 1)",
    "memory: another owner": MEMORY + "('thread', 't', 's', '', 1)",
    "memory: second of a resource": MEMORY + "('resource', NULL, 'r', '', 1)",
    "memory: second of a thread": MEMORY + "('thread', 't2', 'r', '', 1)",
    "memory: negative version": MEMORY + "('resource', NULL, 'x', '', -1)",
    "revision: one a version": """INSERT INTO mastra_memory_workingmemoryrevision
        (working_memory_id, version, content, source) SELECT working_memory_id, version, '', ''
        FROM mastra_memory_workingmemoryrevision""",
    "revision: of nothing": """INSERT INTO mastra_memory_workingmemoryrevision
        (working_memory_id, version, content, source) VALUES (-1, 9, '', '')""",
    "record: thread scope alone": RECORD + f"('x', 'thread', NULL, 'r', 7, {REST})",
    "record: resource scope with thread": RECORD + f"('x', 'resource', 't', 'r', 7, {REST})",
    "record: another owner": RECORD + f"('x', 'thread', 't', 's', 7, {REST})",
    "record: generation of a thread": RECORD + f"('x', 'thread', 't', 'r', 0, {REST})",
    "record: generation of a resource": RECORD + f"('x', 'resource', NULL, 'r', 0, {REST})",
    "record: negative generation": RECORD + f"('x', 'thread', 't', 'r', -1, {REST})",
    "record: empty id": RECORD + f"('', 'thread', 't', 'r', 7, {REST})",
    "record: second live one of a thread": RECORD + f"('x', 'thread', 't', 'r', 7, {REST})",
    "record: second live one of a resource": RECORD + f"('x', 'resource', NULL, 'r', 7, {REST})",
    "record: supersedes itself": f"UPDATE {RECORDS} SET superseded_by_id = id",
    "record: lease without a token": f"UPDATE {RECORDS} SET lease_operation = 'observing'",
    "record: lease without an end": f"""UPDATE {RECORDS} SET lease_operation = 'observing',
        lease_token = gen_random_uuid()""",
    "record: lease of another operation": f"""UPDATE {RECORDS} SET lease_token = gen_random_uuid(),
        lease_operation = 'reflecting', lease_expires_at = now()""",
    "record: reflection without a token": f"UPDATE {RECORDS} SET reflection_expires_at = now()",
    "record: superseded with a request": f"""UPDATE {RECORDS} SET due_at = now(),
        superseded_by_id = (SELECT id FROM {RECORDS} WHERE thread_id IS NULL)
        WHERE thread_id IS NOT NULL""",
    "record: pinned no list": f"UPDATE {RECORDS} SET pinned = '{{}}'",
    "tracking: twice in a scope": TRACKING + "('m', 'thread', 't', 'r'), ('m', 'thread', 't', 'r')",
    "tracking: unknown scope": TRACKING + "('m', 'planet', 't', 'r')",
    "tracking: no message": TRACKING + "('missing', 'thread', 't', 'r')",
    "tracking: no chunk": """INSERT INTO mastra_memory_messageobservation
        (message_id, scope, thread_id, resource_id, chunk_id)
        VALUES ('m', 'thread', 't', 'r', 'missing')""",
    "event: of nothing": """INSERT INTO mastra_memory_observationevent
        (record_id, cycle_id, data, operation) VALUES ('missing', 'c', '{}', 'edit')""",
    "event: finished without a time": EVENT + f"'edit', 'done', NULL::timestamptz FROM {RECORDS}",
    "event: running and finished": EVENT + f"'edit', 'running', now() FROM {RECORDS}",
    "chunk: one call of a record": """INSERT INTO mastra_memory_observationchunk (id, record_id,
        position, cycle_id, observations, token_count, message_ids, message_tokens,
        last_observed_at, hints)
        SELECT 'x', record_id, position + 1, cycle_id, '', 0, '[]', 0, now(), '{}'
        FROM mastra_memory_observationchunk""",
    "chunk: one place": """INSERT INTO mastra_memory_observationchunk (id, record_id, position,
        cycle_id, observations, token_count, message_ids, message_tokens, last_observed_at, hints)
        SELECT 'x', record_id, position, '', '', 0, '[]', 0, now(), '{}'
        FROM mastra_memory_observationchunk""",
    "chunk: of nothing": """INSERT INTO mastra_memory_observationchunk (id, record_id, position,
        cycle_id, observations, token_count, message_ids, message_tokens, last_observed_at, hints)
        VALUES ('x', 'missing', 0, '', '', 0, '[]', 0, now(), '{}')""",
}


@pytest.fixture
def rows(db: None) -> None:
    """Create a thread `t` and a resource `r` with one row of each kind."""
    thread = make_thread("r", "t")
    make_thread("r", "t2", metadata={"workingMemory": "x"})
    save([a_message(thread, "m", at=1), a_message(thread, "m2", at=2)])
    make_chunk(make_record(thread)), make_record(resource_id="r")
    sql.execute(MEMORY + "('resource', NULL, 'r', '', 1)")


@pytest.mark.parametrize("statement", VALID)
def test_constraints__accept_valid_rows(rows: None, statement: str) -> None:
    assert sql.execute(statement) == 1


@pytest.mark.parametrize("name", INVALID)
def test_constraints__refuse_invalid_rows(rows: None, name: str) -> None:
    with pytest.raises(IntegrityError), transaction.atomic():
        sql.execute(INVALID[name])


def test_foreign_keys__deleting_a_thread_deletes_its_rows(rows: None) -> None:
    sql.execute("DELETE FROM mastra_memory_thread")
    counts = {model: model.objects.count() for model in (Message, WorkingMemory)}
    assert counts == {Message: 0, WorkingMemory: 1}
    assert [record.scope for record in ObservationalRecord.objects.all()] == ["resource"]


def test_foreign_keys__rows_follow_a_thread_to_its_new_owner(rows: None) -> None:
    sql.execute("UPDATE mastra_memory_thread SET resource_id = 's'")
    for model in (Thread, Message):
        assert set(model.objects.values_list("resource_id", flat=True)) == {"s"}
    models: list[Any] = [WorkingMemory, ObservationalRecord]
    for model in models:
        assert set(model.objects.values_list("scope", "resource_id")) == {
            ("thread", "s"),
            ("resource", "r"),
        }


def test_times__are_rounded_to_milliseconds(rows: None) -> None:
    for table in ("thread", "message", "workingmemory", "observationalrecord"):
        sql.execute(f"UPDATE mastra_memory_{table} SET created_at = '2024-01-01 00:00:00.1239'")
        times = sql.fetch_all(f"SELECT created_at FROM mastra_memory_{table}")
        assert {moment.microsecond for (moment,) in times} == {124000}


def test_ids__are_compared_byte_by_byte(rows: None) -> None:
    for name in ("ä", "a", "Z", "A", "ᾳ"):
        make_thread("ids", name)
    ids = Thread.objects.filter(resource_id="ids").order_by("id").values_list("id", flat=True)
    assert list(ids) == ["A", "Z", "a", "ä", "ᾳ"]
