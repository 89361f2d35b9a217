"""A web process loads the libraries of models, agents and MCP only if it uses them."""

from pathlib import Path

import pytest

from tests.project.commands import manage

HEAVY = ("pydantic_ai", "openai", "agents", "langchain_core", "langgraph", "mcp", "anthropic")
SERVE = f"""
import json, sys
import project.wsgi
from django.contrib.auth.models import User
from django.test import Client
from django.conf import settings
settings.ALLOWED_HOSTS = ["*"]
client = Client()
client.force_login(User.objects.create_superuser("boss"))

def send(method, path, body=None):
    data = json.dumps(body) if body is not None else ""
    answer = client.generic(method, "/api/memory/" + path, data, "application/json")
    assert answer.status_code == 200, (path, answer.content)

said = {{"id": "m", "role": "user", "threadId": "t", "resourceId": "r", "content": "Hello"}}
send("POST", "threads?agentId=a", {{"threadId": "t", "resourceId": "r"}})
send("POST", "save-messages?agentId=a", {{"messages": [said]}})
send("POST", "threads/t/working-memory?agentId=a", {{"workingMemory": "name: Ann"}})
send("GET", "threads/t/context?agentId=a&query=Hello")
send("GET", "search?agentId=a&resourceId=r&searchQuery=Hello")
send("GET", "threads/t/messages?agentId=a")
print(sorted({{name.partition(".")[0] for name in sys.modules}} & set({HEAVY!r})))
"""


@pytest.mark.slow
def test_web_process__loads_no_library_of_models_or_agents(tmp_path: Path) -> None:
    prepared = manage(tmp_path, "migrate", "-v", "0")
    assert prepared.returncode == 0, prepared.stderr
    done = manage(tmp_path, "shell", "-v", "0", "-c", SERVE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == "[]"
