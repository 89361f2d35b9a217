"""Agent memory for Django: threads, messages, working memory, observations, recall and clones."""

__version__ = "0.1.0"
