"""Database backend: Django's own for PostgreSQL, see base.py for what differs."""
