"""Serializers of the memory API: request bodies, query strings and response bodies."""
