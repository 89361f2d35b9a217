"""Health routes for load balancers and supervisors."""

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, JsonResponse


def healthz(request: HttpRequest) -> JsonResponse:
    """The process is alive. Asks nothing of the database."""
    return JsonResponse({"status": "ok"})


def readyz(request: HttpRequest) -> JsonResponse:
    """The service can answer: the database is reachable and migrated. 503 with a reason if not."""
    try:
        with connection.cursor() as cursor:
            cursor.execute("SELECT 1")
        if _migrations_are_pending():
            return _unready("migrations are pending")
    except DatabaseError:
        return _unready("database is unreachable")
    return JsonResponse({"status": "ok"})


def _migrations_are_pending() -> bool:
    executor = MigrationExecutor(connection)
    return bool(executor.migration_plan(executor.loader.graph.leaf_nodes()))


def _unready(reason: str) -> JsonResponse:
    return JsonResponse({"status": "unavailable", "reason": reason}, status=503)
