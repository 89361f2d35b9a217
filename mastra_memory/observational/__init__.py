"""Observational memory: observations about a conversation, in generations."""
