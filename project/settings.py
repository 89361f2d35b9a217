"""Settings of the service, read from the environment; docs/settings.md lists the variables."""

import os
from pathlib import Path
from typing import Any

from project import embedded_postgres, env

BASE_DIR = Path(__file__).resolve().parent.parent
VAR_DIR = Path(os.environ.get("MASTRA_VAR_DIR") or BASE_DIR / "var").resolve()

# Development is the default. DJANGO_ENV=production and DEBUG=0 both mean production.
PRODUCTION = env.is_production()
DEBUG = env.read_bool("DEBUG", not PRODUCTION)
SECRET_KEY = env.read_secret_key(VAR_DIR, production=PRODUCTION)
ALLOWED_HOSTS = env.read_list(
    "ALLOWED_HOSTS", () if PRODUCTION else ("localhost", "127.0.0.1", "[::1]")
)
CSRF_TRUSTED_ORIGINS = env.read_list("CSRF_TRUSTED_ORIGINS")

INSTALLED_APPS = [
    "project",
    "mastra_memory",
    "django.contrib.admin",
    "django.contrib.auth",
    "django.contrib.contenttypes",
    "django.contrib.sessions",
    "django.contrib.messages",
    "django.contrib.staticfiles",
    "rest_framework",
    "django_filters",
    "drf_spectacular",
    "drf_spectacular_sidecar",
]

MIDDLEWARE = [
    "project.health.health_routes",
    "django.middleware.security.SecurityMiddleware",
    "project.middleware.PageWhiteNoiseMiddleware",
    "project.middleware.PageSessionMiddleware",
    "project.middleware.PageLocaleMiddleware",
    "django.middleware.common.CommonMiddleware",
    "django.middleware.csrf.CsrfViewMiddleware",
    "project.middleware.PageAuthenticationMiddleware",
    "project.middleware.PageMessageMiddleware",
    "django.middleware.clickjacking.XFrameOptionsMiddleware",
]

ROOT_URLCONF = "project.urls"
WSGI_APPLICATION = "project.wsgi.application"

TEMPLATES: list[dict[str, Any]] = [
    {
        "BACKEND": "django.template.backends.django.DjangoTemplates",
        "DIRS": [BASE_DIR / "templates"],
        "APP_DIRS": True,
        "OPTIONS": {
            "context_processors": [
                "django.template.context_processors.request",
                "django.contrib.auth.context_processors.auth",
                "django.contrib.messages.context_processors.messages",
            ],
        },
    },
]

# Database: the one in DATABASE_URL, or else an embedded PostgreSQL. The first connection starts it,
# and it stops with the last process that uses it.
DATABASES: dict[str, Any] = {
    "default": env.read_database_url("project.postgres")
    or embedded_postgres.database_settings(VAR_DIR)
}
DATABASES["default"] |= {
    "CONN_MAX_AGE": env.read_int("CONN_MAX_AGE", 600),
    "CONN_HEALTH_CHECKS": True,
}
# Repeated statements are planned once for each connection. Set PREPARED_STATEMENTS=0 behind a
# pooler that shares connections between transactions.
if env.read_bool("PREPARED_STATEMENTS", True):
    _options = DATABASES["default"].setdefault("OPTIONS", {})
    _options["prepare_threshold"] = 3
    _options["options"] = f"{_options.get('options', '')} -c plan_cache_mode=force_generic_plan"
    # `project.wsgi` sets STATEMENT_TIMEOUT to the API's limit. A connection of a web process then
    # starts with this limit, and API requests need no statement to set it.
    if "STATEMENT_TIMEOUT" in os.environ:
        _milliseconds = round(env.read_seconds("STATEMENT_TIMEOUT", 0) * 1000)
        _options["options"] += f" -c statement_timeout={_milliseconds}"
else:
    # Django's setting for a transaction pooler, behind which session settings cannot be used.
    DATABASES["default"]["DISABLE_SERVER_SIDE_CURSORS"] = True
DEFAULT_AUTO_FIELD = os.environ.get("DEFAULT_AUTO_FIELD", "django.db.models.BigAutoField")

AUTH_PASSWORD_VALIDATORS = [
    {"NAME": f"django.contrib.auth.password_validation.{name}"}
    for name in (
        "UserAttributeSimilarityValidator",
        "MinimumLengthValidator",
        "CommonPasswordValidator",
        "NumericPasswordValidator",
    )
]

LANGUAGE_CODE = "en-us"
TIME_ZONE = "UTC"
USE_I18N = True
USE_TZ = True

STATIC_URL = "static/"
STATIC_ROOT = VAR_DIR / "static"
STATICFILES_DIRS = [BASE_DIR / "static"]
# Production serves the files that collectstatic has collected, development their sources.
WHITENOISE_USE_FINDERS = WHITENOISE_AUTOREFRESH = not PRODUCTION
STORAGES = {
    "default": {"BACKEND": "django.core.files.storage.FileSystemStorage"},
    "staticfiles": {
        "BACKEND": "whitenoise.storage.CompressedManifestStaticFilesStorage"
        if PRODUCTION
        else "django.contrib.staticfiles.storage.StaticFilesStorage"
    },
}

# A conversation is observed once its unobserved messages have this many tokens; 0 turns
# observational memory off. `make run` sets it low, so that the sample conversations have
# observations soon.
OBSERVE_FROM = env.read_int("MASTRA_MEMORY_OBSERVE_FROM", 0)

MASTRA_MEMORY: dict[str, Any] = {
    "OPTIONS": {
        "workingMemory": {"enabled": True},
        "semanticRecall": {"mode": "hybrid"},
        "generateTitle": True,
        "observationalMemory": OBSERVE_FROM > 0
        and {
            "observation": {"messageTokens": OBSERVE_FROM},
            "reflection": {"observationTokens": OBSERVE_FROM},
        },
    },
    "MODEL": os.environ.get("MASTRA_MEMORY_MODEL") or "local/extractive",
    "EMBEDDER": os.environ.get("MASTRA_MEMORY_EMBEDDER") or "local/wordllama",
    "MAX_BODY_BYTES": env.read_int("MASTRA_MEMORY_MAX_BODY_BYTES", 20 * 1024 * 1024),
    "MAX_BODY_VALUES": env.read_int("MASTRA_MEMORY_MAX_BODY_VALUES", 1_000_000),
    "MAX_PER_PAGE": env.read_int("MASTRA_MEMORY_MAX_PER_PAGE", 1000),
    "STATEMENT_TIMEOUT_API": env.read_seconds("MASTRA_MEMORY_STATEMENT_TIMEOUT_API", 5.0),
    "STATEMENT_TIMEOUT_ADMIN": env.read_seconds("MASTRA_MEMORY_STATEMENT_TIMEOUT_ADMIN", 15.0),
    "STATEMENT_TIMEOUT_TASKS": env.read_seconds("MASTRA_MEMORY_STATEMENT_TIMEOUT_TASKS", 60.0),
    "BROKER_TIMEOUT": env.read_seconds("CELERY_BROKER_TIMEOUT", 0.04),
    "RETENTION_DAYS": env.read_int("MASTRA_MEMORY_RETENTION_DAYS", 0) or None,
    "SEARCH_LANGUAGE": os.environ.get("MASTRA_MEMORY_SEARCH_LANGUAGE") or "english",
    "SEARCH_TIME_LANGUAGES": env.read_list(
        "MASTRA_MEMORY_SEARCH_TIME_LANGUAGES", ("en", "de", "fr", "es")
    ),
}

# The memory API has its own limit and answers 413 in JSON; Django's limit must not apply first.
DATA_UPLOAD_MAX_MEMORY_SIZE = None

REST_FRAMEWORK = {
    "DEFAULT_AUTHENTICATION_CLASSES": [
        "project.authentication.BearerAuthentication",
        "rest_framework.authentication.SessionAuthentication",
    ],
    "DEFAULT_PERMISSION_CLASSES": ["rest_framework.permissions.IsAuthenticated"],
    "DEFAULT_THROTTLE_CLASSES": ["project.throttling.ScopedUserThrottle"],
    "DEFAULT_THROTTLE_RATES": {"scoped": env.read_rate("API_THROTTLE_RATE", "3000/min")},
    "DEFAULT_SCHEMA_CLASS": "drf_spectacular.openapi.AutoSchema",
}
SPECTACULAR_SETTINGS = {
    "TITLE": "Agent memory",
    "DESCRIPTION": "Threads, messages and working memory for agents, as Mastra's clients expect.",
    "VERSION": "0.1.0",
    "SERVE_INCLUDE_SCHEMA": False,
    "SERVE_AUTHENTICATION": [],  # public: the schema must not depend on the database
    "SWAGGER_UI_DIST": "SIDECAR",
    "SWAGGER_UI_FAVICON_HREF": "SIDECAR",
    "REDOC_DIST": "SIDECAR",
}
LOGIN_URL = "rest_framework:login"
LOGIN_REDIRECT_URL = "/"

# Celery: pending work is recorded in the database. A lost task therefore loses nothing, and
# publishing may give up at once. Without a broker, messages are files under var/, which is enough
# for one machine.
CELERY_BROKER_URL = os.environ.get("CELERY_BROKER_URL") or "filesystem://localhost"
CELERY_TASK_IGNORE_RESULT = True
CELERY_TASK_PUBLISH_RETRY = False
CELERY_BROKER_CONNECTION_RETRY_ON_STARTUP = True
CELERY_BROKER_CONNECTION_TIMEOUT = env.read_seconds("CELERY_BROKER_TIMEOUT", 0.04)
CELERY_TIMEZONE = "UTC"
CELERY_WORKER_HIJACK_ROOT_LOGGER = False
CELERY_BEAT_SCHEDULE: dict[str, Any] = {
    "catch up": {"task": "mastra_memory.tasks.catch_up", "schedule": 60.0},
    "prune": {"task": "mastra_memory.tasks.prune", "schedule": 24 * 3600.0},
    # A killed worker's claims expire after 8 seconds; with this interval, another worker takes them
    # over within 15. A task that waits longer than the interval is replaced by the next.
    "resume": {
        "task": "mastra_memory.tasks.resume",
        "schedule": 5.0,
        "options": {"expires": 5.0},
    },
}
CELERY_BEAT_SCHEDULE_FILENAME = str(VAR_DIR / "celerybeat-schedule")
if CELERY_BROKER_URL.startswith("filesystem:"):
    _queue = VAR_DIR / "queue"
    CELERY_BROKER_TRANSPORT = "project.file_queue:Transport"
    CELERY_BROKER_TRANSPORT_OPTIONS: dict[str, Any] = {
        "data_folder_in": str(_queue / "messages"),
        "data_folder_out": str(_queue / "messages"),
        "control_folder": str(_queue / "control"),
        "polling_interval": 0.1,
    }
else:
    CELERY_BROKER_TRANSPORT_OPTIONS = {
        "socket_connect_timeout": CELERY_BROKER_CONNECTION_TIMEOUT,
        "socket_timeout": CELERY_BROKER_CONNECTION_TIMEOUT,
        "max_retries": 0,
    }

if PRODUCTION:
    SECURE_SSL_REDIRECT = env.read_bool("SECURE_SSL_REDIRECT", True)
    SECURE_HSTS_SECONDS = env.read_int("SECURE_HSTS_SECONDS", 3600)
    SECURE_HSTS_INCLUDE_SUBDOMAINS = env.read_bool("SECURE_HSTS_INCLUDE_SUBDOMAINS", True)
    SECURE_HSTS_PRELOAD = env.read_bool("SECURE_HSTS_PRELOAD", True)
    SESSION_COOKIE_SECURE = CSRF_COOKIE_SECURE = True
    if env.read_bool("TRUST_X_FORWARDED_PROTO", False):
        SECURE_PROXY_SSL_HEADER = ("HTTP_X_FORWARDED_PROTO", "https")

LOGGING = {
    "version": 1,
    "disable_existing_loggers": False,
    "filters": {"request_content": {"()": "project.logs.RequestContentFilter"}},
    "formatters": {
        "plain": {
            "()": "project.logs.ContentFreeFormatter",
            "format": "%(asctime)s %(levelname)s %(name)s: %(message)s",
        }
    },
    "handlers": {
        "stderr": {
            "class": "logging.StreamHandler",
            "formatter": "plain",
            "filters": ["request_content"],
        }
    },
    "root": {"handlers": ["stderr"], "level": os.environ.get("LOG_LEVEL", "WARNING").upper()},
    "loggers": {"django": {"handlers": [], "level": "INFO", "propagate": True}},
}
