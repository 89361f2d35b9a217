"""Rows refer to users by key, and survive the deletion of users."""

import pytest
from django.apps import apps
from django.contrib.auth.models import Group, Permission, User
from django.core.management import call_command

from mastra_memory.db import users
from mastra_memory.models import Review, ReviewNote, SavedView, Thread, ThreadChange
from mastra_memory.review import notes, reviewer_group, reviews, saved_views
from tests.support.factories import make_thread, make_user

pytestmark = pytest.mark.django_db


def use(user: User) -> Thread:
    """Let the user assign, note and save a view."""
    thread = make_thread()
    reviews.update_reviews([thread.id], by=user, assignee_id=user.pk)
    notes.add_note(thread.id, "Call back", by=user)
    saved_views.save_view(user, "Mine", "assignee=me", default=True)
    return Thread.objects.get(pk=thread.id)


def test_delete__clears_what_refers_to_the_user() -> None:
    ana, bob = make_user("ana"), make_user("bob")
    kept = use(bob)
    thread = use(ana)
    ana.delete()
    assert Review.objects.get(pk=thread.pk).assignee_id is None
    assert ReviewNote.objects.get(thread=thread).author_id is None
    assert not ThreadChange.objects.filter(thread=thread).exclude(author_id=None).exists()
    assert SavedView.objects.get().owner_id == str(bob.pk)
    assert Review.objects.get(pk=kept.pk).assignee_id == str(bob.pk)


def test_delete__of_many_users_clears_all() -> None:
    use(make_user("ana"))
    use(make_user("bob"))
    User.objects.all().delete()
    assert not Review.objects.exclude(assignee_id=None).exists()
    assert not SavedView.objects.exists()


def test_find_users__ignores_texts_that_are_no_key() -> None:
    ana = make_user("ana")
    keys = [str(ana.pk), f"0{ana.pk}", "x", "", str(2**70), "-1"]
    assert users.get_usernames(keys) == {str(ana.pk): "ana"}
    assert users.get_usernames([]) == {}


def test_create_group__restores_permissions_that_were_deleted() -> None:
    group = Group.objects.get(name=reviewer_group.GROUP)
    count = group.permissions.count()
    Permission.objects.filter(content_type__app_label="mastra_memory").delete()
    assert group.permissions.count() == 0
    call_command("migrate", verbosity=0)
    assert group.permissions.count() == 0  # only our first migration restores them

    class First:
        app_label, name = reviewer_group.FIRST_MIGRATION

    config = apps.get_app_config("mastra_memory")
    reviewer_group.create_group(config, "default", plan=[(First(), True)])
    assert group.permissions.count() == 0
    reviewer_group.create_group(config, "default", plan=[(First(), False)])
    assert group.permissions.count() == count > 5


def test_create_group__keeps_what_administrators_changed() -> None:
    group = Group.objects.get(name=reviewer_group.GROUP)
    group.permissions.clear()
    call_command("migrate", verbosity=0)
    assert group.permissions.count() == 0
    group.delete()
    call_command("migrate", verbosity=0)
    assert not Group.objects.filter(name=reviewer_group.GROUP).exists()
