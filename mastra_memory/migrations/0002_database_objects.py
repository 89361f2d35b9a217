"""Create what Django's migrations cannot express, and the group "Support reviewer"."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

from mastra_memory.migrations import _sql

GROUP = "Support reviewer"
"""A group that may read and review conversations, but not edit or delete them."""
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


def create_group(apps: Any, schema_editor: Any) -> None:
    """Create the group, unless the host project has a group of that name already."""
    group_model, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    database = schema_editor.connection.alias
    group, created = group_model.objects.using(database).get_or_create(name=GROUP)
    if not created:
        return
    # Django creates permissions only after all migrations have run, so create them here.
    app = apps.get_app_config("mastra_memory")
    app.models_module = True
    create_permissions(app, apps=apps, verbosity=0, using=database)
    app.models_module = None
    names = [f"view_{model}" for model in READABLE_MODELS] + ["review_thread"]
    permissions = permission.objects.using(database).filter(
        content_type__app_label="mastra_memory", codename__in=names
    )
    group.permissions.set(permissions)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("mastra_memory", "0001_initial"),
    ]

    operations = [
        *(migrations.RunSQL(add, drop) for add, drop in _sql.FOREIGN_KEYS),
        migrations.RunSQL(_sql.CREATE_SEARCH_FUNCTIONS, _sql.DROP_SEARCH_FUNCTIONS),
        migrations.RunSQL(_sql.CREATE_INDEXES, _sql.DROP_INDEXES),
        migrations.RunSQL(_sql.CREATE_TRIGGERS, _sql.DROP_TRIGGERS),
        migrations.RunSQL(_sql.CREATE_REFUSE_FUNCTION, _sql.DROP_REFUSE_FUNCTION),
        migrations.RunSQL(_sql.SET_STORAGE, _sql.RESET_STORAGE),
        migrations.RunPython(create_group, migrations.RunPython.noop),
    ]
