"""Create the tables. What Django cannot express follows in migration 0002."""

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.comparison
import django.db.models.functions.datetime
import django.db.models.lookups
import mastra_memory.models.fields
import mastra_memory.models.message
import pgvector.django.vector
from django.db import migrations, models

from mastra_memory.migrations import _extension, _sql


class Migration(migrations.Migration):
    initial = True

    dependencies: list[tuple[str, str]] = []

    operations = [
        # The tables below use the type `vector` and a default from the sequence.
        migrations.RunPython(_extension.create_extension, migrations.RunPython.noop),
        migrations.RunSQL(_sql.CREATE_SEQUENCE, _sql.DROP_SEQUENCE),
        migrations.CreateModel(
            name="DefaultView",
            fields=[
                (
                    "user_id",
                    mastra_memory.models.fields.UserIdField(primary_key=True, serialize=False),
                ),
            ],
            options={
                "verbose_name": "default view",
                "verbose_name_plural": "default views",
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
                (
                    "content_bytes",
                    models.GeneratedField(
                        db_persist=True,
                        expression=mastra_memory.models.fields.OctetLength(
                            django.db.models.functions.comparison.Cast(
                                "content", models.TextField()
                            )
                        ),
                        output_field=models.IntegerField(),
                    ),
                ),
                ("text", models.TextField(blank=True, default="", verbose_name="text")),
                (
                    "search",
                    mastra_memory.models.fields.TsVectorField(editable=False, null=True),
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
            ],
            options={
                "verbose_name": "message",
                "verbose_name_plural": "messages",
            },
        ),
        migrations.CreateModel(
            name="ModelUsage",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "resource_id",
                    mastra_memory.models.fields.IdField(
                        blank=True, null=True, verbose_name="resource"
                    ),
                ),
                (
                    "purpose",
                    models.CharField(
                        choices=[
                            ("title", "title"),
                            ("summary", "summary"),
                            ("extraction", "extraction"),
                            ("observation", "observation"),
                            ("reflection", "reflection"),
                            ("embedding", "embedding"),
                        ],
                        max_length=16,
                        verbose_name="purpose",
                    ),
                ),
                ("model", models.TextField(verbose_name="model")),
                (
                    "input_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="input tokens"),
                ),
                (
                    "output_tokens",
                    models.PositiveIntegerField(default=0, verbose_name="output tokens"),
                ),
                (
                    "cost",
                    models.DecimalField(
                        blank=True,
                        decimal_places=8,
                        max_digits=16,
                        null=True,
                        verbose_name="cost in US dollars",
                    ),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
            ],
            options={
                "verbose_name": "model usage",
                "verbose_name_plural": "model usage",
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
                        blank=True, null=True, verbose_name="observed up to"
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
                (
                    "observing_until",
                    mastra_memory.models.fields.AwareDateTimeField(blank=True, null=True),
                ),
                (
                    "reflecting_until",
                    mastra_memory.models.fields.AwareDateTimeField(blank=True, null=True),
                ),
                (
                    "buffering_observation_until",
                    mastra_memory.models.fields.AwareDateTimeField(blank=True, null=True),
                ),
                (
                    "buffering_reflection_until",
                    mastra_memory.models.fields.AwareDateTimeField(blank=True, null=True),
                ),
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
            ],
            options={
                "verbose_name": "observational record",
                "verbose_name_plural": "observational records",
            },
        ),
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
                            ("manual", "manual"),
                            ("generated", "generated"),
                            ("observed", "observed"),
                        ],
                        default="",
                        max_length=16,
                        verbose_name="title source",
                    ),
                ),
                ("metadata", models.JSONField(blank=True, null=True, verbose_name="metadata")),
                (
                    "title_state",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", "not requested"),
                            ("pending", "pending"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        db_default="",
                        editable=False,
                        max_length=8,
                        verbose_name="title generation",
                    ),
                ),
                ("title_request", models.JSONField(blank=True, editable=False, null=True)),
                (
                    "title_attempts",
                    models.PositiveSmallIntegerField(
                        db_default=0, editable=False, verbose_name="title attempts"
                    ),
                ),
                (
                    "title_due_at",
                    mastra_memory.models.fields.InstantField(blank=True, editable=False, null=True),
                ),
                ("title_error", models.TextField(blank=True, db_default="", editable=False)),
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
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
                "permissions": [
                    ("access_all_resources", "Can use the API for every resource"),
                    ("review_thread", "Can review threads: status, notes, tags"),
                    ("edit_transcript", "Can edit messages, titles and metadata"),
                    ("export_thread", "Can export threads"),
                    ("erase_resource", "Can erase all data of a resource"),
                    ("view_personal_data", "Can view personal data unmasked"),
                ],
            },
        ),
        migrations.CreateModel(
            name="ReviewNote",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "message_id",
                    mastra_memory.models.fields.IdField(
                        blank=True, null=True, verbose_name="message"
                    ),
                ),
                ("text", models.TextField(verbose_name="text")),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
            ],
            options={
                "verbose_name": "note",
                "verbose_name_plural": "notes",
            },
        ),
        migrations.CreateModel(
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("query", models.TextField(blank=True, verbose_name="filters")),
                ("shared", models.BooleanField(default=False, verbose_name="shared")),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
            ],
            options={
                "verbose_name": "saved view",
                "verbose_name_plural": "saved views",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Score",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("answer", models.CharField(max_length=100, verbose_name="answer")),
                (
                    "share",
                    models.DecimalField(decimal_places=5, max_digits=6, verbose_name="share"),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
            ],
            options={
                "verbose_name": "score",
                "verbose_name_plural": "scores",
            },
        ),
        migrations.CreateModel(
            name="Tag",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=64, unique=True, verbose_name="name")),
            ],
            options={
                "verbose_name": "tag",
                "verbose_name_plural": "tags",
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ThreadChange",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("title", "title"),
                            ("metadata", "metadata"),
                            ("message", "message"),
                            ("deleted", "messages deleted"),
                            ("memory", "working memory"),
                            ("observations", "observations"),
                            ("transfer", "transfer"),
                            ("clone", "clone"),
                            ("review", "review"),
                            ("note", "note"),
                            ("score", "score"),
                            ("undo", "undo"),
                        ],
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                (
                    "message_id",
                    mastra_memory.models.fields.IdField(
                        blank=True, null=True, verbose_name="message"
                    ),
                ),
                ("before", models.JSONField(null=True, verbose_name="before")),
                ("after", models.JSONField(null=True, verbose_name="after")),
                (
                    "undone_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        null=True, verbose_name="undone"
                    ),
                ),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="when"
                    ),
                ),
            ],
            options={
                "verbose_name": "change",
                "verbose_name_plural": "changes",
            },
        ),
        migrations.CreateModel(
            name="ThreadTag",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
            ],
            options={
                "verbose_name": "tag of a thread",
                "verbose_name_plural": "tags of threads",
            },
        ),
        migrations.CreateModel(
            name="Visit",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "seen_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="last seen",
                    ),
                ),
                (
                    "read_up_to",
                    mastra_memory.models.fields.AwareDateTimeField(
                        null=True, verbose_name="read up to"
                    ),
                ),
            ],
            options={
                "verbose_name": "visit",
                "verbose_name_plural": "visits",
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
            ],
            options={
                "verbose_name": "working memory revision",
                "verbose_name_plural": "working memory revisions",
            },
        ),
        migrations.CreateModel(
            name="Criterion",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, unique=True, verbose_name="name")),
                (
                    "help_text",
                    models.CharField(blank=True, max_length=300, verbose_name="what to look for"),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("number", "number"),
                            ("choice", "choice"),
                            ("yes_no", "yes or no"),
                        ],
                        default="number",
                        max_length=16,
                        verbose_name="kind",
                    ),
                ),
                ("minimum", models.IntegerField(default=1, verbose_name="lowest number")),
                ("maximum", models.IntegerField(default=5, verbose_name="highest number")),
                (
                    "choices",
                    models.TextField(
                        blank=True, help_text="One per line, best first.", verbose_name="choices"
                    ),
                ),
                ("position", models.PositiveSmallIntegerField(default=0, verbose_name="position")),
                ("active", models.BooleanField(default=True, verbose_name="in use")),
            ],
            options={
                "verbose_name": "criterion",
                "verbose_name_plural": "rubric",
                "ordering": ["position", "name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("maximum__gt", models.F("minimum")),
                            (
                                "maximum__lte",
                                django.db.models.expressions.CombinedExpression(
                                    models.F("minimum"), "+", models.Value(100)
                                ),
                            ),
                        ),
                        name="mastra_criterion_scale",
                        violation_error_message="The scale needs 2 to 101 steps.",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ExportJob",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                (
                    "format",
                    models.CharField(
                        choices=[
                            ("jsonl", "JSONL (everything, can be imported again)"),
                            ("markdown", "Markdown (to read)"),
                            ("csv", "CSV (for a spreadsheet)"),
                        ],
                        max_length=16,
                        verbose_name="format",
                    ),
                ),
                ("thread_ids", models.JSONField(default=list, verbose_name="threads")),
                ("masked", models.BooleanField(default=True, verbose_name="masked")),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                        ],
                        default="waiting",
                        max_length=16,
                        verbose_name="state",
                    ),
                ),
                ("done", models.PositiveIntegerField(default=0, verbose_name="threads done")),
                ("error", models.TextField(blank=True, verbose_name="error")),
                ("content", models.BinaryField(null=True)),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "finished_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        null=True, verbose_name="finished"
                    ),
                ),
                (
                    "owner_id",
                    mastra_memory.models.fields.UserIdField(verbose_name="owner"),
                ),
            ],
            options={
                "verbose_name": "export",
                "verbose_name_plural": "exports",
            },
        ),
        migrations.CreateModel(
            name="EmbeddingRequest",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("thread_id", mastra_memory.models.fields.IdField(verbose_name="thread")),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                ("model", mastra_memory.models.fields.IdField(verbose_name="model")),
                (
                    "created_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="requested",
                    ),
                ),
                (
                    "due_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="next attempt",
                    ),
                ),
                ("claim", models.UUIDField(editable=False, null=True, verbose_name="claimed by")),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(db_default=0, verbose_name="attempts"),
                ),
                ("error", models.TextField(blank=True, db_default="", verbose_name="last error")),
                (
                    "failed_at",
                    mastra_memory.models.fields.InstantField(
                        blank=True, null=True, verbose_name="failed"
                    ),
                ),
                (
                    "message",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="embedding_requests",
                        to="mastra_memory.message",
                        verbose_name="message",
                    ),
                ),
            ],
            options={
                "verbose_name": "embedding request",
                "verbose_name_plural": "embedding requests",
            },
        ),
        migrations.CreateModel(
            name="MessageEmbedding",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "message_id",
                        "model",
                        "dimensions",
                        "passage",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("model", mastra_memory.models.fields.IdField(verbose_name="model")),
                ("dimensions", models.PositiveSmallIntegerField(verbose_name="dimensions")),
                ("passage", models.PositiveSmallIntegerField(verbose_name="passage")),
                ("thread_id", mastra_memory.models.fields.IdField(verbose_name="thread")),
                ("resource_id", mastra_memory.models.fields.IdField(verbose_name="resource")),
                ("text_hash", models.BinaryField(max_length=32, verbose_name="hash of the text")),
                ("embedding", pgvector.django.vector.VectorField(verbose_name="vector")),
                (
                    "message",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="embeddings",
                        to="mastra_memory.message",
                    ),
                ),
            ],
            options={
                "verbose_name": "message embedding",
                "verbose_name_plural": "message embeddings",
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
            },
        ),
        migrations.CreateModel(
            name="Review",
            fields=[
                (
                    "thread",
                    models.OneToOneField(
                        db_constraint=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        primary_key=True,
                        related_name="review",
                        serialize=False,
                        to="mastra_memory.thread",
                        verbose_name="thread",
                    ),
                ),
                (
                    "status",
                    models.CharField(
                        choices=[
                            ("new", "new"),
                            ("in_review", "in review"),
                            ("waiting", "waiting"),
                            ("resolved", "resolved"),
                            ("flagged", "flagged"),
                        ],
                        default="new",
                        max_length=16,
                        verbose_name="status",
                    ),
                ),
                (
                    "priority",
                    models.SmallIntegerField(
                        choices=[(0, "low"), (1, "normal"), (2, "high"), (3, "urgent")],
                        default=1,
                        verbose_name="priority",
                    ),
                ),
                ("version", models.PositiveIntegerField(default=1, editable=False)),
                (
                    "created_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                (
                    "updated_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="changed",
                    ),
                ),
                (
                    "resolved_at",
                    mastra_memory.models.fields.AwareDateTimeField(
                        editable=False, null=True, verbose_name="resolved"
                    ),
                ),
            ],
            options={
                "verbose_name": "review",
                "verbose_name_plural": "reviews",
            },
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                fields=["resource_id", "created_at", "id"], name="mastra_thread_res_created"
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                fields=["resource_id", "updated_at", "id"], name="mastra_thread_res_updated"
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["created_at", "id"], name="mastra_thread_created"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(fields=["updated_at", "id"], name="mastra_thread_updated"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                condition=models.Q(("clone_source_id__isnull", False)),
                fields=["clone_source_id"],
                name="mastra_thread_clone_source",
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                condition=models.Q(("title_state", "pending")),
                fields=["title_due_at"],
                name="mastra_thread_title_due",
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=mastra_memory.models.fields.GinIndex(
                fields=["metadata"], name="mastra_thread_meta", opclasses=["jsonb_path_ops"]
            ),
        ),
        migrations.AddConstraint(
            model_name="thread",
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
                name="mastra_thread_ids",
            ),
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("metadata__isnull", True),
                    mastra_memory.models.fields.JsonTypeIs("metadata", "object"),
                    _connector="OR",
                ),
                name="mastra_thread_metadata_is_object",
            ),
        ),
        migrations.AddConstraint(
            model_name="thread",
            constraint=models.UniqueConstraint(
                fields=("id", "resource_id"), name="mastra_thread_owner"
            ),
        ),
        migrations.AddField(
            model_name="observationalrecord",
            name="thread",
            field=models.ForeignKey(
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
        migrations.AddField(
            model_name="modelusage",
            name="thread",
            field=models.ForeignKey(
                blank=True,
                db_constraint=False,
                null=True,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="model_usage",
                to="mastra_memory.thread",
                verbose_name="thread",
            ),
        ),
        migrations.AddField(
            model_name="message",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="messages",
                to="mastra_memory.thread",
                verbose_name="thread",
            ),
        ),
        migrations.AddField(
            model_name="reviewnote",
            name="author_id",
            field=mastra_memory.models.fields.UserIdField(
                db_index=True, null=True, verbose_name="author"
            ),
        ),
        migrations.AddField(
            model_name="reviewnote",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="notes",
                to="mastra_memory.thread",
                verbose_name="thread",
            ),
        ),
        migrations.AddField(
            model_name="savedview",
            name="owner_id",
            field=mastra_memory.models.fields.UserIdField(verbose_name="owner"),
        ),
        migrations.AddField(
            model_name="defaultview",
            name="view",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="+",
                to="mastra_memory.savedview",
            ),
        ),
        migrations.AddField(
            model_name="score",
            name="author_id",
            field=mastra_memory.models.fields.UserIdField(db_index=True, verbose_name="author"),
        ),
        migrations.AddField(
            model_name="score",
            name="criterion",
            field=models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="scores",
                to="mastra_memory.criterion",
                verbose_name="criterion",
            ),
        ),
        migrations.AddField(
            model_name="score",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="scores",
                to="mastra_memory.thread",
            ),
        ),
        migrations.AddField(
            model_name="threadchange",
            name="author_id",
            field=mastra_memory.models.fields.UserIdField(
                db_index=True, null=True, verbose_name="author"
            ),
        ),
        migrations.AddField(
            model_name="threadchange",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="changes",
                to="mastra_memory.thread",
                verbose_name="thread",
            ),
        ),
        migrations.AddField(
            model_name="threadtag",
            name="tag",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="thread_tags",
                to="mastra_memory.tag",
            ),
        ),
        migrations.AddField(
            model_name="threadtag",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="thread_tags",
                to="mastra_memory.thread",
            ),
        ),
        migrations.AddField(
            model_name="visit",
            name="thread",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="visits",
                to="mastra_memory.thread",
            ),
        ),
        migrations.AddField(
            model_name="visit",
            name="user_id",
            field=mastra_memory.models.fields.UserIdField(db_index=True, verbose_name="user"),
        ),
        migrations.AddField(
            model_name="workingmemory",
            name="thread",
            field=models.ForeignKey(
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
        migrations.AddField(
            model_name="workingmemoryrevision",
            name="author_id",
            field=mastra_memory.models.fields.UserIdField(
                blank=True, db_index=True, null=True, verbose_name="author"
            ),
        ),
        migrations.AddField(
            model_name="workingmemoryrevision",
            name="working_memory",
            field=models.ForeignKey(
                db_constraint=False,
                db_index=False,
                on_delete=django.db.models.deletion.DO_NOTHING,
                related_name="revisions",
                to="mastra_memory.workingmemory",
                verbose_name="working memory",
            ),
        ),
        migrations.AddIndex(
            model_name="exportjob",
            index=models.Index(fields=["owner_id", "-created_at"], name="mastra_export_owner"),
        ),
        migrations.AddIndex(
            model_name="embeddingrequest",
            index=models.Index(
                condition=models.Q(("failed_at", None)),
                fields=["due_at", "id"],
                name="mastra_embedding_request_due",
            ),
        ),
        migrations.AddIndex(
            model_name="embeddingrequest",
            index=models.Index(fields=["resource_id"], name="mastra_embedding_request_res"),
        ),
        migrations.AddIndex(
            model_name="embeddingrequest",
            index=models.Index(fields=["thread_id"], name="mastra_embedding_request_thr"),
        ),
        migrations.AddConstraint(
            model_name="embeddingrequest",
            constraint=models.UniqueConstraint(
                fields=("message", "model"), name="mastra_embedding_request_once"
            ),
        ),
        migrations.AddIndex(
            model_name="messageembedding",
            index=models.Index(
                fields=["model", "dimensions", "resource_id"], name="mastra_embedding_resource"
            ),
        ),
        migrations.AddIndex(
            model_name="messageembedding",
            index=models.Index(
                fields=["model", "dimensions", "thread_id"], name="mastra_embedding_thread"
            ),
        ),
        migrations.AddConstraint(
            model_name="observationchunk",
            constraint=models.CheckConstraint(
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
        ),
        migrations.AddConstraint(
            model_name="observationchunk",
            constraint=models.UniqueConstraint(
                fields=("record", "position"), name="mastra_chunk_position"
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="assignee_id",
            field=mastra_memory.models.fields.UserIdField(
                blank=True, null=True, verbose_name="assignee"
            ),
        ),
        migrations.AddField(
            model_name="review",
            name="changed_by_id",
            field=mastra_memory.models.fields.UserIdField(editable=False, null=True),
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
            model_name="modelusage",
            index=models.Index(fields=["created_at"], name="mastra_usage_created"),
        ),
        migrations.AddIndex(
            model_name="modelusage",
            index=models.Index(fields=["resource_id", "created_at"], name="mastra_usage_resource"),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["resource_id", "created_at", "sequence"], name="mastra_message_resource"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=mastra_memory.models.fields.GinIndex(
                fields=["search"], name="mastra_message_search"
            ),
        ),
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                condition=models.Q(("search__isnull", True)),
                fields=["resource_id"],
                name="mastra_message_wordless",
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
        migrations.AddIndex(
            model_name="reviewnote",
            index=models.Index(fields=["thread", "created_at"], name="mastra_note_thread"),
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("owner_id", "name"), name="mastra_saved_view_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="score",
            constraint=models.UniqueConstraint(
                fields=("thread", "criterion", "author_id"), name="mastra_score_once"
            ),
        ),
        migrations.AddIndex(
            model_name="threadchange",
            index=models.Index(fields=["thread", "id"], name="mastra_change_thread"),
        ),
        migrations.AddIndex(
            model_name="threadchange",
            index=models.Index(
                condition=models.Q(("message_id__isnull", False)),
                fields=["message_id"],
                name="mastra_change_message",
            ),
        ),
        migrations.AddIndex(
            model_name="threadtag",
            index=models.Index(fields=["tag", "thread"], name="mastra_thread_tag_idx"),
        ),
        migrations.AddConstraint(
            model_name="threadtag",
            constraint=models.UniqueConstraint(
                fields=("thread", "tag"), name="mastra_thread_tag_once"
            ),
        ),
        migrations.AddConstraint(
            model_name="visit",
            constraint=models.UniqueConstraint(
                fields=("thread", "user_id"), name="mastra_visit_once"
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
        migrations.AddIndex(
            model_name="review",
            index=models.Index(fields=["status", "thread"], name="mastra_review_status_idx"),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(
                condition=models.Q(("assignee_id__isnull", False)),
                fields=["assignee_id", "status"],
                name="mastra_review_assignee_idx",
            ),
        ),
        migrations.AddIndex(
            model_name="review",
            index=models.Index(fields=["resolved_at"], name="mastra_review_resolved_idx"),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("status__in", ["new", "in_review", "waiting", "resolved", "flagged"])
                ),
                name="mastra_review_status",
            ),
        ),
        migrations.AddConstraint(
            model_name="review",
            constraint=models.CheckConstraint(
                condition=models.Q(("priority__range", (0, 3))), name="mastra_review_priority"
            ),
        ),
    ]
