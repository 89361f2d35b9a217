"""Move a database sequence forward."""

from django.db import connections

# The sequence never moves back, so numbers that are assigned meanwhile are not assigned again.
_ADVANCE = """SELECT setval('mastra_memory_message_sequence', greatest(last_value, %s))
    FROM mastra_memory_message_sequence WHERE last_value < %s OR NOT is_called"""


def advance_message_sequence(number: int, using: str) -> None:
    """Let the next number of `Message.sequence` be greater than `number`.

    Args:
        number: A number that a message has.
        using: The alias of the database, which `loaddata --database` selects.
    """
    with connections[using].cursor() as cursor:
        cursor.execute(_ADVANCE, [number, number])
