"""Output files that appear only when they are complete."""

import gzip
from pathlib import Path

import pytest

from mastra_memory.exceptions import InvalidInput
from mastra_memory.exporters import output


def test_open_output__the_file_appears_at_the_end(tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    with output.open_output(str(path)) as write:
        write(b"whole")
        assert not path.exists()
    assert path.read_bytes() == b"whole"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x.jsonl"]


def test_open_output__only_the_owner_can_read_the_file(tmp_path: Path) -> None:
    with output.open_output(str(tmp_path / "x")) as write:
        write(b"secret")
    assert (tmp_path / "x").stat().st_mode & 0o077 == 0


def test_open_output__packs_files_that_end_in_gz(tmp_path: Path) -> None:
    for name in ("a.gz", "b.gz"):
        with output.open_output(str(tmp_path / name)) as write:
            write(b"words " * 1000)
    packed = (tmp_path / "a.gz").read_bytes()
    assert gzip.decompress(packed) == b"words " * 1000
    assert packed == (tmp_path / "b.gz").read_bytes()


def test_open_output__an_existing_file_needs_force(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(InvalidInput, match="--force"), output.open_output(str(path)):
        pass
    assert path.read_bytes() == b"old"
    with output.open_output(str(path), force=True) as write:
        write(b"new")
    assert path.read_bytes() == b"new"


def test_open_output__an_error_keeps_the_old_file(tmp_path: Path) -> None:
    path = tmp_path / "x"
    path.write_bytes(b"old")
    with pytest.raises(RuntimeError), output.open_output(str(path), force=True) as write:
        write(b"half")
        raise RuntimeError("torn")
    assert path.read_bytes() == b"old"
    assert [entry.name for entry in tmp_path.iterdir()] == ["x"]


@pytest.mark.parametrize("name", ["", "missing/x", "x/y"])
def test_open_output__refuses_a_missing_folder(tmp_path: Path, name: str) -> None:
    (tmp_path / "x").write_bytes(b"a file")
    with pytest.raises(InvalidInput), output.open_output(str(tmp_path / name), force=True):
        pass


def test_open_output__writes_to_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with output.open_output("-") as write:
        write(b"out \xff")
    assert capfdbinary.readouterr().out == b"out \xff"
