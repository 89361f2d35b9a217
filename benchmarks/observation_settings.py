"""Settings for observing a conversation in one process: tasks run at once, without a worker."""

from project.settings import *  # noqa: F403

DEBUG = False
CELERY_TASK_ALWAYS_EAGER = True
MASTRA_MEMORY = {"AGENTS": {"observed": {"observationalMemory": True}}}
