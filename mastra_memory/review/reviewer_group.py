"""The group "Support reviewer", which may read and review conversations, but not change them."""

from typing import Any

from django.apps import AppConfig
from django.apps import apps as global_apps
from django.contrib.auth.management import create_permissions
from django.db import router

GROUP = "Support reviewer"
READABLE_MODELS = (
    "thread",
    "message",
    "workingmemory",
    "workingmemoryrevision",
    "observationalrecord",
    "observationchunk",
    "review",
    "reviewnote",
    "tag",
    "criterion",
    "savedview",
)
FIRST_MIGRATION = ("mastra_memory", "0001_initial")


def create_group(app_config: AppConfig, using: str, **options: Any) -> None:
    """Create the group after our first migration was applied, and after `flush`.

    This runs after each `migrate`, on each database. If our tables were created again, the group
    exists already, but `remove_stale_contenttypes` may have deleted its permissions. At any other
    time the group stays as it is: administrators may change or delete it.

    Args:
        app_config: Our app.
        using: The alias of the database that was migrated.
        **options: The other arguments of the signal `post_migrate`. `flush` sends it without a
            plan.
    """
    plan, registry = options.get("plan"), options.get("apps", global_apps)
    if plan is not None and not _applies_first_migration(plan):
        return
    try:
        group_model: Any = registry.get_model("auth", "Group")
        permission_model: Any = registry.get_model("auth", "Permission")
    except LookupError:  # This database has no users.
        return
    if not router.allow_migrate_model(using, group_model):
        return
    groups = group_model.objects.using(using)
    if plan is None and groups.filter(name=GROUP).exists():
        return
    # Django creates permissions in a receiver of the same signal, which may run after this one.
    create_permissions(app_config, verbosity=0, using=using, apps=registry)
    group, _created = groups.get_or_create(name=GROUP)
    names = [f"view_{model}" for model in READABLE_MODELS] + ["review_thread"]
    own = permission_model.objects.using(using).filter(
        content_type__app_label=app_config.label, codename__in=names
    )
    group.permissions.add(*own)


def _applies_first_migration(plan: list[tuple[Any, bool]]) -> bool:
    return any(
        (migration.app_label, migration.name) == FIRST_MIGRATION and not backwards
        for migration, backwards in plan
    )
