"""What the log shows of an error, and what it leaves out."""

import io
import logging
from collections.abc import Iterator

import pytest
from celery import shared_task
from django.db import IntegrityError, transaction
from django.test import RequestFactory

from mastra_memory.models import Thread
from project.logs import ContentFreeFormatter, RequestContentFilter
from tests.support.factories import make_thread

SECRET = "hunter2"


@pytest.fixture
def log() -> Iterator[io.StringIO]:
    """What a handler like the service's writes."""
    stream = io.StringIO()
    handler = logging.StreamHandler(stream)
    handler.setFormatter(ContentFreeFormatter("%(levelname)s %(name)s: %(message)s"))
    handler.addFilter(RequestContentFilter())
    root = logging.getLogger()
    root.addHandler(handler)
    yield stream
    root.removeHandler(handler)


@pytest.mark.django_db
def test_log__a_refused_row_is_named_by_its_constraint(log: io.StringIO) -> None:
    thread = make_thread("r", SECRET)
    try:
        with transaction.atomic():
            Thread.objects.create(id=thread.id, resource_id=SECRET)
    except IntegrityError:
        logging.getLogger("test").exception("A row was refused")
    text = log.getvalue()
    assert SECRET not in text
    assert "sqlstate=23505" in text and "constraint_name=mastra_memory_thread" in text
    assert "test_logs.py" in text and "A row was refused" in text


def test_log__an_error_and_its_cause_are_named_by_their_types(log: io.StringIO) -> None:
    try:
        try:
            int(SECRET)
        except ValueError as error:
            raise RuntimeError(SECRET) from error
    except RuntimeError:
        logging.getLogger("test").exception("It failed")
    text = log.getvalue()
    assert SECRET not in text
    assert text.index("ValueError") < text.index("Then:") < text.index("RuntimeError")


def test_log__a_failed_task_shows_neither_arguments_nor_the_error(log: io.StringIO) -> None:
    @shared_task(name="tests.failing")
    def failing(text: str) -> None:
        raise ValueError(text)

    failing.apply((SECRET,))
    assert "tests.failing" in log.getvalue() and "ValueError" in log.getvalue()
    assert SECRET not in log.getvalue()


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        (f"/api/memory/threads/{SECRET}ä/messages", "/api/memory/threads/<"),
        (f"/{SECRET}ä", "an unknown path"),
        (f"/admin/mastra_memory/thread/{SECRET}/change/", "/admin/mastra_memory/thread/<"),
    ],
)
def test_log__a_path_is_shown_as_its_route(log: io.StringIO, path: str, shown: str) -> None:
    request = RequestFactory().get(path)
    escaped = request.path.encode("unicode_escape").decode("ascii")
    extra = {"status_code": 404, "request": request}
    logging.getLogger("django.request").warning("%s: %s", "Not Found", escaped, extra=extra)
    assert shown in log.getvalue()
    assert SECRET not in log.getvalue()


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        (f"Task exception was never retrieved\nfuture: <Task {SECRET}>", "never retrieved"),
        (f"Exception in callback call('{SECRET}')\nhandle: <Handle {SECRET}>", "in callback"),
        (f"Executing <Task {SECRET}> took 0.2 seconds", "Executing"),
    ],
)
def test_log__asyncio_shows_no_arguments(log: io.StringIO, message: str, shown: str) -> None:
    logging.getLogger("asyncio").error(message)
    assert shown in log.getvalue()
    assert SECRET not in log.getvalue()
