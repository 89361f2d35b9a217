"""Open what is to be imported, and find out what it is."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.files import SourceFile, list_files
from mastra_memory.importers.formats import (
    chatgpt,
    claude,
    jsonl,
    locomo,
    mastra,
    openai_chat,
    sharegpt,
)
from mastra_memory.importers.formats.mastra import databases
from mastra_memory.importers.parsing import parse_record
from mastra_memory.importers.records import ResourceMapping, SourceItem


class FileFormat(Protocol):
    """A module that reads files of one format."""

    NAME: str
    KEEPS_IDS: bool

    def detect(self, record: Mapping[str, Any]) -> bool:
        """Whether a record looks like this format's."""

    def read(self, files: Sequence[SourceFile], resources: ResourceMapping) -> Iterator[SourceItem]:
        """What the files hold."""


FORMATS: Sequence[FileFormat] = (jsonl, chatgpt, claude, locomo, sharegpt, openai_chat)
FORMAT_NAMES = (mastra.NAME, *(known.NAME for known in FORMATS))
AUTO = "auto"

_SAMPLE_RECORDS = 20
"""So many records of a file are looked at; the first ones may be broken."""


@dataclass(frozen=True, slots=True)
class ImportSource:
    """Something that can be imported."""

    format: str
    keeps_ids: bool
    """Whether ids, those of resources too, stay what they are in the source."""
    size: int
    unit: str
    """`B`, or `rows` of a database, whose messages alone are counted."""
    position: Callable[[], int] | None
    """How much of `size` has been read; None: count the messages."""
    read: Callable[[ResourceMapping], Iterator[SourceItem]]


@contextmanager
def open_source(
    target: str, *, format: str = AUTO, schema: str = "public"
) -> Iterator[ImportSource]:
    """The source at an address of PostgreSQL, in a LibSQL file, a file, a folder or an archive.

    Raises `InvalidInput` when it cannot be opened or is of no known format.
    """
    if not target:
        raise InvalidInput("The source has no name")
    if target.startswith(("postgresql://", "postgres://")):
        _check_format(format, "an address of PostgreSQL")
        with databases.open_postgres(target, schema) as postgres:
            yield _database_source(postgres)
    elif _is_sqlite(path := Path(target)):
        _check_format(format, "a LibSQL file")
        with databases.open_libsql(path) as sqlite:
            yield _database_source(sqlite)
    else:
        yield _file_source(list_files(path), format)


def _check_format(format: str, what: str) -> None:
    if format not in (AUTO, mastra.NAME):
        raise InvalidInput(f"{what} can only hold the format {mastra.NAME}, not {format}")


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def _database_source(store: databases.MastraDatabase) -> ImportSource:
    mastra.check_tables(store)
    return ImportSource(
        mastra.NAME, mastra.KEEPS_IDS, mastra.count_messages(store), "rows", None,
        lambda resources: mastra.read(store, resources),
    )  # fmt: skip


def _file_source(files: Sequence[SourceFile], format: str) -> ImportSource:
    if format == mastra.NAME:
        raise InvalidInput("this is neither a LibSQL file nor an address of PostgreSQL")
    known = _detect_format(files) if format == AUTO else _rename_fields(format)
    read_position = files[0].read_position
    return ImportSource(
        known.NAME, known.KEEPS_IDS, sum(file.size for file in files), "B",
        lambda: read_position.offset, lambda resources: known.read(files, resources),
    )  # fmt: skip


def _rename_fields(format: str) -> FileFormat:
    return next(known for known in FORMATS if format == known.NAME)


def _detect_format(files: Sequence[SourceFile]) -> FileFormat:
    """The format of the first record that looks like one's."""
    faults: list[str] = []
    for file in files:
        for record in _iter_sample(file, faults):
            for known in FORMATS:
                if known.detect(record):
                    return known
    more = f" and {len(files) - 1} more" if len(files) > 1 else ""
    why = f" ({faults[0]})" if faults else ""
    raise InvalidInput(
        f"No known format in {files[0].path}{more}{why}. "
        f"Known are: {', '.join(FORMAT_NAMES)}; name one with --format"
    )


def _iter_sample(file: SourceFile, faults: list[str]) -> Iterator[Mapping[str, Any]]:
    """The first records of the file that can be parsed; what is wrong with the others is noted."""
    number = -1
    for number, raw in enumerate(file.read_records(metered=False)):
        if number == _SAMPLE_RECORDS:
            return
        try:
            yield parse_record(raw)
        except InvalidInput as error:
            faults.append(str(error))
    if number < 0:
        faults.append("it is empty")
