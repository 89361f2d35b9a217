"""Health routes for load balancers and supervisors.

They are a middleware before all others: a probe comes over plain HTTP under any host name, which
the redirect to HTTPS and the check of ALLOWED_HOSTS would refuse.
"""

from collections.abc import Callable

from django.db import DatabaseError, connection
from django.db.migrations.executor import MigrationExecutor
from django.http import HttpRequest, HttpResponse, JsonResponse

Handler = Callable[[HttpRequest], HttpResponse]

ALIVE = b'{"status": "ok"}'
"""The answer of a live process."""


def health_routes(get_response: Handler) -> Handler:
    """Answer `/healthz` and `/readyz`; leave everything else to the rest."""
    routes: dict[str, Handler] = {"/healthz": healthz, "/readyz": readyz}

    def handle(request: HttpRequest) -> HttpResponse:
        return routes.get(request.path_info, get_response)(request)

    return handle


def healthz(request: HttpRequest) -> HttpResponse:
    """The process is alive. Asks nothing of the database."""
    return HttpResponse(ALIVE, content_type="application/json")


def readyz(request: HttpRequest) -> JsonResponse:
    """The service can answer: the database is reachable and migrated. 503 with a reason if not."""
    try:
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
