"""Messages whose searchable words are still to be written are found by an index of their own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    """See `mastra_memory.search.tsvector`."""

    dependencies = [("mastra_memory", "0007_refuse")]

    operations = [
        migrations.AddIndex(
            model_name="message",
            index=models.Index(
                fields=["resource_id"],
                condition=models.Q(("search__isnull", True)),
                name="mastra_message_wordless",
            ),
        ),
    ]
