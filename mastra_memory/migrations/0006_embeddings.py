"""Vectors of messages and the requests for them."""

import django.db.models.deletion
import django.db.models.functions.datetime
import mastra_memory.models.fields
import pgvector.django.vector
from django.db import migrations, models

from mastra_memory.migrations import _sql_embeddings


class Migration(migrations.Migration):
    dependencies = [
        ("mastra_memory", "0005_agent_turns"),
    ]

    operations = [
        migrations.RunPython(_sql_embeddings.create_extension, migrations.RunPython.noop),
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
                        verbose_name="asked for",
                    ),
                ),
                (
                    "due_at",
                    mastra_memory.models.fields.InstantField(
                        db_default=django.db.models.functions.datetime.Now(),
                        verbose_name="next attempt",
                    ),
                ),
                ("claim", models.UUIDField(editable=False, null=True, verbose_name="taken by")),
                (
                    "attempts",
                    models.PositiveSmallIntegerField(db_default=0, verbose_name="attempts"),
                ),
                ("error", models.TextField(blank=True, db_default="", verbose_name="last error")),
                (
                    "failed_at",
                    mastra_memory.models.fields.InstantField(
                        blank=True, null=True, verbose_name="given up"
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
                "indexes": [
                    models.Index(
                        condition=models.Q(("failed_at", None)),
                        fields=["due_at", "id"],
                        name="mastra_embedding_request_due",
                    ),
                    models.Index(fields=["resource_id"], name="mastra_embedding_request_res"),
                    models.Index(fields=["thread_id"], name="mastra_embedding_request_thr"),
                ],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("message", "model"), name="mastra_embedding_request_once"
                    )
                ],
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
                "indexes": [
                    models.Index(
                        fields=["model", "dimensions", "resource_id"],
                        name="mastra_embedding_resource",
                    ),
                    models.Index(
                        fields=["model", "dimensions", "thread_id"], name="mastra_embedding_thread"
                    ),
                ],
            },
        ),
        migrations.RunSQL(_sql_embeddings.CREATE, _sql_embeddings.DROP),
    ]
