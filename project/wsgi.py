"""The WSGI application, for web servers that speak WSGI.

`manage.py serve` uses `project.rsgi`, which calls this one after it has read the request's body.
"""

import os

from django.core.wsgi import get_wsgi_application

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

application = get_wsgi_application()
