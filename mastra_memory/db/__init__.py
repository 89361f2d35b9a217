"""Helpers for SQL, JSON text, times and ids that the database can store."""
