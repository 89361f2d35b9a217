import django.db.models.deletion
import django.db.models.functions.datetime
import mastra_memory.models.fields
from django.db import migrations, models

from mastra_memory.migrations import _sql


class Migration(migrations.Migration):
    dependencies = [
        ("mastra_memory", "0002_database_objects"),
    ]

    operations = [
        migrations.CreateModel(
            name="MessageObservation",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "message_id",
                        "scope",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="observations",
                        to="mastra_memory.message",
                        verbose_name="message",
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
                ("thread_id", mastra_memory.models.fields.IdField(verbose_name="thread")),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                ("token_count", models.IntegerField(blank=True, null=True, verbose_name="tokens")),
                (
                    "chunk",
                    models.ForeignKey(
                        blank=True,
                        db_constraint=False,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="message_observations",
                        to="mastra_memory.observationchunk",
                        verbose_name="chunk",
                    ),
                ),
            ],
            options={
                "verbose_name": "message observation",
                "verbose_name_plural": "message observations",
            },
        ),
        migrations.CreateModel(
            name="ObservationEvent",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "record",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="events",
                        to="mastra_memory.observationalrecord",
                        verbose_name="record",
                    ),
                ),
                (
                    "thread_id",
                    mastra_memory.models.fields.IdField(
                        blank=True, null=True, verbose_name="thread"
                    ),
                ),
                (
                    "cycle_id",
                    models.TextField(
                        default=mastra_memory.models.fields.new_id, verbose_name="cycle"
                    ),
                ),
                (
                    "operation",
                    models.CharField(
                        choices=[
                            ("observation", "observation"),
                            ("buffering", "buffering"),
                            ("activation", "activation"),
                            ("reflection", "reflection"),
                            ("reflection_buffering", "buffering of a reflection"),
                            ("edit", "edit"),
                            ("title", "title"),
                        ],
                        max_length=24,
                        verbose_name="operation",
                    ),
                ),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("discarded", "discarded"),
                        ],
                        db_default="running",
                        default="running",
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                (
                    "started_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="started"
                    ),
                ),
                (
                    "finished_at",
                    mastra_memory.models.fields.InstantField(
                        blank=True, null=True, verbose_name="finished"
                    ),
                ),
                ("data", models.JSONField(blank=True, default=dict, verbose_name="data")),
                (
                    "error",
                    models.TextField(blank=True, db_default="", default="", verbose_name="error"),
                ),
                (
                    "tokens_in",
                    models.IntegerField(db_default=0, default=0, verbose_name="input tokens"),
                ),
                (
                    "tokens_out",
                    models.IntegerField(db_default=0, default=0, verbose_name="output tokens"),
                ),
                (
                    "cost",
                    models.DecimalField(
                        blank=True, decimal_places=8, max_digits=16, null=True, verbose_name="cost"
                    ),
                ),
                (
                    "user_name",
                    models.TextField(blank=True, db_default="", default="", verbose_name="user"),
                ),
            ],
            options={
                "verbose_name": "observation event",
                "verbose_name_plural": "observation events",
            },
        ),
        migrations.RemoveField(
            model_name="observationalrecord",
            name="buffering_observation_until",
        ),
        migrations.RemoveField(
            model_name="observationalrecord",
            name="buffering_reflection_until",
        ),
        migrations.RemoveField(
            model_name="observationalrecord",
            name="observing_until",
        ),
        migrations.RemoveField(
            model_name="observationalrecord",
            name="reflecting_until",
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="agent_id",
            field=mastra_memory.models.fields.IdField(
                blank=True, editable=False, null=True, verbose_name="agent"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="attempts",
            field=models.PositiveSmallIntegerField(
                db_default=0, default=0, editable=False, verbose_name="attempts"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="created_by_name",
            field=models.TextField(
                blank=True, db_default="", default="", verbose_name="created by"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="due_at",
            field=mastra_memory.models.fields.InstantField(
                blank=True, editable=False, null=True, verbose_name="work is due"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="error",
            field=models.TextField(
                blank=True, db_default="", default="", editable=False, verbose_name="last error"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="imported_sequence",
            field=models.BigIntegerField(db_default=0, default=0, editable=False),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="lease_expires_at",
            field=mastra_memory.models.fields.AwareDateTimeField(
                blank=True, editable=False, null=True
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="lease_operation",
            field=models.CharField(
                blank=True,
                choices=[
                    ("observing", "observing"),
                    ("reflecting", "reflecting"),
                    ("buffering", "buffering"),
                ],
                db_default="",
                default="",
                editable=False,
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="lease_token",
            field=models.UUIDField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="pinned",
            field=models.JSONField(
                blank=True, db_default=[], default=list, verbose_name="pinned observations"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="reflection_expires_at",
            field=mastra_memory.models.fields.AwareDateTimeField(
                blank=True, editable=False, null=True
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="reflection_operation",
            field=models.CharField(
                blank=True,
                choices=[
                    ("observing", "observing"),
                    ("reflecting", "reflecting"),
                    ("buffering", "buffering"),
                ],
                db_default="",
                default="",
                editable=False,
                max_length=16,
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="reflection_token",
            field=models.UUIDField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="superseded_by",
            field=models.ForeignKey(
                blank=True,
                db_index=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="+",
                to="mastra_memory.observationalrecord",
                verbose_name="superseded by",
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="unproductive_reflection_tokens",
            field=models.IntegerField(blank=True, null=True),
        ),
        migrations.AddField(
            model_name="observationchunk",
            name="activated_at",
            field=mastra_memory.models.fields.InstantField(
                blank=True, null=True, verbose_name="activated"
            ),
        ),
        migrations.AddField(
            model_name="observationchunk",
            name="group_id",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="group"),
        ),
        migrations.AddField(
            model_name="observationchunk",
            name="origin",
            field=models.CharField(
                choices=[
                    ("buffering", "buffering"),
                    ("observation", "observation"),
                    ("import", "import"),
                ],
                db_default="buffering",
                default="buffering",
                max_length=16,
                verbose_name="origin",
            ),
        ),
        migrations.AddField(
            model_name="observationchunk",
            name="range",
            field=models.TextField(blank=True, db_default="", default="", verbose_name="range"),
        ),
        migrations.AddField(
            model_name="observationchunk",
            name="thread_id",
            field=mastra_memory.models.fields.IdField(blank=True, null=True, verbose_name="thread"),
        ),
        migrations.AlterField(
            model_name="observationalrecord",
            name="origin_type",
            field=models.CharField(
                choices=[
                    ("initial", "initial"),
                    ("reflection", "reflection"),
                    ("edit", "edited by a person"),
                ],
                default="initial",
                max_length=16,
                verbose_name="origin",
            ),
        ),
        *(migrations.RunSQL(add, drop) for add, drop in _sql.OBSERVATION_FOREIGN_KEYS),
        migrations.RunSQL(_sql.LINK_GENERATIONS, _sql.KEEP_BUFFERED_CHUNKS),
        migrations.RunSQL(_sql.CREATE_TRACKING_TRIGGERS, _sql.DROP_TRACKING_TRIGGERS),
        migrations.AddIndex(
            model_name="observationalrecord",
            index=models.Index(
                condition=models.Q(("due_at__isnull", False)),
                fields=["due_at"],
                name="mastra_om_due",
            ),
        ),
        migrations.AddIndex(
            model_name="observationalrecord",
            index=models.Index(
                condition=models.Q(("superseded_by__isnull", False)),
                fields=["superseded_by"],
                name="mastra_om_superseded_by",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.UniqueConstraint(
                condition=models.Q(("superseded_by__isnull", True), ("thread__isnull", False)),
                fields=("thread",),
                name="mastra_om_thread_live",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.UniqueConstraint(
                condition=models.Q(("superseded_by__isnull", True), ("thread__isnull", True)),
                fields=("resource_id",),
                name="mastra_om_resource_live",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("superseded_by__isnull", True),
                    models.Q(
                        models.Q(("superseded_by", models.F("id")), _negated=True),
                        ("due_at", None),
                        ("lease_token", None),
                        ("reflection_token", None),
                    ),
                    _connector="OR",
                ),
                name="mastra_om_superseded_is_idle",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("lease_expires_at__isnull", False),
                        ("lease_operation__in", ["observing", "buffering"]),
                        ("lease_token__isnull", False),
                    ),
                    models.Q(
                        ("lease_expires_at__isnull", True),
                        ("lease_operation", ""),
                        ("lease_token__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="mastra_om_lease_is_complete",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("reflection_expires_at__isnull", False),
                        ("reflection_operation__in", ["reflecting", "buffering"]),
                        ("reflection_token__isnull", False),
                    ),
                    models.Q(
                        ("reflection_expires_at__isnull", True),
                        ("reflection_operation", ""),
                        ("reflection_token__isnull", True),
                    ),
                    _connector="OR",
                ),
                name="mastra_om_reflection_is_complete",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationalrecord",
            constraint=models.CheckConstraint(
                condition=models.Q(mastra_memory.models.fields.JsonTypeIs("pinned", "array")),
                name="mastra_om_pinned_is_list",
            ),
        ),
        migrations.AddIndex(
            model_name="observationchunk",
            index=models.Index(
                condition=models.Q(("activated_at__isnull", True)),
                fields=["record", "position"],
                name="mastra_chunk_buffered",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationchunk",
            constraint=models.UniqueConstraint(
                fields=("record", "cycle_id"), name="mastra_chunk_cycle"
            ),
        ),
        migrations.AddIndex(
            model_name="messageobservation",
            index=models.Index(
                condition=models.Q(("chunk__isnull", True)),
                fields=["thread_id", "scope"],
                include=("token_count",),
                name="mastra_tracking_thread",
            ),
        ),
        migrations.AddIndex(
            model_name="messageobservation",
            index=models.Index(
                condition=models.Q(("chunk__isnull", True)),
                fields=["resource_id", "scope", "thread_id"],
                include=("token_count",),
                name="mastra_tracking_resource",
            ),
        ),
        migrations.AddIndex(
            model_name="messageobservation",
            index=models.Index(
                condition=models.Q(("chunk__isnull", False)),
                fields=["chunk"],
                include=("token_count",),
                name="mastra_tracking_chunk",
            ),
        ),
        migrations.AddConstraint(
            model_name="messageobservation",
            constraint=models.CheckConstraint(
                condition=models.Q(("scope__in", ["thread", "resource"])),
                name="mastra_tracking_scope",
            ),
        ),
        migrations.AddIndex(
            model_name="observationevent",
            index=models.Index(
                fields=["record", "started_at", "id"], name="mastra_om_event_record"
            ),
        ),
        migrations.AddIndex(
            model_name="observationevent",
            index=models.Index(
                condition=models.Q(("state", "running")),
                fields=["started_at"],
                name="mastra_om_event_running",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationevent",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("finished_at", None), ("state", "running")),
                    models.Q(
                        ("finished_at__isnull", False),
                        ("state__in", ["done", "failed", "discarded"]),
                    ),
                    _connector="OR",
                ),
                name="mastra_om_event_state",
            ),
        ),
        migrations.AddConstraint(
            model_name="observationevent",
            constraint=models.CheckConstraint(
                condition=models.Q(mastra_memory.models.fields.JsonTypeIs("data", "object")),
                name="mastra_om_event_data",
            ),
        ),
    ]
