"""The one archive of the instruments: it holds the sources as they are now, and nothing else."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from traindx_tools.catalog import archive

SKILLS = Path(__file__).resolve().parents[2] / "skills"


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package with what must be in the archive and what must not."""
    folder = tmp_path / "tool"
    (folder / "data").mkdir(parents=True)
    (folder / "__pycache__").mkdir()
    (folder / "__init__.py").write_text("ANSWER = 42\n", encoding="utf-8")
    (folder / "data" / "one.toml").write_text("x = 1\n", encoding="utf-8")
    for name in ("__pycache__/x.py", "notes.txt", "__init__.pyc", ".one.toml.swp"):
        (folder / name).write_bytes(b"\0")
    return folder


def test_the_archive_that_ships_holds_the_sources_as_they_are() -> None:
    stored, now = archive.contents(SKILLS / archive.ARCHIVE), archive.sources()
    assert archive.digest_of(stored) == archive.digest_of(now), "run `make skills`"
    assert list(SKILLS.rglob("*.zip")) == [SKILLS / archive.ARCHIVE], "one skill brings it, the others find it there"
    assert (SKILLS / archive.ARCHIVE).stat().st_size < 4.0e6


@pytest.mark.slow
def test_an_audit_from_the_archive_is_remembered_under_the_archive(tmp_path: Path) -> None:
    """A changed archive must forget what the old one said, though no source file of it can be listed."""
    tell = ("import sys; sys.path.insert(0, sys.argv[1]); from traindx_tools.code_audit.cache import engine; "
            "print(engine())")
    said = set()
    for name, more in (("a.zip", {}), ("b.zip", {}), ("c.zip", {"traindx_tools/more.py": b"x = 1\n"})):
        (tmp_path / name).write_bytes(archive.built({**archive.sources(), **more}))
        done = subprocess.run([sys.executable, "-I", "-c", tell, str(tmp_path / name)], capture_output=True, text=True,
                              timeout=100, check=True)
        said.add(done.stdout)
    assert len(said) == 2, "equal archives, equal engines; another archive, another engine"


@pytest.mark.slow
def test_what_is_left_out_is_missed_by_no_rule_page_or_diagnosis(tmp_path: Path) -> None:
    """The insides of live instruments stay at home; every rule can still be explained, and a run be diagnosed."""
    ask = ("import sys; sys.path.insert(0, sys.argv[1]); from traindx_tools.rules import explained_rules; "
           "from traindx_tools.examine import examine; import traindx_tools; "
           "print(traindx_tools.__file__, len(explained_rules()), examine([sys.argv[2]]).verdict.status)")
    (tmp_path / "tools.zip").write_bytes(archive.built(archive.sources()))
    example = SKILLS.parent / "examples" / "numpy-lr"
    command = [sys.executable, "-I", "-c", ask, str(tmp_path / "tools.zip"), str(example)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    place, count, status = done.stdout.split()
    assert "tools.zip" in place
    assert int(count) > 500
    assert status == "diagnosis_complete"
    assert not any(name.startswith(archive.LEFT_OUT) for name in archive.sources())


def test_the_digest_is_written_in_the_archive() -> None:
    with zipfile.ZipFile(SKILLS / archive.ARCHIVE) as stored:
        assert stored.comment.decode() == archive.digest_of(archive.sources())


def test_two_builds_are_the_same_bytes_and_hold_code_and_data_alone(package: Path) -> None:
    files = archive.sources(package)
    assert list(files) == ["tool/__init__.py", "tool/data/one.toml"]
    assert archive.built(files) == archive.built(dict(reversed(files.items())))
    (package / "__init__.py").touch()
    assert archive.built(archive.sources(package)) == archive.built(files)


def test_another_content_or_name_is_another_digest(package: Path) -> None:
    files = archive.sources(package)
    changed = {**files, "tool/__init__.py": b"ANSWER = 43\n"}
    renamed = {name.replace("one", "two"): content for name, content in files.items()}
    assert len({archive.digest_of(f) for f in (files, changed, renamed)}) == 3


@pytest.mark.slow
@pytest.mark.parametrize("there", [None, b"PK\x03\x04 cut"])
def test_one_that_is_missing_or_broken_is_written_anew(there: bytes | None, tmp_path: Path) -> None:
    path = tmp_path / archive.ARCHIVE
    path.parent.mkdir(parents=True)
    if there is not None:
        path.write_bytes(there)
    assert archive.contents(path) == {}
    assert list(archive.write_archive(tmp_path)) == [path]
    assert archive.contents(path) == archive.sources()
    assert list(archive.write_archive(tmp_path)) == []
    assert [p.name for p in path.parent.iterdir()] == [path.name], "nothing is left beside it"


@pytest.mark.parametrize("there", [b"", b"no archive"])
def test_what_is_no_archive_holds_nothing(there: bytes, tmp_path: Path) -> None:
    (tmp_path / "some.zip").write_bytes(there)
    assert archive.contents(tmp_path / "some.zip") == {}


def test_another_compression_of_the_same_files_is_left_alone(tmp_path: Path) -> None:
    """Another zlib makes other bytes: what counts is what is in it."""
    path = tmp_path / archive.ARCHIVE
    path.parent.mkdir(parents=True)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as other:
        for name, content in archive.sources().items():
            other.writestr(name, content)
    assert list(archive.write_archive(tmp_path)) == []
