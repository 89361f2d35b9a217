"""Serve the memory over the Model Context Protocol, to the program that starts this command."""

import argparse
from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError
from django.utils.module_loading import import_string

from mastra_memory.exceptions import AccessDenied, AgentNotFound, MemoryNotConfigured
from mastra_memory.memory.callers import Caller, get_caller_of_user

SERVER = "mastra_memory.adapters.mcp"


class Command(BaseCommand):
    """Speaks over standard input and output; everything else it says goes to standard error."""

    help = "Serve recall and working memory over MCP (stdio), for one user or one resource."

    def add_arguments(self, parser: argparse.ArgumentParser) -> None:
        whose = parser.add_mutually_exclusive_group(required=True)
        whose.add_argument("--user", help="Speak for this user, with the user's own rights.")
        whose.add_argument("--resource", help="Speak for this resource.")
        parser.add_argument("--agent", help="The agent whose options hold.")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until the other side hangs up."""
        try:
            make_server = import_string(f"{SERVER}.make_server")
        except ImportError as error:
            raise CommandError("pip install 'django-mastra-memory[mcp]' first") from error
        try:
            server = make_server(self.caller(options), agent_id=options["agent"])
        except (AccessDenied, AgentNotFound, MemoryNotConfigured) as error:
            raise CommandError(str(error)) from error
        server.run("stdio")

    def caller(self, options: dict[str, Any]) -> Caller:
        """Return the caller that the options name."""
        if options["resource"]:
            return Caller(options["resource"])
        users = get_user_model()._default_manager
        try:
            user = users.get_by_natural_key(options["user"])
        except get_user_model().DoesNotExist as error:
            raise CommandError(f"There is no user {options['user']}") from error
        if not user.is_active:
            raise CommandError(f"The user {options['user']} is not active")
        return get_caller_of_user(user)
