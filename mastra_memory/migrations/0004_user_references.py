"""Refer to users by their primary key as text, in databases created by an earlier `0001_initial`.

There, the columns are foreign keys with the type of the primary key of users.
"""

from django.db import migrations

_COLUMNS = (
    ("defaultview", "user_id"),
    ("exportjob", "owner_id"),
    ("review", "assignee_id"),
    ("review", "changed_by_id"),
    ("reviewnote", "author_id"),
    ("savedview", "owner_id"),
    ("score", "author_id"),
    ("threadchange", "author_id"),
    ("visit", "user_id"),
    ("workingmemoryrevision", "author_id"),
)

# The names of the foreign keys contain hashes, so they are looked up.
_CONVERT = """
DO $$
DECLARE foreign_key text;
BEGIN
    FOR foreign_key IN
        SELECT c.conname FROM pg_constraint c
        JOIN pg_attribute a ON a.attrelid = c.conrelid AND a.attnum = c.conkey[1]
        WHERE c.conrelid = 'mastra_memory_{table}'::regclass AND c.contype = 'f'
            AND a.attname = '{column}'
    LOOP
        EXECUTE format('ALTER TABLE mastra_memory_{table} DROP CONSTRAINT %I', foreign_key);
    END LOOP;
    IF (SELECT atttypid FROM pg_attribute WHERE attrelid = 'mastra_memory_{table}'::regclass
            AND attname = '{column}') <> 'text'::regtype THEN
        ALTER TABLE mastra_memory_{table}
            ALTER COLUMN {column} TYPE text COLLATE "C" USING {column}::text;
    END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("mastra_memory", "0003_observation")]

    operations = [
        migrations.RunSQL(_CONVERT.format(table=table, column=column), migrations.RunSQL.noop)
        for table, column in _COLUMNS
    ]
