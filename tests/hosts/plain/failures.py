"""How the product answers errors."""

from rest_framework.views import exception_handler


def handle_exception(error, context):
    """Wrap errors as all APIs of the product do."""
    return exception_handler(error, context)
