"""Import conversations from other systems.

An import goes through these modules in this order:

1. `sources` opens the file, archive, folder or database and detects its format.
2. `formats` reads it: every format yields the values that are defined in `records`.
3. `validation` checks each value and prepares it for the database.
4. `loader` collects batches, and `storage` writes each batch in one transaction.
5. `report` counts what happened to every record.

To add a format, see the docstring of `mastra_memory.importers.formats`.
"""
