"""Database backend: Django's PostgreSQL backend on the embedded server."""
