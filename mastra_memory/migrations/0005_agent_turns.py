import django.db.models.deletion
import django.db.models.functions.datetime
import mastra_memory.models.fields
from django.db import migrations, models

from mastra_memory.migrations import _sql_agent_turns


class Migration(migrations.Migration):
    dependencies = [
        ("mastra_memory", "0004_search"),
    ]

    operations = [
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
        migrations.AddField(
            model_name="thread",
            name="title_attempts",
            field=models.PositiveSmallIntegerField(
                db_default=0, editable=False, verbose_name="attempts at a title"
            ),
        ),
        migrations.AddField(
            model_name="thread",
            name="title_due_at",
            field=mastra_memory.models.fields.InstantField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="thread",
            name="title_error",
            field=models.TextField(blank=True, db_default="", editable=False),
        ),
        migrations.AddField(
            model_name="thread",
            name="title_request",
            field=models.JSONField(blank=True, editable=False, null=True),
        ),
        migrations.AddField(
            model_name="thread",
            name="title_state",
            field=models.CharField(
                blank=True,
                choices=[
                    ("", "not asked for"),
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
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                condition=models.Q(("title_state", "pending")),
                fields=["title_due_at"],
                name="mastra_thread_title_due",
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
        migrations.AddIndex(
            model_name="modelusage",
            index=models.Index(fields=["created_at"], name="mastra_usage_created"),
        ),
        migrations.AddIndex(
            model_name="modelusage",
            index=models.Index(fields=["resource_id", "created_at"], name="mastra_usage_resource"),
        ),
        migrations.RunSQL(_sql_agent_turns.ADD_FOREIGN_KEY, _sql_agent_turns.DROP_FOREIGN_KEY),
    ]
