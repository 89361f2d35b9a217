"""Find and open the files of a source: a file, a folder or a ZIP archive, gzipped or not.

A folder may contain archives, and so may an archive.
"""

import gzip
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import IO

from mastra_memory.db import json_text, times
from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers import json_stream
from mastra_memory.importers.json_stream import ByteStream, RawRecord

READABLE_SUFFIXES = (".json", ".jsonl", ".ndjson", ".json.gz", ".jsonl.gz", ".ndjson.gz")
ARCHIVE_SUFFIX = ".zip"
TABLE_SUFFIXES = (".csv", ".tsv", ".csv.gz", ".tsv.gz")
"""Tables are only read with a mapping, which names their columns."""

RecordSplitter = Callable[[ByteStream], Iterator[RawRecord]]

MAX_SHOWN_NAMES = 10
"""File names in an error message."""


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
    members: Sequence[str] = ()
    """The name in the archive; for a file of an inner archive the names of both."""
    read_position: ReadPosition = field(default_factory=ReadPosition, compare=False)
    """Shared by all files of a source."""

    @property
    def basename(self) -> str:
        """The name without folders and without `.gz`."""
        return self.name.rpartition("/")[2].removesuffix(".gz")

    def read_records(
        self, *, metered: bool = True, split: RecordSplitter = json_stream.split_records
    ) -> Iterator[RawRecord]:
        """Yield the JSON records; a file that cannot be opened is one record with an error.

        Args:
            metered: Whether to update `read_position`.
            split: Splits the decompressed bytes into records.
        """
        with ExitStack() as stack:
            try:
                raw = self._open(stack)
            except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
                yield RawRecord(0, b"", f"the file cannot be opened: {error}")
                return
            is_gzip = self.name.endswith(".gz")
            for record in split(gzip.GzipFile(fileobj=raw) if is_gzip else raw):
                yield record
                if metered:
                    self.read_position.advance(raw.tell())
        if metered:
            self.read_position.finish_file(self.size)

    def _open(self, stack: ExitStack) -> IO[bytes]:
        file: IO[bytes] = stack.enter_context(open(self.path, "rb"))
        for member in self.members:
            archive = stack.enter_context(zipfile.ZipFile(file))
            file = stack.enter_context(archive.open(member))
        return file


def list_files(path: Path, suffixes: Sequence[str] = READABLE_SUFFIXES) -> Sequence[SourceFile]:
    """Return the readable files at the path, sorted by name.

    Raises:
        InvalidInput: The path does not exist, cannot be read, or contains no readable file.
    """
    if not path.exists():
        raise InvalidInput(f"There is no file or folder {path}")
    others: list[str] = []
    try:
        files = list(_FileFinder(tuple(suffixes), others).iter_files(path))
    except (OSError, RuntimeError, NotImplementedError, zipfile.BadZipFile) as error:
        raise InvalidInput(f"{path} cannot be read: {error}") from None
    if not files:
        contents = f"; it contains {format_names(others)}" if others else ""
        raise InvalidInput(f"{path} contains no file ending in {', '.join(suffixes)}{contents}")
    return sorted(files, key=lambda file: file.name)


def format_names(names: Sequence[str]) -> str:
    """Return the first names as text, and the number of the others."""
    shown = ", ".join(names[:MAX_SHOWN_NAMES])
    hidden = len(names) - MAX_SHOWN_NAMES
    return f"{shown} and {hidden} more" if hidden > 0 else shown


class _FileFinder:
    """Find readable files in folders and archives."""

    def __init__(self, suffixes: tuple[str, ...], others: list[str]) -> None:
        """Create a finder. Names of files that cannot be read are appended to `others`."""
        self._suffixes = suffixes
        self._others = others
        self._read_position = ReadPosition()

    def iter_files(self, path: Path) -> Iterator[SourceFile]:
        """Yield the readable files at a path. A file that is named itself is always yielded."""
        if path.is_dir():
            for child in path.rglob("*"):
                if child.is_file():
                    yield from self._iter_child(child, child.relative_to(path).as_posix())
        elif zipfile.is_zipfile(path):
            yield from self._iter_archive(path, "")
        else:
            yield _build_file(path, path.name, self._read_position)

    def _iter_child(self, path: Path, name: str) -> Iterator[SourceFile]:
        if _is_of_macos(name):
            return
        if name.lower().endswith(ARCHIVE_SUFFIX):
            yield from self._iter_archive(path, f"{name}/")
        elif name.lower().endswith(self._suffixes):
            yield _build_file(path, name, self._read_position)
        else:
            self._others.append(json_text.clean_text(name))

    def _iter_archive(self, path: Path, prefix: str) -> Iterator[SourceFile]:
        with _open_archive(path, prefix) as archive:
            for entry in archive.infolist():
                name = entry.filename
                if name.lower().endswith(ARCHIVE_SUFFIX) and not _is_of_macos(name):
                    with archive.open(entry) as file, _open_archive(file, prefix + name) as inner:
                        for inner_entry in inner.infolist():
                            yield from self._iter_entry(path, prefix, entry, inner_entry)
                else:
                    yield from self._iter_entry(path, prefix, entry)

    def _iter_entry(
        self, path: Path, prefix: str, *entries: zipfile.ZipInfo
    ) -> Iterator[SourceFile]:
        """Yield a file of an archive, given its entry and those of the archives around it."""
        members = tuple(entry.filename for entry in entries)
        entry, name = entries[-1], prefix + "/".join(members)
        if entry.is_dir() or any(map(_is_of_macos, members)):
            return
        if members[-1].lower().endswith(self._suffixes):
            modified = _parse_zip_time(entry)
            yield SourceFile(name, entry.file_size, modified, path, members, self._read_position)
        else:
            self._others.append(json_text.clean_text(name))


def _open_archive(file: Path | IO[bytes], name: str) -> zipfile.ZipFile:
    """Open an archive; an error names it, unless it is the source itself."""
    try:
        return zipfile.ZipFile(file)
    except zipfile.BadZipFile as error:
        raise zipfile.BadZipFile(f"{name}: {error}" if name else str(error)) from None


def _is_of_macos(name: str) -> bool:
    """Return whether macOS has added this file, which has the name of another one."""
    return name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("._")


def _build_file(path: Path, name: str, read_position: ReadPosition) -> SourceFile:
    status = path.stat()
    modified = times.truncate_to_milliseconds(datetime.fromtimestamp(status.st_mtime, UTC))
    name = json_text.clean_text(name)  # the name of a file need not be valid UTF-8
    return SourceFile(name, status.st_size, modified, path, (), read_position)


def _parse_zip_time(entry: zipfile.ZipInfo) -> datetime:
    try:
        return datetime(*entry.date_time, tzinfo=UTC)
    except ValueError:
        return datetime(1980, 1, 1, tzinfo=UTC)  # the first date that ZIP can express
