"""The files of a source: a path, a folder or an archive, compressed or not."""

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
    """How much of a source's files has been read."""

    def __init__(self) -> None:
        self.offset = 0
        """Bytes, counted as `SourceFile.size` counts them."""
        self._start = 0

    def advance(self, offset: int) -> None:
        """So far in the file at hand."""
        self.offset = self._start + offset

    def finish_file(self, size: int) -> None:
        """The file at hand is done."""
        self.offset = self._start = self._start + size


@dataclass(frozen=True, slots=True)
class SourceFile:
    """One file of a source."""

    name: str
    """Its path within the source."""
    size: int
    """Bytes as they lie on the disk, or unpacked in an archive of several."""
    modified: datetime
    path: Path
    member: str = ""
    """Its name in the archive that `path` is."""
    read_position: ReadPosition = field(default_factory=ReadPosition, compare=False)

    @property
    def basename(self) -> str:
        """The name without folders and without `.gz`."""
        return self.name.rpartition("/")[2].removesuffix(".gz")

    def _raw(self, stack: ExitStack) -> IO[bytes]:
        if not self.member:
            return stack.enter_context(open(self.path, "rb"))
        archive = stack.enter_context(zipfile.ZipFile(self.path))
        return stack.enter_context(archive.open(self.member))

    def read_records(self, *, metered: bool = True) -> Iterator[RawRecord]:
        """Its JSON records. A file that cannot be opened is one record with a fault."""
        with ExitStack() as stack:
            try:
                raw = self._raw(stack)
            except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                yield RawRecord(0, b"", f"the file cannot be opened: {error}")
                return
            packed = self.name.endswith(".gz")
            for record in json_stream.split_records(gzip.GzipFile(fileobj=raw) if packed else raw):
                yield record
                if metered:
                    self.read_position.advance(raw.tell())
        if metered:
            self.read_position.finish_file(self.size)


def list_files(path: Path) -> Sequence[SourceFile]:
    """The readable files at the path, in the order of their names.

    Raises `InvalidInput` when there is nothing there or nothing to read.
    """
    if not path.exists():
        raise InvalidInput(f"There is no file or folder {path}")
    read_position = ReadPosition()
    try:
        found = list(_iter_files(path, read_position))
    except (OSError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not found:
        raise InvalidInput(f"{path} holds no file ending in {', '.join(READABLE_SUFFIXES)}")
    return sorted(found, key=lambda file: file.name)


def _iter_files(path: Path, read_position: ReadPosition) -> Iterator[SourceFile]:
    if path.is_dir():
        for child in path.rglob("*"):
            if child.is_file() and child.name.lower().endswith(READABLE_SUFFIXES):
                yield _build_file(child, child.relative_to(path).as_posix(), read_position)
    elif zipfile.is_zipfile(path):
        for entry in zipfile.ZipFile(path).infolist():
            name = entry.filename
            if name.lower().endswith(READABLE_SUFFIXES) and not name.startswith("__MACOSX/"):
                yield SourceFile(
                    name, entry.file_size, _parse_zip_time(entry), path, name, read_position
                )
    else:
        yield _build_file(path, path.name, read_position)


def _build_file(path: Path, name: str, read_position: ReadPosition) -> SourceFile:
    facts = path.stat()
    modified = times.truncate_to_milliseconds(datetime.fromtimestamp(facts.st_mtime, UTC))
    return SourceFile(json_text.clean_text(name), facts.st_size, modified, path, "", read_position)


def _parse_zip_time(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)
