"""Open the source of an import and detect its format."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mastra_memory.exceptions import InvalidInput
from mastra_memory.importers.files import (
    READABLE_SUFFIXES,
    TABLE_SUFFIXES,
    SourceFile,
    format_names,
    list_files,
)
from mastra_memory.importers.formats import FORMATS, FileFormat, mastra
from mastra_memory.importers.formats.mapped import MappedFormat
from mastra_memory.importers.formats.mastra.databases import (
    MastraDatabase,
    open_libsql,
    open_postgres,
)
from mastra_memory.importers.mapping import load_mapping
from mastra_memory.importers.parsing import parse_record
from mastra_memory.importers.records import ResourceMapping, SourceItem

FORMAT_NAMES = (mastra.NAME, *(file_format.NAME for file_format in FORMATS))
AUTO = "auto"
"""The name that stands for detecting the format."""

_SAMPLE_RECORDS = 20
"""Records of each file that are used to detect the format. The first ones may be broken."""
_MAX_KEY_CHARACTERS = 40


@dataclass(frozen=True, slots=True)
class ImportSource:
    """An open source, ready to be read."""

    format: str
    """The name of the format."""
    keeps_ids: bool
    """Whether ids, including those of resources, are used unchanged."""
    size: int
    unit: str
    """The unit of `size`: `B` for bytes of files, `rows` for messages in a database."""
    position: Callable[[], int] | None
    """Returns how much of `size` has been read. None for a database; the caller then
    counts messages."""
    read: Callable[[ResourceMapping], Iterator[SourceItem]]
    """Yields the content of the source."""


@contextmanager
def open_source(
    target: str, *, format: str = AUTO, schema: str = "public", mapping: str | None = None
) -> Iterator[ImportSource]:
    """Open a PostgreSQL database, a LibSQL file, a JSON file, a folder or an archive.

    Args:
        target: A `postgresql://` URL or a path.
        format: A name of `FORMAT_NAMES`, or `auto` to detect the format.
        schema: The PostgreSQL schema with Mastra's tables.
        mapping: The path of a mapping file that describes the files; `format` must then be
            `auto`.

    Raises:
        InvalidInput: The source cannot be opened, or its format is unknown.
    """
    if not target:
        raise InvalidInput("The source must not be empty: name a path or a postgresql:// URL")
    if mapping is not None:
        yield _mapped_source(target, format, mapping)
    elif target.startswith(("postgresql://", "postgres://")):
        _check_database_format(format, "A PostgreSQL database")
        with open_postgres(target, schema) as postgres:
            yield _database_source(postgres)
    elif _is_sqlite(path := Path(target)):
        _check_database_format(format, "A LibSQL file")
        with open_libsql(path) as libsql:
            yield _database_source(libsql)
    else:
        yield _file_source(list_files(path), format)


def _check_database_format(format: str, source_type: str) -> None:
    if format not in (AUTO, mastra.NAME):
        raise InvalidInput(f"{source_type} has the format {mastra.NAME}, not {format}")


def _is_sqlite(path: Path) -> bool:
    if not path.is_file():
        return False
    with open(path, "rb") as file:
        return file.read(16) == b"SQLite format 3\x00"


def _database_source(database: MastraDatabase) -> ImportSource:
    mastra.check_tables(database)
    return ImportSource(
        format=mastra.NAME,
        keeps_ids=mastra.KEEPS_IDS,
        size=mastra.count_messages(database),
        unit="rows",
        position=None,
        read=lambda resources: mastra.read(database, resources),
    )


def _mapped_source(target: str, format: str, mapping_path: str) -> ImportSource:
    if format != AUTO:
        raise InvalidInput(f"--mapping describes the format itself; remove --format {format}")
    mapped_format = MappedFormat(load_mapping(Path(mapping_path)))
    if target.startswith(("postgresql://", "postgres://")):
        raise InvalidInput("--mapping is for files, not for a database")
    files = list_files(Path(target), (*TABLE_SUFFIXES, *READABLE_SUFFIXES))
    return _build_source(files, mapped_format)


def _file_source(files: Sequence[SourceFile], format: str) -> ImportSource:
    if format == mastra.NAME:
        raise InvalidInput(
            f"The format {mastra.NAME} needs a LibSQL file or a postgresql:// URL; "
            f"{files[0].path} is neither"
        )
    return _build_source(files, _detect_format(files) if format == AUTO else _get_format(format))


def _build_source(files: Sequence[SourceFile], file_format: FileFormat) -> ImportSource:
    read_position = files[0].read_position
    return ImportSource(
        format=file_format.NAME,
        keeps_ids=file_format.KEEPS_IDS,
        size=sum(file.size for file in files),
        unit="B",
        position=lambda: read_position.offset,
        read=lambda resources: file_format.read(files, resources),
    )


def _get_format(name: str) -> FileFormat:
    return next(file_format for file_format in FORMATS if file_format.NAME == name)


def _detect_format(files: Sequence[SourceFile]) -> FileFormat:
    """Return the format of the first record that any format detects.

    Files of conversations are examined first: other files of an export may resemble another format.
    """
    examined: list[str] = []
    for file in sorted(files, key=lambda file: not file.basename.startswith("conversation")):
        sample = _Sample()
        for record in sample.iter_records(file):
            for file_format in FORMATS:
                if file_format.detect(record):
                    return file_format
        examined.append(f"{file.name} ({sample.describe()})")
    path, names = files[0].path, format_names(examined)
    if len(files) == 1:
        subject = f"The format of {path} is unknown ({sample.describe()})."
    else:
        subject = f"The format of {path} and {len(files) - 1} more is unknown. Examined: {names}."
    raise InvalidInput(
        f"{subject} Known formats: {', '.join(FORMAT_NAMES)}; select one with --format, or "
        "describe the file with --mapping"
    )


class _Sample:
    """The first records of a file."""

    def __init__(self) -> None:
        self._errors: list[str] = []
        self._keys: dict[str, None] = {}

    def iter_records(self, file: SourceFile) -> Iterator[Mapping[str, Any]]:
        """Yield the first records that can be parsed."""
        number = -1
        for number, raw in enumerate(file.read_records(metered=False)):
            if number == _SAMPLE_RECORDS:
                return
            try:
                record = parse_record(raw)
            except InvalidInput as error:
                self._errors.append(str(error))
                continue
            self._keys.update(dict.fromkeys(record))
            yield record
        if number < 0:
            self._errors.append("it is empty")

    def describe(self) -> str:
        """Describe the sample for an error message."""
        if self._errors:
            return self._errors[0]
        keys = [key[:_MAX_KEY_CHARACTERS] for key in self._keys]
        return f"objects with the keys {format_names(keys)}" if keys else "objects without keys"
