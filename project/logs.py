"""What the service leaves out of its log."""

import logging


class PlainRefusals(logging.Filter):
    """A request that was refused (4xx) is one line: no traceback, it is the caller's fault."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Drop the traceback of refused requests; every record passes."""
        if 400 <= getattr(record, "status_code", 0) < 500:
            record.exc_info = None
            record.exc_text = None
        return True
