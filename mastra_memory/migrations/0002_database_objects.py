"""Create what Django's migrations cannot express."""

from django.db import migrations

from mastra_memory.migrations import _sql


class Migration(migrations.Migration):
    dependencies = [("mastra_memory", "0001_initial")]

    operations = [
        *(migrations.RunSQL(add, drop) for add, drop in _sql.FOREIGN_KEYS),
        migrations.RunSQL(_sql.CREATE_SEARCH_FUNCTIONS, _sql.DROP_SEARCH_FUNCTIONS),
        migrations.RunSQL(_sql.CREATE_INDEXES, _sql.DROP_INDEXES),
        migrations.RunSQL(_sql.CREATE_TRIGGERS, _sql.DROP_TRIGGERS),
        migrations.RunSQL(_sql.CREATE_REFUSE_FUNCTION, _sql.DROP_REFUSE_FUNCTION),
        migrations.RunSQL(_sql.SET_STORAGE, _sql.RESET_STORAGE),
    ]
