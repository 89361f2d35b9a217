"""Store the size of each message. This rewrites the table of messages."""

from django.db import migrations, models
from django.db.models.functions import Cast

from mastra_memory.models.fields import OctetLength


class Migration(migrations.Migration):
    dependencies = [("mastra_memory", "0002_database_objects")]

    operations = [
        migrations.AddField(
            "message",
            "content_bytes",
            models.GeneratedField(
                expression=OctetLength(Cast("content", models.TextField())),
                output_field=models.IntegerField(),
                db_persist=True,
            ),
        ),
    ]
