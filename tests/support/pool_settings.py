"""Settings with a small connection pool. `POOL_SIZE` is its size."""

import os

from project import settings
from project.settings import *  # noqa: F403

_POOL_SIZE = int(os.environ["POOL_SIZE"])
_DEFAULT = settings.DATABASES["default"]
DATABASES = {
    "default": {
        **_DEFAULT,
        "CONN_MAX_AGE": 0,  # Django refuses persistent connections together with a pool.
        "OPTIONS": {
            **_DEFAULT.get("OPTIONS", {}),
            "pool": {"min_size": 1, "max_size": _POOL_SIZE, "timeout": 5},
        },
    }
}
