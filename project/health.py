"""Health routes for load balancers and supervisors.

They are a middleware before all others: a probe comes over plain HTTP under any host name, which
the redirect to HTTPS and the check of ALLOWED_HOSTS would refuse.
"""

import shutil
from collections.abc import Callable

from django.conf import settings
from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

Handler = Callable[[HttpRequest], HttpResponse]

MIN_FREE_BYTES = 32 * 1024 * 1024
"""Free space below VAR_DIR: two segments of the embedded database's log."""

# Sorts a megabyte in 64 kB of memory, so that PostgreSQL has to write a temporary file: that fails
# on a full disk, and unlike an INSERT it leaves nothing behind. CASE sets the limit first; the
# subquery runs after it.
WRITE_TEMPORARY_FILE_SQL = """SELECT CASE WHEN set_config('work_mem', '64kB', true) <> '' THEN (
    SELECT count(*) FROM (SELECT repeat(md5(n::text), 8) AS text FROM generate_series(1, 4000) n
        ORDER BY text) AS sorted) END"""

SQLSTATE_REASONS = {
    "53100": "the database's disk is full",
    "53300": "too many database connections",
}
"""Reasons by SQLSTATE; with all others the database is unreachable."""

HEALTHZ_BODY = b'{"status": "ok"}'
"""The answer of a live process."""


def health_routes(get_response: Handler) -> Handler:
    """Answer `/healthz` and `/readyz`; pass all other requests on."""
    routes: dict[str, Handler] = {"/healthz": healthz, "/readyz": readyz}

    def handle(request: HttpRequest) -> HttpResponse:
        return routes.get(request.path_info, get_response)(request)

    return handle


def healthz(request: HttpRequest) -> HttpResponse:
    """Answer that the process is alive, without using the database."""
    return HttpResponse(HEALTHZ_BODY, content_type="application/json")


def readyz(request: HttpRequest) -> JsonResponse:
    """Answer whether the service can read and store: migrations are applied, disks have space.

    503 with a reason if not.
    """
    try:
        if _has_pending_migrations():
            return _respond_unavailable("migrations are pending")
        with connection.cursor() as cursor:
            cursor.execute(WRITE_TEMPORARY_FILE_SQL)
    except DatabaseError as error:
        state = getattr(error.__cause__, "sqlstate", None)
        return _respond_unavailable(SQLSTATE_REASONS.get(state or "", "database is unreachable"))
    if shutil.disk_usage(settings.VAR_DIR).free < MIN_FREE_BYTES:
        return _respond_unavailable("the disk of VAR_DIR is full")
    return JsonResponse({"status": "ok"})


def _has_pending_migrations() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _respond_unavailable(reason: str) -> JsonResponse:
    return JsonResponse({"status": "unavailable", "reason": reason}, status=503)
