"""Export conversations: small exports at once, large ones in the background."""

from typing import Any

from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase, HttpResponseRedirect
from django.utils.translation import gettext as _

from mastra_memory.admin import access
from mastra_memory.admin.params import read_integer
from mastra_memory.admin.urls import reverse_page
from mastra_memory.db import times
from mastra_memory.db.users import get_user_id
from mastra_memory.memory import Memory
from mastra_memory.models import ExportJob
from mastra_memory.review import exports

MAX_JOBS_SHOWN = 20


def start_export(request: HttpRequest, thread_ids: list[str], chosen: str) -> HttpResponseBase:
    """Return the file of a small export; start a large one in the background and redirect.

    The caller checks that the user may see the threads.
    """
    if not access.has_permission(request.user, "export_thread"):
        raise PermissionDenied
    if chosen not in ExportJob.Format.values:
        raise Http404
    job = ExportJob.objects.create(
        owner_id=get_user_id(request.user),
        format=chosen,
        thread_ids=thread_ids,
        masked=not access.has_permission(request.user, "view_personal_data"),
    )
    if exports.is_small(job):
        exports.run_export(job.pk)
        return _file_response(ExportJob.objects.get(pk=job.pk))
    Memory().start_export(job.pk)
    messages.info(request, _("The export has started. It will appear here when it is finished."))
    return HttpResponseRedirect(reverse_page("mastra_memory_thread_exports"))


def restart_export(request: HttpRequest) -> HttpResponseRedirect:
    """Restart an export of the user that failed or that no worker has finished."""
    chosen = read_integer(request.POST.get("job"))
    mine = ExportJob.objects.filter(owner_id=request.user.pk).exclude(state=ExportJob.State.DONE)
    if chosen is not None and (job := mine.filter(pk=chosen).first()):
        Memory().start_export(job.pk)
    return HttpResponseRedirect(reverse_page("mastra_memory_thread_exports"))


def list_exports(request: HttpRequest) -> dict[str, Any]:
    """Return the template context with the newest exports of the user."""
    jobs = ExportJob.objects.filter(owner_id=request.user.pk).defer("content").order_by("-pk")
    newest = list(jobs.filter(created_at__gt=times.now() - exports.FILE_LIFETIME)[:MAX_JOBS_SHOWN])
    running = any(job.state in ("waiting", "running") for job in newest)
    return {"jobs": newest, "running": running, "kept_days": exports.FILE_LIFETIME.days}


def download_export(request: HttpRequest, pk: int) -> HttpResponseBase:
    """Return the file of a finished export of the user.

    Raises:
        Http404: There is no such export, or it has expired.
        PermissionDenied: The file contains data that the user may no longer see.
    """
    done = ExportJob.objects.filter(pk=pk, owner_id=request.user.pk, state=ExportJob.State.DONE)
    job = done.filter(created_at__gt=times.now() - exports.FILE_LIFETIME).first()
    if job is None:
        raise Http404
    if not job.masked and not access.has_permission(request.user, "view_personal_data"):
        raise PermissionDenied
    visible = access.visible_threads(request).filter(pk__in=job.thread_ids).count()
    existing = access.all_threads().filter(pk__in=job.thread_ids).count()
    if visible < existing:
        raise PermissionDenied
    if existing < len(job.thread_ids):
        job.delete()
        messages.error(
            request, _("A conversation of this export was deleted. Start the export again.")
        )
        return HttpResponseRedirect(reverse_page("mastra_memory_thread_exports"))
    return _file_response(job)


def _file_response(job: ExportJob) -> HttpResponse:
    data, name, mime_type = exports.get_file(job)
    response = HttpResponse(data, mime_type)
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    response["X-Content-Type-Options"] = "nosniff"
    response["Cache-Control"] = "no-store"
    return response
