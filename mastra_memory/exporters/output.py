"""Where an export goes: a file that appears only when it is whole, or standard output."""

import gzip
import os
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from mastra_memory.exceptions import InvalidInput

STDOUT = "-"

WriteBytes = Callable[[bytes], object]


@dataclass(slots=True)
class ExportCounts:
    """How much was written."""

    threads: int = 0
    messages: int = 0


@contextmanager
def open_output(target: str, *, force: bool = False) -> Iterator[WriteBytes]:
    """What writes bytes to the path, packed if it ends in `.gz`, or to standard output for `-`.

    The file gets its name at the end; if anything goes wrong, there is none, and an old one stays.
    Raises `InvalidInput` for a file that exists, unless `force`, and for a folder that does not.
    """
    if target == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    if path.is_dir() or (path.exists() and not force):
        hint = "is a folder" if path.is_dir() else "exists already; use --force to overwrite it"
        raise InvalidInput(f"{path} {hint}")
    with _open_temporary(path) as file:
        if path.name.endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed.write
        else:
            yield file.write


@contextmanager
def _open_temporary(path: Path) -> Iterator[IO[bytes]]:
    """A file beside the path that becomes it at the end."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(handle, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
