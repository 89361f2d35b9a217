"""A product with users of its own, one admin site, no time zone support, and a German interface."""

import os

SECRET_KEY = "host"
DEBUG = False
ALLOWED_HOSTS = ["*"]
INSTALLED_APPS = [
    "people",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "django.contrib.admin.apps.SimpleAdminConfig",
    "rest_framework",
    "django_filters",
    "mastra_memory",
    "smoke",
]
MIDDLEWARE = [
    "django.middleware.security.SecurityMiddleware",
    "django.contrib.sessions.middleware.SessionMiddleware",
    "django.middleware.locale.LocaleMiddleware",
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
DATABASES = {
    "default": {
        "ENGINE": "django.db.backends.postgresql",
        "NAME": os.environ["HOST_DATABASE"],
        "ATOMIC_REQUESTS": True,
    }
}
AUTH_USER_MODEL = "people.Person"
DEFAULT_AUTO_FIELD = "django.db.models.AutoField"
LANGUAGE_CODE = "de"
USE_THOUSAND_SEPARATOR = True
USE_TZ = False
TIME_ZONE = os.environ.get("HOST_TIME_ZONE", "Europe/Berlin")
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
