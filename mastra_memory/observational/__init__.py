"""Observational memory: what was noted about a conversation, generation by generation."""
