"""The first tables."""

import django.contrib.postgres.indexes
import django.contrib.postgres.search
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.lookups
from django.conf import settings
from django.db import migrations, models

import mastra_memory.models.fields
import mastra_memory.models.message
from mastra_memory.migrations import _sql


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.RunSQL(_sql.CREATE_SEQUENCE, _sql.DROP_SEQUENCE),
        migrations.RunSQL(_sql.CREATE_WORDS, _sql.DROP_WORDS),
        migrations.CreateModel(
            name="Thread",
            fields=[
                (
                    "id",
                    mastra_memory.models.fields.IdField(
                        default=mastra_memory.models.fields.new_id,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                ("title", models.TextField(blank=True, default="", verbose_name="title")),
                (
                    "title_source",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "none"),
                            ("manual", "a person"),
                            ("generated", "generated"),
                            ("observed", "observed"),
                        ],
                        default="",
                        max_length=16,
                        verbose_name="title from",
                    ),
                ),
                ("metadata", models.JSONField(blank=True, null=True, verbose_name="metadata")),
                (
                    "clone_source_id",
                    mastra_memory.models.fields.IdField(
                        blank=True, editable=False, null=True, verbose_name="cloned from"
                    ),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                (
                    "updated_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="last activity",
                    ),
                ),
            ],
            options={
                "verbose_name": "thread",
                "verbose_name_plural": "threads",
                "permissions": [
                    ("access_all_resources", "Can use the API for every resource"),
                    ("review_thread", "Can review threads: status, notes, tags"),
                    ("edit_transcript", "Can edit messages, titles and metadata"),
                    ("export_thread", "Can export threads"),
                    ("erase_resource", "Can erase everything of a resource"),
                ],
                "indexes": [
                    models.Index(
                        fields=["resource_id", "created_at", "id"], name="mastra_thread_res_created"
                    ),
                    models.Index(
                        fields=["resource_id", "updated_at", "id"], name="mastra_thread_res_updated"
                    ),
                    models.Index(fields=["created_at", "id"], name="mastra_thread_created"),
                    models.Index(fields=["updated_at", "id"], name="mastra_thread_updated"),
                    models.Index(
                        condition=models.Q(("clone_source_id__isnull", False)),
                        fields=["clone_source_id"],
                        name="mastra_thread_clone_source",
                    ),
                    django.contrib.postgres.indexes.GinIndex(
                        fields=["metadata"], name="mastra_thread_meta", opclasses=["jsonb_path_ops"]
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.GreaterThan(
                                mastra_memory.models.fields.OctetLength("id"), 0
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                mastra_memory.models.fields.OctetLength("id"), 1024
                            ),
                            django.db.models.lookups.GreaterThan(
                                mastra_memory.models.fields.OctetLength("resource_id"), 0
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                mastra_memory.models.fields.OctetLength("resource_id"), 1024
                            ),
                        ),
                        name="mastra_thread_ids",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("metadata__isnull", True),
                            mastra_memory.models.fields.JsonTypeIs("metadata", "object"),
                            _connector="OR",
                        ),
                        name="mastra_thread_metadata_is_object",
                    ),
                    models.UniqueConstraint(
                        fields=("id", "resource_id"), name="mastra_thread_owner"
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="ObservationalRecord",
            fields=[
                (
                    "id",
                    mastra_memory.models.fields.IdField(
                        default=mastra_memory.models.fields.new_id,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "scope",
                    models.CharField(
                        choices=[("thread", "thread"), ("resource", "resource")],
                        max_length=8,
                        verbose_name="scope",
                    ),
                ),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                (
                    "generation_count",
                    models.PositiveIntegerField(default=0, verbose_name="generation"),
                ),
                (
                    "origin_type",
                    models.CharField(
                        choices=[("initial", "initial"), ("reflection", "reflection")],
                        default="initial",
                        max_length=16,
                        verbose_name="origin",
                    ),
                ),
                (
                    "active_observations",
                    models.TextField(blank=True, default="", verbose_name="observations"),
                ),
                (
                    "observation_token_count",
                    models.IntegerField(default=0, verbose_name="observation tokens"),
                ),
                (
                    "total_tokens_observed",
                    models.BigIntegerField(default=0, verbose_name="tokens observed"),
                ),
                (
                    "pending_message_tokens",
                    models.BigIntegerField(default=0, verbose_name="pending tokens"),
                ),
                (
                    "last_observed_at",
                    mastra_memory.models.fields.InstantField(
                        blank=True, null=True, verbose_name="cursor"
                    ),
                ),
                ("observed_message_ids", models.JSONField(blank=True, null=True)),
                ("observed_timezone", models.TextField(blank=True, default="")),
                ("last_buffered_at_tokens", models.BigIntegerField(default=0)),
                (
                    "last_buffered_at_time",
                    mastra_memory.models.fields.InstantField(blank=True, null=True),
                ),
                ("buffered_reflection", models.TextField(blank=True, default="")),
                ("buffered_reflection_tokens", models.IntegerField(blank=True, null=True)),
                ("buffered_reflection_input_tokens", models.IntegerField(blank=True, null=True)),
                ("reflected_observation_line_count", models.IntegerField(blank=True, null=True)),
                ("config", models.JSONField(blank=True, default=dict)),
                ("metadata", models.JSONField(blank=True, null=True)),
                ("observing_until", models.DateTimeField(blank=True, null=True)),
                ("reflecting_until", models.DateTimeField(blank=True, null=True)),
                ("buffering_observation_until", models.DateTimeField(blank=True, null=True)),
                ("buffering_reflection_until", models.DateTimeField(blank=True, null=True)),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "updated_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="updated"
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="observational_records",
                        to="mastra_memory.thread",
                        verbose_name="thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "observational record",
                "verbose_name_plural": "observational records",
            },
        ),
        migrations.CreateModel(
            name="Message",
            fields=[
                (
                    "id",
                    mastra_memory.models.fields.IdField(
                        default=mastra_memory.models.fields.new_id,
                        primary_key=True,
                        serialize=False,
                        verbose_name="id",
                    ),
                ),
                (
                    "sequence",
                    models.BigIntegerField(
                        db_default=mastra_memory.models.message.NextSequence(),
                        editable=False,
                        verbose_name="sequence",
                    ),
                ),
                (
                    "resource_id",
                    mastra_memory.models.fields.IdField(editable=False, verbose_name="resource"),
                ),
                (
                    "role",
                    models.CharField(
                        choices=[
                            ("user", "user"),
                            ("assistant", "assistant"),
                            ("tool", "tool"),
                            ("signal", "signal"),
                        ],
                        max_length=16,
                        verbose_name="role",
                    ),
                ),
                ("type", models.TextField(default="v2", verbose_name="type")),
                (
                    "signal",
                    models.CharField(
                        blank=True, default="", editable=False, max_length=32, verbose_name="signal"
                    ),
                ),
                ("content", models.JSONField(verbose_name="content")),
                ("text", models.TextField(blank=True, default="", verbose_name="text")),
                (
                    "search",
                    django.contrib.postgres.search.SearchVectorField(editable=False, null=True),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "edited_at",
                    mastra_memory.models.fields.InstantField(
                        blank=True, editable=False, null=True, verbose_name="edited"
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="messages",
                        to="mastra_memory.thread",
                        verbose_name="thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "message",
                "verbose_name_plural": "messages",
            },
        ),
        migrations.CreateModel(
            name="WorkingMemory",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "scope",
                    models.CharField(
                        choices=[("thread", "thread"), ("resource", "resource")],
                        max_length=8,
                        verbose_name="scope",
                    ),
                ),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                ("content", models.TextField(blank=True, default="", verbose_name="content")),
                (
                    "version",
                    models.PositiveIntegerField(default=1, editable=False, verbose_name="version"),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                (
                    "updated_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="updated",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="working_memories",
                        to="mastra_memory.thread",
                        verbose_name="thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "working memory",
                "verbose_name_plural": "working memories",
            },
        ),
        migrations.CreateModel(
            name="WorkingMemoryRevision",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("version", models.PositiveIntegerField(verbose_name="version")),
                ("content", models.TextField(blank=True, verbose_name="content")),
                ("source", models.CharField(max_length=32, verbose_name="source")),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
                (
                    "working_memory",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="revisions",
                        to="mastra_memory.workingmemory",
                        verbose_name="working memory",
                    ),
                ),
            ],
            options={
                "verbose_name": "working memory revision",
                "verbose_name_plural": "working memory revisions",
            },
        ),
        migrations.CreateModel(
            name="ObservationChunk",
            fields=[
                (
                    "id",
                    mastra_memory.models.fields.IdField(
                        primary_key=True, serialize=False, verbose_name="id"
                    ),
                ),
                ("position", models.PositiveIntegerField(verbose_name="position")),
                ("cycle_id", models.TextField(verbose_name="cycle")),
                ("observations", models.TextField(verbose_name="observations")),
                ("token_count", models.IntegerField(verbose_name="tokens")),
                ("message_ids", models.JSONField(default=list, verbose_name="messages")),
                ("message_tokens", models.IntegerField(verbose_name="message tokens")),
                (
                    "last_observed_at",
                    mastra_memory.models.fields.InstantField(verbose_name="observed up to"),
                ),
                ("hints", models.JSONField(blank=True, default=dict, verbose_name="hints")),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "record",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="chunks",
                        to="mastra_memory.observationalrecord",
                        verbose_name="record",
                    ),
                ),
            ],
            options={
                "verbose_name": "observation chunk",
                "verbose_name_plural": "observation chunks",
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            django.db.models.lookups.GreaterThan(
                                mastra_memory.models.fields.OctetLength("id"), 0
                            ),
                            django.db.models.lookups.LessThanOrEqual(
                                mastra_memory.models.fields.OctetLength("id"), 1024
                            ),
                        ),
                        name="mastra_chunk_id",
                    ),
                    models.UniqueConstraint(
                        fields=("record", "position"), name="mastra_chunk_position"
                    ),
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("scope", "thread"), ("thread__isnull", False)),
                    models.Q(("scope", "resource"), ("thread__isnull", True)),
                    _connector="OR",
                ),
                name="mastra_om_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    django.db.models.lookups.GreaterThan(
                        mastra_memory.models.fields.OctetLength("id"), 0
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        mastra_memory.models.fields.OctetLength("id"), 1024
                    ),
                    django.db.models.lookups.GreaterThan(
                        mastra_memory.models.fields.OctetLength("resource_id"), 0
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        mastra_memory.models.fields.OctetLength("resource_id"), 1024
                    ),
                ),
                name="mastra_om_ids",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.UniqueConstraint(
                condition=models.Q(("thread__isnull", False)),
                fields=("thread", "generation_count"),
                name="mastra_om_thread_generation",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.UniqueConstraint(
                condition=models.Q(("thread__isnull", True)),
                fields=("resource_id", "generation_count"),
                name="mastra_om_resource_generation",
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["resource_id", "created_at", "sequence"], name="mastra_message_resource"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=django.contrib.postgres.indexes.GinIndex(
                fields=["search"], name="mastra_message_search"
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    django.db.models.lookups.GreaterThan(
                        mastra_memory.models.fields.OctetLength("id"), 0
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        mastra_memory.models.fields.OctetLength("id"), 1024
                    ),
                ),
                name="mastra_message_id",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(("role__in", ["user", "assistant", "tool", "signal"])),
                name="mastra_message_role",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.CheckConstraint(
                condition=models.Q(mastra_memory.models.fields.JsonTypeIs("content", "object")),
                name="mastra_message_content_is_object",
            ),
        ),
        migrations.AddConstraint(
            model_name="message",
            constraint=models.UniqueConstraint(
                fields=("thread", "created_at", "sequence"), name="mastra_message_order"
            ),
        ),
        migrations.AddConstraint(
            model_name="workingmemory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("scope", "thread"), ("thread__isnull", False)),
                    models.Q(("scope", "resource"), ("thread__isnull", True)),
                    _connector="OR",
                ),
                name="mastra_wm_scope",
            ),
        ),
        migrations.AddConstraint(
            model_name="workingmemory",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    django.db.models.lookups.GreaterThan(
                        mastra_memory.models.fields.OctetLength("resource_id"), 0
                    ),
                    django.db.models.lookups.LessThanOrEqual(
                        mastra_memory.models.fields.OctetLength("resource_id"), 1024
                    ),
                ),
                name="mastra_wm_resource_id",
            ),
        ),
        migrations.AddConstraint(
            model_name="workingmemory",
            constraint=models.UniqueConstraint(
                condition=models.Q(("thread__isnull", False)),
                fields=("thread",),
                name="mastra_wm_thread",
            ),
        ),
        migrations.AddConstraint(
            model_name="workingmemory",
            constraint=models.UniqueConstraint(
                condition=models.Q(("thread__isnull", True)),
                fields=("resource_id",),
                name="mastra_wm_resource",
            ),
        ),
        migrations.AddConstraint(
            model_name="workingmemoryrevision",
            constraint=models.UniqueConstraint(
                fields=("working_memory", "version"), name="mastra_wm_revision_version"
            ),
        ),
        migrations.RunSQL(_sql.ADD_FOREIGN_KEYS, _sql.DROP_FOREIGN_KEYS),
    ]
