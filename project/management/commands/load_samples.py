"""Load the sample conversations."""

from typing import Any

from django.core.management.base import BaseCommand

from project import samples


class Command(BaseCommand):
    """Loads what is missing; running it again changes nothing."""

    help = "Load the sample conversations that are not there yet."

    def handle(self, *args: Any, **options: Any) -> None:
        """Load and count."""
        count = samples.load_samples()
        self.stdout.write(f"Sample conversations: {count} messages loaded.")
