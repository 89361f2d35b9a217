"""A product on SQLite that gives the app a PostgreSQL database of its own, and a replica of it."""

import os
from pathlib import Path

SECRET_KEY = "host"
DEBUG = False
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "members",
    "rest_framework",
    "django_filters",
    "mastra_memory",
    "smoke",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "django.contrib.auth.middleware.AuthenticationMiddleware",
    "django.contrib.messages.middleware.MessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]
ROOT_URLCONF = "urls"
TEMPLATES = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ]
        },
    }
]
# The address of the server is in PGHOST, PGPORT and PGUSER.
MEMORY = {"ENGINE": "django.db.backends.postgresql", "NAME": os.environ["HOST_DATABASE"]}
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.sqlite3",
        "NAME": Path(os.environ["HOST_FOLDER"], "product.sqlite3"),
    },
    "memory": MEMORY,
    # A replica refuses to write. This one has no delay.
    "replica": {
        **MEMORY,
        "OPTIONS": {"options": "-c default_transaction_read_only=on"},
        "TEST": {"MIRROR": "memory"},
    },
}
DATABASE_ROUTERS = ["routers.MemoryRouter"]
AUTH_USER_MODEL = "members.Member"
DEFAULT_AUTO_FIELD = "django.db.models.BigAutoField"
USE_TZ = True
TIME_ZONE = "Pacific/Kiritimati"
STATIC_URL = "/static/"
REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": ["rest_framework.authentication.SessionAuthentication"]
}
CELERY_BROKER_URL = "memory://"
MASTRA_MEMORY = {
    "OPTIONS": {
        "lastMessages": 20,
        "workingMemory": {"enabled": True},
        "semanticRecall": {"mode": "hybrid"},
        "generateTitle": True,
    }
}
