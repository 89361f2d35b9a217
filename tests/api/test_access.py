"""Who may do what: anonymous and other users, owners, and unscoped callers on each route."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from rest_framework.request import Request
from rest_framework.test import APIClient

from mastra_memory.memory import Memory
from mastra_memory.models import Message, ObservationalRecord, Thread, WorkingMemory
from tests.api.routes import ROUTES, Named, Route, served
from tests.conftest import Person
from tests.support.api_client import Answer, Api, ids
from tests.support.factories import a_message, make_record, make_thread, save

OPTIONS = {"workingMemory": {"enabled": True}, "observationalMemory": True}
every_route = pytest.mark.parametrize("key", ROUTES)


@pytest.fixture(autouse=True)
def agents(memory_settings: Callable[..., None]) -> None:
    memory_settings(OPTIONS=OPTIONS)


def belongings(person: Person, mark: str) -> Named:
    """A thread of this person with something of everything, all of it marked."""
    name = person.user.username
    owner, metadata = person.resource_id, {"k": f"{mark} metadata"}
    thread = make_thread(owner, f"{name}-t", title=f"{mark} title", metadata=metadata)
    save([a_message(thread, f"{name}-m", text=f"{mark} lighthouse")])
    Memory().update_working_memory(thread.id, f"{mark} memory")
    thread_scope = {"workingMemory": {"scope": "thread"}}
    Memory().update_working_memory(thread.id, f"{mark} thread memory", options=thread_scope)
    make_record(thread, active_observations=f"* {mark} notes")
    return Named(owner, thread.id, f"{name}-m")


@pytest.fixture
def bobs(bob: Person) -> Named:
    return belongings(bob, "SECRET")


@pytest.fixture
def alices(alice: Person) -> Named:
    return belongings(alice, "own")


def everything_of(named: Named) -> list[Any]:
    """All rows of a resource."""
    models = (Thread, Message, WorkingMemory, ObservationalRecord)
    rows = [list(model.objects.filter(resource_id=named.resource_id).values()) for model in models]
    assert all(rows)
    return rows


def values_of(body: Any, name: str) -> Iterator[Any]:
    """Every value of this key, at any depth."""
    parts = body.items() if isinstance(body, dict) else enumerate(body or ())
    for key, value in parts:
        if key == name:
            yield value
        if isinstance(value, dict | list):
            yield from values_of(value, name)


def assert_nothing_of(named: Named, answer: Answer) -> None:
    """No row of that resource is in the answer, and no word of it."""
    assert b"SECRET" not in answer.raw
    assert named.resource_id not in values_of(answer.body, "resourceId")


def test_routes__all_of_them_are_known_here() -> None:
    assert served() == set(ROUTES)


@every_route
def test_anonymous__is_asked_to_authenticate(bobs: Named, key: str) -> None:
    before = everything_of(bobs)
    for accept in ("application/json", "text/html"):
        answer = ROUTES[key].send(Api(), key, bobs, accept)
        assert answer.status == 401 and answer.headers["WWW-Authenticate"]
        assert_nothing_of(bobs, answer)
    path = key.split(" ")[1].replace("<thread>", bobs.thread_id)
    assert {Api().send(method, path).status for method in ("HEAD", "OPTIONS")} == {401}
    assert everything_of(bobs) == before


@every_route
def test_stranger__reaches_nothing_of_others(alice: Person, bobs: Named, key: str) -> None:
    before = everything_of(bobs)
    unnamed = Named(alice.resource_id, bobs.thread_id, bobs.message_id)
    for named, accept in ((bobs, "application/json"), (bobs, "text/html"), (unnamed, "*/*")):
        answer = ROUTES[key].send(alice.api, key, named, accept)
        assert answer.status in ROUTES[key].foreign, answer.raw
        assert_nothing_of(bobs, answer)
        assert everything_of(bobs) == before


@every_route
def test_owner__may_do_everything_but_transfer(alice: Person, alices: Named, key: str) -> None:
    route = ROUTES[key]
    answer = route.send(alice.api, key, alices)
    assert answer.status == (403 if route.unscoped_only else 200), answer.raw


@every_route
def test_owner__who_names_another_resource_stays_at_home(
    alice: Person, alices: Named, bobs: Named, key: str
) -> None:
    before = everything_of(bobs)
    named = Named(bobs.resource_id, alices.thread_id, alices.message_id)
    answer = ROUTES[key].send(alice.api, key, named)
    assert answer.status in (200, 403), answer.raw
    assert_nothing_of(bobs, answer)
    assert everything_of(bobs) == before


@every_route
def test_unscoped__reaches_everybody(boss: Person, bobs: Named, key: str) -> None:
    answer = ROUTES[key].send(boss.api, key, bobs)
    assert answer.status == 200, answer.raw


@every_route
def test_unscoped__names_the_owner_or_is_refused(boss: Person, bobs: Named, key: str) -> None:
    """Where a resource may be named, a wrong one is refused."""
    before = everything_of(bobs)
    route = ROUTES[key]
    if route.foreign == {200} or route.unscoped_only:
        return
    answer = route.send(boss.api, key, Named("wrong", bobs.thread_id, bobs.message_id))
    assert answer.status == 403, answer.raw
    assert_nothing_of(bobs, answer)
    assert everything_of(bobs) == before


def test_list__shows_a_scoped_caller_their_own_threads_only(
    alice: Person, alices: Named, bobs: Named
) -> None:
    for query in ({}, {"resourceId": bobs.resource_id}, {"resourceId": ""}):
        answer = alice.api.get("threads", query)
        assert ids(answer) == [alices.thread_id] and answer.body["total"] == 1
        assert ids(alice.api.through(None).get("threads", query)) == [alices.thread_id]


@pytest.mark.parametrize(
    "query",
    [{"title": "SECRET"}, {"text": "lighthouse"}, {"metadata": {"k": "SECRET metadata"}}],
)
def test_list__filters_reach_nothing_of_others(
    alice: Person, bobs: Named, query: dict[str, Any]
) -> None:
    assert alice.api.get("threads", query).body["total"] == 0


@pytest.mark.parametrize("search_type", [{}, {"searchType": "text"}])
def test_search__finds_only_the_callers_own(
    alice: Person, alices: Named, bobs: Named, search_type: dict[str, str]
) -> None:
    for owner in (bobs, alices):
        query = {"searchQuery": "lighthouse", "resourceId": owner.resource_id} | search_type
        answer = alice.api.get("search", query)
        assert [hit["threadId"] for hit in answer.body["results"]] == [alices.thread_id]
        assert_nothing_of(bobs, answer)


def test_create__is_always_the_callers_own(alice: Person, bobs: Named) -> None:
    made = alice.api.post("threads", {"resourceId": bobs.resource_id, "threadId": "new"})
    assert made.body["resourceId"] == alice.resource_id
    taken = alice.api.post("threads", {"resourceId": "x", "threadId": bobs.thread_id})
    assert taken.status == 409
    assert b"SECRET" not in taken.raw


def test_save__the_message_id_of_another_owner_is_409(
    alice: Person, alices: Named, bobs: Named
) -> None:
    before = everything_of(bobs)
    message = a_message(make_thread(alice.resource_id, alices.thread_id), bobs.message_id)
    answer = alice.api.post("save-messages", {"messages": [message]})
    assert answer.status == 409 and b"SECRET" not in answer.raw
    assert everything_of(bobs) == before


def test_permission__access_all_resources_unbinds(bob: Person, bobs: Named) -> None:
    clerk = User.objects.create(username="clerk")
    clerk.user_permissions.add(Permission.objects.get(codename="access_all_resources"))
    clerk = User.objects.get(pk=clerk.pk)
    assert Api(clerk).get(f"threads/{bobs.thread_id}").status == 200
    moved = Api(clerk).post(f"threads/{bobs.thread_id}/transfer", {"resourceId": "x"})
    assert moved.status == 200


def test_session__a_foreign_page_cannot_post_for_a_user(alice: Person) -> None:
    make_thread(alice.resource_id, "t")
    browser = APIClient(enforce_csrf_checks=True)
    browser.force_login(alice.user)
    assert browser.get("/api/memory/threads/t").status_code == 200
    for method in (browser.delete, browser.patch):
        assert method("/api/memory/threads/t?agentId=a").status_code == 403
    assert Thread.objects.count() == 1


def of_tenant(request: Request) -> str | None:
    """Return the resource in the header, as a host's function could."""
    return request.headers.get("X-Tenant")


TENANT = f"{__name__}.of_tenant"


def test_setting__a_host_maps_requests_to_resources(
    alice: Person, memory_settings: Callable[..., None]
) -> None:
    memory_settings(RESOURCE_FOR_REQUEST=TENANT)
    make_thread("acme", "t")
    headers = {"X-Tenant": "acme"}
    assert alice.api.send("GET", "threads/t", headers=headers).status == 200
    assert alice.api.send("GET", "threads/t", headers={"X-Tenant": "other"}).status == 403


@every_route
@pytest.mark.parametrize("tenant", [None, ""])
def test_setting__a_user_without_a_resource_is_refused(
    alice: Person, bobs: Named, memory_settings: Callable[..., None], key: str, tenant: str | None
) -> None:
    memory_settings(RESOURCE_FOR_REQUEST=TENANT, OPTIONS=OPTIONS)
    headers = {} if tenant is None else {"X-Tenant": tenant}
    method, path = key.split(" ", 1)
    answer = alice.api.send(method, path.replace("<thread>", bobs.thread_id), headers=headers)
    assert answer.status == 403
    assert_nothing_of(bobs, answer)


def test_setting__an_unscoped_user_may_still_be_bound(
    boss: Person, bobs: Named, memory_settings: Callable[..., None]
) -> None:
    memory_settings(RESOURCE_FOR_REQUEST=TENANT)
    answer = boss.api.send("GET", f"threads/{bobs.thread_id}", headers={"X-Tenant": "acme"})
    assert answer.status == 403


def test_per_page__scoped_callers_have_a_limit(
    alice: Person, boss: Person, memory_settings: Callable[..., None]
) -> None:
    memory_settings(MAX_PER_PAGE=2)
    thread = make_thread(alice.resource_id, "t0")
    make_thread(alice.resource_id, "t1"), make_thread(alice.resource_id, "t2")
    save([a_message(thread, f"m{n}", at=n) for n in range(3)])
    for path in ("threads", "threads/t0/messages"):
        limited = alice.api.get(path, {"perPage": 1000}).body
        assert limited["perPage"] == 2 and limited["hasMore"] is True
        assert boss.api.get(path, {"perPage": 1000}).body["perPage"] == 1000


def test_route__without_owner_returns_no_stored_data() -> None:
    silent = {key for key, route in ROUTES.items() if not _names(route, key)}
    assert silent == {key for key, route in ROUTES.items() if route.has_no_owner}


def _names(route: Route, key: str) -> bool:
    return "<" in f"{key} {route.query} {route.body}"
