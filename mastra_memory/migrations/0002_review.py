"""Reviewing: statuses, notes, tags, scores, saved views, changes, exports."""

import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
import mastra_memory.models.fields
from django.conf import settings
from django.db import migrations, models

from mastra_memory.migrations import _sql_review


class Migration(migrations.Migration):
    dependencies = [
        ("auth", "0012_alter_user_first_name_max_length"),
        ("mastra_memory", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
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
        migrations.AlterModelOptions(
            name="thread",
            options={
                "permissions": [
                    ("access_all_resources", "Can use the API for every resource"),
                    ("review_thread", "Can review threads: status, notes, tags"),
                    ("edit_transcript", "Can edit messages, titles and metadata"),
                    ("export_thread", "Can export threads"),
                    ("erase_resource", "Can erase everything of a resource"),
                    ("view_personal_data", "Can see what is masked for others"),
                ],
                "verbose_name": "conversation",
                "verbose_name_plural": "conversations",
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
                        blank=True, help_text="One a line, best first.", verbose_name="choices"
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
            name="SavedView",
            fields=[
                ("id", models.BigAutoField(primary_key=True, serialize=False)),
                ("name", models.CharField(max_length=100, verbose_name="name")),
                ("query", models.TextField(blank=True, verbose_name="filters")),
                ("shared", models.BooleanField(default=False, verbose_name="shared")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
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
            name="DefaultView",
            fields=[
                (
                    "user",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "view",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="mastra_memory.savedview",
                    ),
                ),
            ],
            options={
                "verbose_name": "default view",
                "verbose_name_plural": "default views",
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
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
                (
                    "criterion",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="scores",
                        to="mastra_memory.criterion",
                        verbose_name="criterion",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="scores",
                        to="mastra_memory.thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "score",
                "verbose_name_plural": "scores",
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
                ("undone_at", models.DateTimeField(null=True, verbose_name="taken back")),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="when"
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="changes",
                        to="mastra_memory.thread",
                        verbose_name="thread",
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
                (
                    "tag",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="thread_tags",
                        to="mastra_memory.tag",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="thread_tags",
                        to="mastra_memory.thread",
                    ),
                ),
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
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="last seen",
                    ),
                ),
                ("read_up_to", models.DateTimeField(null=True, verbose_name="read up to")),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="visits",
                        to="mastra_memory.thread",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="user",
                    ),
                ),
            ],
            options={
                "verbose_name": "visit",
                "verbose_name_plural": "visits",
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
                ("error", models.TextField(blank=True, verbose_name="what went wrong")),
                ("content", models.BinaryField(null=True)),
                (
                    "created_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                ("finished_at", models.DateTimeField(null=True, verbose_name="finished")),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="owner",
                    ),
                ),
            ],
            options={
                "verbose_name": "export",
                "verbose_name_plural": "exports",
                "indexes": [
                    models.Index(fields=["owner", "-created_at"], name="mastra_export_owner")
                ],
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
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="created",
                    ),
                ),
                (
                    "updated_at",
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(),
                        editable=False,
                        verbose_name="changed",
                    ),
                ),
                (
                    "resolved_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="resolved"),
                ),
                (
                    "assignee",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="assignee",
                    ),
                ),
                (
                    "changed_by",
                    models.ForeignKey(
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "verbose_name": "review",
                "verbose_name_plural": "reviews",
                "indexes": [
                    models.Index(fields=["status", "thread"], name="mastra_review_status_idx"),
                    models.Index(
                        condition=models.Q(("assignee__isnull", False)),
                        fields=["assignee", "status"],
                        name="mastra_review_assignee_idx",
                    ),
                    models.Index(fields=["resolved_at"], name="mastra_review_resolved_idx"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            ("status__in", ["new", "in_review", "waiting", "resolved", "flagged"])
                        ),
                        name="mastra_review_status",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("priority__range", (0, 3))),
                        name="mastra_review_priority",
                    ),
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
                    models.DateTimeField(
                        db_default=django.db.models.functions.datetime.Now(), verbose_name="created"
                    ),
                ),
                (
                    "author",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to=settings.AUTH_USER_MODEL,
                        verbose_name="author",
                    ),
                ),
                (
                    "thread",
                    models.ForeignKey(
                        db_constraint=False,
                        db_index=False,
                        on_delete=django.db.models.deletion.DO_NOTHING,
                        related_name="notes",
                        to="mastra_memory.thread",
                        verbose_name="thread",
                    ),
                ),
            ],
            options={
                "verbose_name": "note",
                "verbose_name_plural": "notes",
                "indexes": [
                    models.Index(fields=["thread", "created_at"], name="mastra_note_thread")
                ],
            },
        ),
        migrations.AddConstraint(
            model_name="savedview",
            constraint=models.UniqueConstraint(
                fields=("owner", "name"), name="mastra_saved_view_name"
            ),
        ),
        migrations.AddConstraint(
            model_name="score",
            constraint=models.UniqueConstraint(
                fields=("thread", "criterion", "author"), name="mastra_score_once"
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
            constraint=models.UniqueConstraint(fields=("thread", "user"), name="mastra_visit_once"),
        ),
        migrations.RunSQL(_sql_review.ADD_FOREIGN_KEYS, _sql_review.DROP_FOREIGN_KEYS),
        migrations.RunSQL(_sql_review.CREATE_INDEXES, _sql_review.DROP_INDEXES),
    ]
