"""What must work in every host project. Run by `manage.py test smoke` of each project."""

import io
import json
import tempfile
from datetime import UTC, datetime, timedelta
from pathlib import Path

from django.contrib.auth import get_user_model
from django.contrib.contenttypes.models import ContentType
from django.core.management import call_command
from django.db import connections, router
from django.test import TestCase, TransactionTestCase
from smoke import addresses
from smoke.people import make_reviewer, make_user

from mastra_memory import tasks
from mastra_memory.memory import Memory
from mastra_memory.models import (
    EmbeddingRequest,
    ExportJob,
    Message,
    Review,
    ReviewNote,
    SavedView,
    Score,
    Thread,
    ThreadChange,
    Visit,
)

TIMES = [
    "2024-10-26T23:59:59.999Z",
    "2024-10-27T00:30:00.123Z",  # In Berlin, these two have the same clock time.
    "2024-10-27T01:30:00.123Z",
    "2025-03-30T01:30:00.000Z",
    "2025-06-30T18:45:00.001Z",
]


# A replica is a second connection, which does not see what an open transaction of a test has done.
HAS_REPLICA = any(connections[alias].settings_dict["TEST"].get("MIRROR") for alias in connections)


class HostTestCase(TransactionTestCase if HAS_REPLICA else TestCase):
    """A customer, a reviewer and an administrator."""

    databases = "__all__"

    def setUp(self):
        """Create the users."""
        self.customer = make_user("kim")
        self.reviewer = make_reviewer("rita")
        self.admin = make_user("ada", is_staff=True, is_superuser=True)

    def log_in(self, user):
        """Let the client send requests as this user."""
        self.client.force_login(user)

    def send(self, method, address, data=None, status=200):
        """Send JSON and return the parsed response."""
        response = getattr(self.client, method)(
            address, data, **({} if method == "get" else {"content_type": "application/json"})
        )
        self.assertEqual(response.status_code, status, response.content[:500])
        return json.loads(response.content)

    def create_thread(self, thread_id="talk/1", owner=None):
        """Create a thread through the API and save messages of `TIMES`."""
        self.log_in(owner or self.customer)
        resource = str((owner or self.customer).pk)
        body = {"resourceId": resource, "threadId": thread_id, "title": "The tent broke"}
        self.send("post", addresses.api("threads?agentId=assistant"), body)
        messages = [
            {
                "id": f"{thread_id}-{number}",
                "threadId": thread_id,
                "resourceId": resource,
                "role": "user" if number % 2 == 0 else "assistant",
                "content": f"Message {number} about a broken tent pole",
                "createdAt": moment,
            }
            for number, moment in enumerate(TIMES)
        ]
        self.send("post", addresses.api("save-messages?agentId=assistant"), {"messages": messages})
        return Thread.objects.get(pk=thread_id)

    def read_times(self, thread_id="talk/1"):
        """Return the times of the messages as the API gives them."""
        page = self.send("get", addresses.thread(thread_id, "/messages?agentId=assistant"))
        return [message["createdAt"] for message in page["messages"]]


class ApiTests(HostTestCase):
    """The HTTP API as a customer uses it."""

    def test_thread__from_creation_to_deletion(self):
        before = datetime.now(UTC) - timedelta(seconds=5)
        self.create_thread()
        listed = self.send("get", addresses.api("threads"))["threads"]
        self.assertEqual([thread["id"] for thread in listed], ["talk/1"])
        created = datetime.fromisoformat(listed[0]["createdAt"])
        self.assertTrue(before < created < before + timedelta(minutes=1), created)
        self.assertEqual(self.read_times(), TIMES)
        clone = self.send("post", addresses.thread("talk/1", "/clone?agentId=assistant"), {})
        self.assertEqual(len(clone["clonedMessages"]), len(TIMES))
        memory = addresses.thread("talk/1", "/working-memory?agentId=assistant")
        self.send("post", memory, {"workingMemory": "# Kim", "resourceId": str(self.customer.pk)})
        self.assertEqual(self.send("get", memory)["workingMemory"], "# Kim")
        revisions = addresses.thread("talk/1", "/working-memory/revisions?agentId=assistant")
        (revision,) = self.send("get", revisions)["revisions"]
        self.assertEqual(revision["author"], self.customer.get_username())
        self.send("delete", addresses.thread("talk/1", "?agentId=assistant"))
        self.send("get", addresses.thread("talk/1"), status=404)

    def test_search__finds_messages_with_their_times(self):
        self.create_thread()
        query = {"agentId": "assistant", "resourceId": str(self.customer.pk), "searchQuery": "pole"}
        for kind in ({"searchType": "hybrid"}, {"searchType": "text"}, {"searchType": "semantic"}):
            found = self.send("get", addresses.api("search"), {**query, **kind, "limit": 10})
            self.assertEqual({hit["createdAt"] for hit in found["results"]}, set(TIMES))
        self.assertTrue(self.send("get", addresses.api("search"), query)["results"])

    def test_date_filter__means_the_same_instants(self):
        self.create_thread()
        span = json.dumps({"dateRange": {"start": TIMES[1], "end": TIMES[2]}})
        page = self.send("get", addresses.thread("talk/1", "/messages"), {"filter": span})
        self.assertEqual([m["createdAt"] for m in page["messages"]], TIMES[1:3])

    def test_access__is_limited_to_the_own_threads(self):
        self.create_thread()
        self.log_in(make_user("eve"))
        self.send("get", addresses.thread("talk/1"), status=403)
        self.client.logout()
        response = self.client.get(addresses.thread("talk/1"))
        self.assertIn(response.status_code, (401, 403))

    def test_observational_memory__uses_the_times_of_messages(self):
        thread = self.create_thread()
        options = {"observationalMemory": {"observation": {"messageTokens": 10}}}
        memory = Memory(options=options)
        memory.observe(thread_id=thread.pk)
        record = memory.get_observational_record(thread_id=thread.pk)
        self.assertEqual(record.last_observed_at, datetime.fromisoformat(TIMES[-1]))
        self.assertIn("Oct 27, 2024", record.active_observations)


class AdminTests(HostTestCase):
    """The admin as a reviewer uses it."""

    def setUp(self):
        """Create a conversation."""
        super().setUp()
        self.thread = self.create_thread()
        self.log_in(self.reviewer)

    def open(self, address, **query):
        """Return the text of a page."""
        response = self.client.get(address, query, follow=True)
        self.assertEqual(response.status_code, 200, response.content[:300])
        return response.content.decode()

    def act(self, verb, **fields):
        """Send a form of the conversation page."""
        address = addresses.conversation(self.thread.pk, f"do/{verb}/")
        response = self.client.post(address, fields, follow=True)
        self.assertEqual(response.status_code, 200, response.content[:300])
        return response.content.decode()

    def test_every_list__opens(self):
        self.log_in(self.admin)
        for name in (
            "thread message workingmemory observationalrecord embeddingrequest modelusage tag "
            "criterion"
        ).split():
            self.open(addresses.admin(f"{name}_changelist"))
        self.open(addresses.admin("thread_team"))
        self.open(addresses.admin("thread_exports"))
        self.open(
            addresses.admin("message_changelist"), created_at__gte="2024-10-27 00:00:00+02:00"
        )
        for period in ("today", "7", "month", "last_month"):
            self.open(addresses.admin("thread_changelist"), active=period)

    def test_conversation__shows_times_in_the_current_time_zone(self):
        from django.utils import formats, timezone

        page = self.open(addresses.conversation(self.thread.pk))
        for moment in TIMES:
            local = datetime.fromisoformat(moment).astimezone(timezone.get_default_timezone())
            clock = formats.date_format(local.replace(tzinfo=None), "TIME_FORMAT")
            self.assertTrue(f'datetime="{local.isoformat()}">{clock}</time>' in page, moment)

    def test_review__assign_mine_bulk_filter_and_history(self):
        own_id = str(self.reviewer.pk)
        self.act("review", set="take", version="0")
        review = Review.objects.get()
        self.assertEqual((review.assignee_id, review.changed_by_id), (own_id, own_id))
        self.assertTrue(
            "talk_2F1" in self.open(addresses.admin("thread_changelist"), assignee="me")
        )
        page = self.open(addresses.admin("thread_changelist"), assignee=own_id)
        self.assertTrue(self.reviewer.get_username() in page)
        other = self.open(addresses.admin("thread_changelist"), assignee=str(self.admin.pk))
        self.assertFalse("talk_2F1" in other)
        action = {"action": "assign", "_selected_action": [self.thread.pk]}
        asked = self.client.post(addresses.admin("thread_changelist"), action)
        self.assertContains(asked, f'value="{self.admin.pk}"')
        chosen = {**action, "chosen": str(self.admin.pk)}
        self.client.post(addresses.admin("thread_changelist"), chosen, follow=True)
        self.assertEqual(Review.objects.get().assignee_id, str(self.admin.pk))
        page = self.open(addresses.conversation(self.thread.pk))
        self.assertTrue(self.admin.get_username() in page)  # in the history
        self.assertEqual(ThreadChange.objects.filter(author_id=own_id).count(), 2)
        self.act("review", version=str(Review.objects.get().version), status="resolved")
        self.assertEqual(Review.objects.get().status, "resolved")
        self.assertTrue(
            self.admin.get_username() in self.open(addresses.admin("thread_team")) + page
        )

    def test_assign__refuses_users_who_may_not_review(self):
        self.act("review", version="0", assignee=str(self.customer.pk))
        self.act("review", version="0", assignee="nobody")
        self.assertFalse(Review.objects.exclude(assignee_id=None).exists())

    def test_notes_and_views__belong_to_their_author(self):
        page = self.act("note", text="Call back")
        self.assertTrue(self.reviewer.get_username() in page)
        note = ReviewNote.objects.get()
        self.client.post(
            addresses.admin("thread_views"), {"save": "1", "name": "Open", "query": "status=new"}
        )
        self.assertEqual(SavedView.objects.get().owner_id, str(self.reviewer.pk))
        self.open(addresses.conversation(self.thread.pk, "here/"))
        self.log_in(self.admin)
        page = self.open(addresses.conversation(self.thread.pk))
        self.assertTrue(self.reviewer.get_username() in page)
        self.act("unnote", note=note.pk)
        self.assertTrue(ReviewNote.objects.exists())
        self.log_in(self.reviewer)
        self.act("unnote", note=note.pk)
        self.assertFalse(ReviewNote.objects.exists())

    def test_edit__delete_and_undo_keep_the_time(self):
        self.log_in(self.admin)
        chosen = f"{self.thread.pk}-1"
        self.act("drop", message=chosen)
        self.assertFalse(Message.objects.filter(pk=chosen).exists())
        self.act("undo")
        self.log_in(self.customer)
        self.assertEqual(self.read_times(), TIMES)

    def test_export__has_the_times_of_the_api(self):
        self.log_in(self.admin)
        address = addresses.conversation(self.thread.pk, "export/")
        response = self.client.post(address, {"format": "jsonl"})
        self.assertEqual(response.status_code, 200, response.content[:300])
        lines = [json.loads(line) for line in b"".join(response).splitlines()]
        times = [line["createdAt"] for line in lines if line.get("content")]
        self.assertEqual(times, TIMES)

    def test_deleted_user__leaves_no_reference(self):
        self.act("review", set="take", version="0")
        self.act("note", text="Call back")
        self.open(addresses.conversation(self.thread.pk))
        users = router.db_for_write(get_user_model())
        with TestCase.captureOnCommitCallbacks(using=users, execute=True):
            get_user_model().objects.get(pk=self.reviewer.pk).delete()
        self.assertIsNone(Review.objects.get().assignee_id)
        self.assertIsNone(ReviewNote.objects.get().author_id)
        self.assertFalse(Visit.objects.exists() or Score.objects.exists())
        self.log_in(self.admin)
        self.open(addresses.conversation(self.thread.pk))

    def test_admin_log__is_written_to_the_database_of_users(self):
        from django.contrib.admin.models import LogEntry

        self.act("review", set="take", version="0")
        entry = LogEntry.objects.get()
        self.assertEqual(entry.user, self.reviewer)
        self.assertEqual(entry.content_type, ContentType.objects.get_for_model(Thread))


class CommandTests(HostTestCase):
    """The management commands and tasks."""

    def test_export__can_be_imported_again_with_all_times(self):
        self.create_thread()
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "all.jsonl")
            call_command(
                "mastra_export", output=str(path), stdout=io.StringIO(), stderr=io.StringIO()
            )
            self.send("delete", addresses.thread("talk/1", "?agentId=assistant"))
            call_command("mastra_import", path, stdout=io.StringIO(), stderr=io.StringIO())
        self.assertEqual(self.read_times(), TIMES)

    def test_work__is_done_by_a_worker(self):
        self.create_thread()
        self.assertTrue(EmbeddingRequest.objects.exists())
        call_command("mastra_catch_up", stdout=io.StringIO(), stderr=io.StringIO())
        self.assertFalse(EmbeddingRequest.objects.exists())
        job = ExportJob.objects.create(
            owner_id=self.admin.pk, format="markdown", thread_ids=["talk/1"], masked=False
        )
        tasks.make_export(job.pk)
        tasks.catch_up()
        job.refresh_from_db()
        self.assertEqual(job.state, "done", job.error)

    def test_mcp_user__is_found_by_login_name(self):
        from mastra_memory.memory.callers import get_caller_of_user

        self.assertEqual(get_caller_of_user(self.customer).resource_id, str(self.customer.pk))


class SetUpTests(HostTestCase):
    """What `migrate` has created."""

    def test_group__has_its_permissions(self):
        self.assertTrue(self.reviewer.has_perm("mastra_memory.review_thread"))
        self.assertFalse(self.reviewer.has_perm("mastra_memory.edit_transcript"))

    def test_migrations__are_complete(self):
        call_command("makemigrations", check=True, dry_run=True, stdout=io.StringIO())

    def test_tables__are_where_the_router_says(self):
        own = router.db_for_write(Thread)
        for alias in connections:
            if connections[alias].settings_dict.get("TEST", {}).get("MIRROR"):
                continue
            tables = connections[alias].introspection.table_names()
            self.assertEqual("mastra_memory_thread" in tables, alias == own)
