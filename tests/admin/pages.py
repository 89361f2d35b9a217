"""Addresses of the admin, and the text of a page."""

import html
import re
from typing import Any
from urllib.parse import urlencode

from django.contrib.admin.utils import quote
from django.contrib.auth.models import User
from django.test import Client

LIST = "/admin/mastra_memory/thread/"


def page_of(thread_id: str, **query: str) -> str:
    """The conversation page."""
    path = f"{LIST}{quote(thread_id)}/change/"
    return f"{path}?{urlencode(query)}" if query else path


def do(client: Client, thread_id: str, verb: str, **fields: Any) -> Any:
    """Send one of the page's forms and follow it."""
    return client.post(f"{LIST}{quote(thread_id)}/do/{verb}/", fields, follow=True)


def text_of(response: Any) -> str:
    """Return the text of a page without tags and with single spaces."""
    words = re.sub(r"<[^>]*>", " ", response.content.decode())
    return " ".join(html.unescape(words).split())


def user_of(client: Client) -> User:
    """Who is signed in."""
    return User.objects.get(pk=client.session["_auth_user_id"])
