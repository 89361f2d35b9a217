"""The ready group "Support reviewer": reads and reviews, edits and deletes nothing."""

from typing import Any

from django.contrib.auth.management import create_permissions
from django.db import migrations

GROUP = "Support reviewer"
READABLE = (
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
    """Make the group once; a group of that name that a host made itself is left alone."""
    group_model, permission = apps.get_model("auth", "Group"), apps.get_model("auth", "Permission")
    database = schema_editor.connection.alias
    group, made = group_model.objects.using(database).get_or_create(name=GROUP)
    if not made:
        return
    # Permissions are otherwise made only after all migrations have run.
    app = apps.get_app_config("mastra_memory")
    app.models_module = True
    create_permissions(app, apps=apps, verbosity=0, using=database)
    app.models_module = None
    names = [f"view_{model}" for model in READABLE] + ["review_thread"]
    wanted = permission.objects.using(database).filter(
        content_type__app_label="mastra_memory", codename__in=names
    )
    group.permissions.set(wanted)


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("contenttypes", "0002_remove_content_type_name"),
        ("mastra_memory", "0002_review"),
    ]

    operations = [migrations.RunPython(create_group, migrations.RunPython.noop)]
