"""A turn: what the user said, kept before the model is asked; what it answered, kept after."""

from mastra_memory.turns.reconciling import reconciled
from mastra_memory.turns.rows import Given, Row, Turn, answer_name, find_answer, rows_of, shown

__all__ = [
    "Given",
    "Row",
    "Turn",
    "answer_name",
    "find_answer",
    "reconciled",
    "rows_of",
    "shown",
]
