"""The addresses of the host project."""

from urllib.parse import quote

from django.contrib.admin.utils import quote as quote_key
from django.urls import reverse


def api(path):
    """Return the address of a route of the API, below the prefix that the project has chosen."""
    namespace = "v1:" if _has_namespace("v1") else "mastra_memory:"
    root = reverse(f"{namespace}status").removesuffix("memory/status")
    return root + "memory/" + path


def thread(thread_id, rest=""):
    """Return the address of a thread in the API."""
    return api(f"threads/{quote(thread_id, safe='')}{rest}")


def admin(name, *args):
    """Return the address of a page of our admin."""
    return reverse(f"admin:mastra_memory_{name}", args=args)


def conversation(thread_id, rest="change/"):
    """Return the address of a conversation in the admin."""
    return admin("thread_changelist") + f"{quote_key(thread_id)}/{rest}"


def _has_namespace(name):
    from django.urls import get_resolver

    return name in get_resolver().namespace_dict
