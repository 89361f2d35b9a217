"""Find and open the files of a source: a file, a folder or a ZIP archive, gzipped or not."""

import gzip
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import json_stream
from mastra_memory.importers.json_stream import RawRecord

READABLE_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")


class ReadPosition:
    """How much of the files of a source has been read."""

    def __init__(self) -> None:
        """Start at the beginning of the first file."""
        self.offset = 0
        """Bytes of all files, in the unit of `SourceFile.size`."""
        self._file_start = 0

    def advance(self, offset: int) -> None:
        """Set the position within the current file."""
        self.offset = self._file_start + offset

    def finish_file(self, size: int) -> None:
        """Move to the beginning of the next file; `size` is that of the current one."""
        self.offset = self._file_start = self._file_start + size


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source."""

    name: str
    """The path within the source."""
    size: int
    """Bytes on the disk, or bytes after decompression for a file in a ZIP archive."""
    modified: datetime
    path: Path
    """The file, or the archive that contains it."""
    member: str = ""
    """The name in the archive; empty for a file that is not in an archive."""
    read_position: ReadPosition = field(default_factory=ReadPosition, compare=False)
    """Shared by all files of a source."""

    @property
    def basename(self) -> str:
        """The name without folders and without `.gz`."""
        return self.name.rpartition("/")[2].removesuffix(".gz")

    def read_records(self, *, metered: bool = True) -> Iterator[RawRecord]:
        """Yield the JSON records; a file that cannot be opened is one record with an error.

        Args:
            metered: Whether to update `read_position`.
        """
        with ExitStack() as stack:
            try:
                raw = self._open(stack)
            except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                yield RawRecord(0, b"", f"the file cannot be opened: {error}")
                return
            is_gzip = self.name.endswith(".gz")
            for record in json_stream.split_records(gzip.GzipFile(fileobj=raw) if is_gzip else raw):
                yield record
                if metered:
                    self.read_position.advance(raw.tell())
        if metered:
            self.read_position.finish_file(self.size)

    def _open(self, stack: ExitStack) -> IO[bytes]:
        if not self.member:
            return stack.enter_context(open(self.path, "rb"))
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        return stack.enter_context(archive.open(self.member))


def list_files(path: Path) -> Sequence[SourceFile]:
    """Return the readable files at the path, sorted by name.

    Raises:
        InvalidInput: The path does not exist, cannot be read, or contains no readable file.
    """
    if not path.exists():
        raise InvalidInput(f"There is no file or folder {path}")
    read_position = ReadPosition()
    try:
        files = list(_iter_files(path, read_position))
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not files:
        raise InvalidInput(f"{path} contains no file ending in {', '.join(READABLE_SUFFIXES)}")
    return sorted(files, key=lambda file: file.name)


def _iter_files(path: Path, read_position: ReadPosition) -> Iterator[SourceFile]:
    if path.is_dir():
        for child in path.rglob("*"):
            if child.is_file() and child.name.lower().endswith(READABLE_SUFFIXES):
                yield _build_file(child, child.relative_to(path).as_posix(), read_position)
    elif zipfile.is_zipfile(path):
        for entry in zipfile.ZipFile(path).infolist():
            name = entry.filename
            # macOS adds a folder of metadata with files of the same names.
            if name.lower().endswith(READABLE_SUFFIXES) and not name.startswith("__MACOSX/"):
                modified = _parse_zip_time(entry)
                yield SourceFile(name, entry.file_size, modified, path, name, read_position)
    else:
        yield _build_file(path, path.name, read_position)


def _build_file(path: Path, name: str, read_position: ReadPosition) -> SourceFile:
    status = path.stat()
    modified = times.truncate_to_milliseconds(datetime.fromtimestamp(status.st_mtime, UTC))
    name = json_text.clean_text(name)  # the name of a file need not be valid UTF-8
    return SourceFile(name, status.st_size, modified, path, "", read_position)


def _parse_zip_time(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)  # the first date that ZIP can express
