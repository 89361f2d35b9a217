"""Open the target of an export: standard output, or a file that appears when it is complete."""

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
    """How many rows an export wrote."""

    threads: int = 0
    messages: int = 0


@contextmanager
def open_output(target: str, *, force: bool = False) -> Iterator[WriteBytes]:
    """Yield a function that writes bytes to the target.

    A file appears under its name only at the end. After an error no file is created, and an
    existing file is unchanged.

    Args:
        target: A path, or `-` for standard output. Files whose name ends in `.gz` are compressed.
        force: Replace an existing file.

    Raises:
        InvalidInput: The file exists, is a folder, or cannot be written.
    """
    if target == STDOUT:
        yield sys.stdout.buffer.write
        sys.stdout.buffer.flush()
        return
    path = Path(target)
    if path.is_dir():
        raise InvalidInput(f"{path} is a folder; name a file")
    if path.exists() and not force:
        raise InvalidInput(f"{path} already exists; use --force to overwrite it")
    with _open_temporary(path) as file:
        if path.name.endswith(".gz"):
            with gzip.GzipFile("", "wb", fileobj=file, mtime=0) as packed:
                yield packed.write
        else:
            yield file.write


@contextmanager
def _open_temporary(path: Path) -> Iterator[IO[bytes]]:
    """Yield a temporary file in the folder of `path` that is renamed to `path` at the end."""
    try:
        handle, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    except OSError as error:
        raise InvalidInput(f"{path} cannot be written: {error.strerror}") from None
    try:
        with open(handle, "wb") as file:
            yield file
            # Without this, a crash of the system could leave an empty file under the final name.
            file.flush()
            os.fsync(file.fileno())
        os.replace(name, path)
    except BaseException:
        with suppress(OSError):
            os.unlink(name)
        raise
