"""The clones around a thread: where it comes from and what was copied from it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from django.db.models import QuerySet
from django.db.models.functions import Left

from mastra_memory.db import sql
from mastra_memory.models import Thread

MAX_MEMBERS = 30
MAX_DEPTH = 20

MAX_TITLE_CHARACTERS = 2_200
"""Enough to mask the beginning of a title and to cut it."""

CloneFamilyMember = tuple[str, str, int, bool]
"""Id, title, depth, and whether it is gone or not for these eyes."""


@dataclass(frozen=True, slots=True)
class CloneFamily:
    """Threads depth first, the oldest source first."""

    members: Sequence[CloneFamilyMember]
    more: int
    """Threads left out."""


def get_clone_family(thread: Thread, visible: QuerySet[Thread]) -> CloneFamily:
    """The thread's sources and everything copied from the oldest of them.

    What the reader may not see appears without its title. A fixed number of statements.
    """
    root = _find_root(thread)
    found = _list_descendants(root)
    related = visible.filter(pk__in=[pk for pk, _source in found])
    titles = dict(related.values_list("pk", Left("title", MAX_TITLE_CHARACTERS)))
    children: dict[str, list[str]] = defaultdict(list)
    for pk, source in found:
        children[source].append(pk)
    members: list[CloneFamilyMember] = []
    pending = [(root, 0)]
    while pending and len(members) < MAX_MEMBERS:
        pk, depth = pending.pop()
        members.append((pk, titles.get(pk, ""), depth, pk not in titles))
        pending += [(child, depth + 1) for child in reversed(children[pk])]
    return CloneFamily(members, max(0, len(found) - len(members)))


def _find_root(thread: Thread) -> str:
    """The oldest source that is known, even if the thread itself is gone."""
    found = sql.fetch_all(
        """WITH RECURSIVE up (id, source, depth) AS (
            SELECT id, clone_source_id, 0 FROM mastra_memory_thread WHERE id = %s
            UNION ALL
            SELECT t.id, t.clone_source_id, depth + 1
            FROM up JOIN mastra_memory_thread t ON t.id = up.source WHERE depth < %s)
        SELECT coalesce(source, id) FROM up ORDER BY depth DESC LIMIT 1""",
        [thread.pk, MAX_DEPTH],
    )
    return found[0][0]


def _list_descendants(root: str) -> list[tuple[str, str]]:
    """Ids with their sources, oldest first; the root comes first, without one."""
    found = sql.fetch_all(
        """WITH RECURSIVE down (id, source, depth, created_at) AS (
            SELECT %s::text COLLATE "C", ''::text COLLATE "C", 0, NULL::timestamptz
            UNION ALL
            SELECT t.id, t.clone_source_id, depth + 1, t.created_at
            FROM down JOIN mastra_memory_thread t ON t.clone_source_id = down.id
            WHERE depth < %s)
        SELECT id, source FROM down ORDER BY depth, created_at, id LIMIT 1000""",
        [root, MAX_DEPTH],
    )
    return [(pk, source) for pk, source in found]
