"""List the revisions of a working memory, and restore one."""

from typing import Any

from mastra_memory.db import sql
from mastra_memory.db.users import get_usernames
from mastra_memory.exceptions import InvalidInput, Issue
from mastra_memory.types import Revision, RevisionPage
from mastra_memory.working_memory import storage
from mastra_memory.working_memory.storage import Owner

_FROM_SQL = """FROM mastra_memory_workingmemory w
    JOIN mastra_memory_workingmemoryrevision r ON r.working_memory_id = w.id"""


def list_revisions(owner: Owner, *, page: int = 0, per_page: int = 20) -> RevisionPage:
    """Return a page of revisions, newest first. The first one is the current text."""
    limit, offset = sql.get_limit_offset(page, per_page)
    where = owner.condition
    total = sql.fetch_one(f"SELECT count(*) {_FROM_SQL} WHERE {where}", where.params)
    found = sql.fetch_all(
        f"""SELECT r.version, r.content, r.source, r.author_id, {sql.format_time("r.created_at")}
        {_FROM_SQL} WHERE {where} ORDER BY r.version DESC LIMIT %s OFFSET %s""",
        [*where.params, limit, offset],
    )
    names = get_usernames(cells[3] for cells in found if cells[3] is not None)
    revisions = [_build_revision(cells, names) for cells in found]
    count = total[0] if total else 0
    return RevisionPage(revisions, count, page, per_page, offset + len(found) < count)


def _build_revision(cells: sql.SqlRow, names: dict[str, str]) -> Revision:
    version, content, source, author_id, created = cells
    return Revision(version, content, source, author_id, created, names.get(author_id, ""))


def restore_revision(owner: Owner, version: int, *, source: str, author_id: Any = None) -> int:
    """Restore the text of `version` as a new revision, and return the new version.

    Raises:
        InvalidInput: There is no such version.
    """
    where = owner.condition
    where.add("r.version = %s", version)
    found = sql.fetch_one(f"SELECT r.content {_FROM_SQL} WHERE {where}", where.params)
    if found is None:
        reason = f"there is no version {version}"
        raise InvalidInput(reason, [Issue("version", reason)])
    return storage.update_locked(owner, lambda _: found[0], source=source, author_id=author_id)
