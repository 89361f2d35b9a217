"""Serve memory over the Model Context Protocol to the program that starts this command."""

from typing import Any

from django.contrib.auth import get_user_model
from django.core.management.base import BaseCommand, CommandError, CommandParser
from django.utils.module_loading import import_string

from mastra_memory.exceptions import AccessDenied, AgentNotFound, MemoryNotConfigured
from mastra_memory.memory.callers import Caller, get_caller_of_user


class Command(BaseCommand):
    """Serve MCP over standard input and output. Logging goes to standard error."""

    help = "Serve recall and working memory over MCP (stdio) for one user or one resource."

    def add_arguments(self, parser: CommandParser) -> None:
        """Add the options."""
        subject = parser.add_mutually_exclusive_group(required=True)
        subject.add_argument("--user", help="serve this user, with the permissions of the user")
        subject.add_argument("--resource", help="serve this resource")
        parser.add_argument("--agent", help="the agent with the memory options to use")

    def handle(self, *args: Any, **options: Any) -> None:
        """Serve until the client closes the connection."""
        try:
            # By name, because the adapter needs a library that is optional.
            make_server = import_string("mastra_memory.adapters.mcp.make_server")
        except ImportError as error:
            raise CommandError(
                "The MCP library is missing: pip install 'django-mastra-memory[mcp]'"
            ) from error
        try:
            if options["resource"]:
                caller = Caller(options["resource"])
            else:
                caller = get_caller_of_user(_get_user(options["user"]))
            server = make_server(caller, agent_id=options["agent"])
        except (AccessDenied, AgentNotFound, MemoryNotConfigured) as error:
            raise CommandError(str(error)) from error
        server.run("stdio")


def _get_user(username: str) -> Any:
    users = get_user_model()
    try:
        user = users._default_manager.get_by_natural_key(username)
    except users.DoesNotExist as error:
        raise CommandError(f"There is no user {username}.") from error
    if not user.is_active:
        raise CommandError(f"The user {username} is not active.")
    return user
