"""Management of the service."""
