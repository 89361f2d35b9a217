"""Create an access token and print it."""

from datetime import timedelta
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils import timezone

from project.models import DEFAULT_LIFETIME_DAYS, MAX_NAME_LENGTH, AccessToken

MAX_LIFETIME_DAYS = 36_500


class Command(BaseCommand):
    """Prints the token and nothing else, so that a shell can take it: TOKEN=$(manage.py ...)."""

    help = "Create an access token for a user and print it. It cannot be shown again."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the arguments."""
        parser.add_argument("username")
        parser.add_argument(
            "--days",
            type=int,
            default=DEFAULT_LIFETIME_DAYS,
            help="days until the token expires (default: %(default)s)",
        )
        parser.add_argument("--name", default="command line", help="what the token is for")

    def handle(self, *args: Any, **options: Any) -> str:
        """Create the token."""
        users = get_user_model()
        if not 1 <= options["days"] <= MAX_LIFETIME_DAYS:
            raise CommandError(f"--days must be 1 to {MAX_LIFETIME_DAYS}.")
        if len(options["name"]) > MAX_NAME_LENGTH:
            raise CommandError(f"--name may have at most {MAX_NAME_LENGTH} characters.")
        try:
            user = users.objects.get(**{users.USERNAME_FIELD: options["username"]})
        except users.DoesNotExist:
            raise CommandError(f"Unknown user {options['username']!r}.") from None
        if not user.is_active:
            raise CommandError(f"The user {options['username']!r} is not active.")
        expires_at = timezone.now() + timedelta(days=options["days"])
        token = AccessToken(user=user, name=options["name"], expires_at=expires_at)
        secret = token.generate_secret()
        token.save()
        return secret
