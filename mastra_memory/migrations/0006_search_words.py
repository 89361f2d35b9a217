"""Index words that the app splits itself, and the words of titles and notes in their own rows.

`manage.py mastra_reindex` splits the words of existing messages again. Titles and notes have none
after this migration; the next search, or the worker, writes them.
"""

from django.db import migrations, models

from mastra_memory.migrations import _sql
from mastra_memory.models.fields import GinIndex, TsVectorField


class Migration(migrations.Migration):
    dependencies = [("mastra_memory", "0005_observation_requests")]

    operations = [
        migrations.RunSQL(_sql.DROP_TITLE_INDEX, _sql.CREATE_TITLE_INDEX),
        migrations.RunSQL(_sql.DROP_SEARCH_FUNCTIONS, _sql.CREATE_SEARCH_FUNCTIONS),
        migrations.AddField(
            model_name="reviewnote",
            name="search",
            field=TsVectorField(editable=False, null=True),
        ),
        migrations.AddField(
            model_name="thread",
            name="title_search",
            field=TsVectorField(editable=False, null=True),
        ),
        migrations.AddIndex(
            model_name="reviewnote",
            index=GinIndex(fields=["search"], name="mastra_note_words"),
        ),
        migrations.AddIndex(
            model_name="reviewnote",
            index=models.Index(
                condition=models.Q(("search__isnull", True)),
                fields=["id"],
                name="mastra_note_wordless",
            ),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=GinIndex(fields=["title_search"], name="mastra_thread_words"),
        ),
        migrations.AddIndex(
            model_name="thread",
            index=models.Index(
                condition=models.Q(("title_search__isnull", True)),
                fields=["resource_id"],
                name="mastra_thread_wordless",
            ),
        ),
        migrations.RunSQL(_sql.CREATE_WORD_FUNCTIONS, _sql.DROP_WORD_FUNCTIONS),
    ]
