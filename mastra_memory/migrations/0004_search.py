"""Searching by words in every script, and phrases."""

from django.db import migrations

from mastra_memory.migrations import _sql_search


class Migration(migrations.Migration):
    dependencies = [("mastra_memory", "0003_support_reviewers")]

    operations = [migrations.RunSQL(_sql_search.CREATE, _sql_search.DROP)]
