"""The WSGI application, for web servers that speak WSGI.

`manage.py serve` uses `project.rsgi`, which calls this one after it has read the request's body.
"""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
# Connections of web processes start with the API's limit: its requests then set nothing.
os.environ.setdefault(
    "STATEMENT_TIMEOUT", os.environ.get("MASTRA_MEMORY_STATEMENT_TIMEOUT_API") or "5"
)

application = get_wsgi_application()
