"""Titles that threads get by themselves."""

from mastra_memory.titles.proposing import ask_for_titles, due_threads, propose_title

__all__ = ["ask_for_titles", "due_threads", "propose_title"]
