"""The clones around a thread: what it was copied from, and what was copied from it."""

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from django.db.models import QuerySet
from django.db.models.functions import Left

from mastra_memory.models import Thread
from mastra_memory.review import queries

MAX_MEMBERS = 30
"""Threads that the tree of clones shows."""
MAX_DEPTH = 20
"""Generations that are followed in each direction."""
MAX_COUNTED_MEMBERS = 1_000
"""Clones that are read, to count those that are left out."""
MAX_TITLE_CHARACTERS = 2_200
"""Characters that are read of a title: enough to mask its beginning and shorten it."""


class CloneFamilyMember(NamedTuple):
    """One thread in a tree of clones."""

    id: str
    title: str
    """Empty if the thread is hidden."""
    depth: int
    """Number of copies between the thread and the root."""
    is_hidden: bool
    """True if the thread was deleted or the user may not see it."""


@dataclass(frozen=True, slots=True)
class CloneFamily:
    """A tree of clones in depth-first order, the root first."""

    members: Sequence[CloneFamilyMember]
    more: int
    """How many threads are left out."""


def get_clone_family(thread: Thread, visible: QuerySet[Thread]) -> CloneFamily:
    """Return the oldest source of the thread and everything that was copied from it.

    Runs three queries. Threads outside `visible` appear without a title.
    """
    root = queries.find_clone_root(thread.pk, max_depth=MAX_DEPTH)
    clones = queries.list_clones(root, max_depth=MAX_DEPTH, limit=MAX_COUNTED_MEMBERS)
    related = visible.filter(pk__in=[pk for pk, _source in clones])
    titles = dict(related.values_list("pk", Left("title", MAX_TITLE_CHARACTERS)))
    children: dict[str, list[str]] = defaultdict(list)
    for pk, source in clones:
        children[source].append(pk)
    members: list[CloneFamilyMember] = []
    pending = [(root, 0)]
    while pending and len(members) < MAX_MEMBERS:
        pk, depth = pending.pop()
        members.append(CloneFamilyMember(pk, titles.get(pk, ""), depth, pk not in titles))
        pending += [(child, depth + 1) for child in reversed(children[pk])]
    return CloneFamily(members, max(0, len(clones) - len(members)))
