"""The WSGI application, for web servers that speak WSGI.

`manage.py serve` uses `project.rsgi`, which calls this one after it has read the request's body.
"""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")
# Web processes connect with the API's statement timeout, so that API requests need not set it.
os.environ.setdefault(
    "STATEMENT_TIMEOUT", os.environ.get("MASTRA_MEMORY_STATEMENT_TIMEOUT_API") or "5"
)

application = get_wsgi_application()
