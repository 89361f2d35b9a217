"""The Celery application of the service."""

import os
from typing import Any

from celery import Celery
from celery.signals import celeryd_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "project.settings")

WORKER_CONNECT_TIMEOUT_SECONDS = 4.0

app = Celery("project")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()


@app.on_after_configure.connect
def create_queue_folders(sender: Celery, **kwargs: Any) -> None:
    """Create the folders of the file-system broker, which does not create them."""
    for name, path in sender.conf.broker_transport_options.items():
        if name.endswith(("folder", "folder_in", "folder_out")):
            os.makedirs(path, exist_ok=True)


@celeryd_init.connect
def raise_worker_broker_timeout(conf: Any, **kwargs: Any) -> None:
    """Let a worker wait longer for the broker than the 50 ms of a web request."""
    conf.broker_connection_timeout = WORKER_CONNECT_TIMEOUT_SECONDS
    for key in ("socket_connect_timeout", "socket_timeout", "max_retries"):
        conf.broker_transport_options.pop(key, None)
