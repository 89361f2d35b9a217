"""Which database the models of the app are in."""


class MemoryRouter:
    """Write the models of the app to `memory`, and read them from its replica."""

    def db_for_read(self, model, **hints):
        """Return the replica for the models of the app."""
        return "replica" if model._meta.app_label == "mastra_memory" else None

    def db_for_write(self, model, **hints):
        """Return the primary for the models of the app."""
        return "memory" if model._meta.app_label == "mastra_memory" else None

    def allow_relation(self, obj1, obj2, **hints):
        """Allow relations between rows of the primary and rows read from the replica."""
        own = {obj1._meta.app_label, obj2._meta.app_label}
        return True if own == {"mastra_memory"} else None

    def allow_migrate(self, db, app_label, **hints):
        """Create the tables of the app in `memory`, and all others in `default`."""
        return db == "memory" if app_label == "mastra_memory" else db == "default"
