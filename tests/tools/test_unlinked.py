"""Below scratch/debug nothing is written through a link, nor to a file that has a second name."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from traindx_tools.unlinked import LeadsElsewhere, append, made, opened, write


@pytest.fixture
def debug(tmp_path: Path) -> Path:
    """scratch/debug of a project with one file."""
    (tmp_path / "train.py").write_text("x = 1\n")
    (tmp_path / "src").mkdir()
    folder = tmp_path / "scratch" / "debug"
    folder.mkdir(parents=True)
    return folder


def soft(debug: Path, name: str) -> None:
    (debug / name).symlink_to("../../train.py")


def hard(debug: Path, name: str) -> None:
    os.link(debug.parents[1] / "train.py", debug / name)


def dangling(debug: Path, name: str) -> None:
    (debug / name).symlink_to("../../new.py")


def pipe(debug: Path, name: str) -> None:
    os.mkfifo(debug / name)


@pytest.mark.parametrize("plant", [soft, hard, dangling, pipe])
@pytest.mark.parametrize("writes", [lambda p: write(p, "y"), lambda p: write(p, b"y"), lambda p: append(p, "y"),
                                    lambda p: opened(p, "x")], ids=["text", "bytes", "append", "new"])
def test_nothing_is_written_through_what_was_planted(debug: Path, plant: Callable[[Path, str], None],
                                                     writes: Callable[[Path], object]) -> None:
    plant(debug, "out")
    with pytest.raises(OSError, match="out"):
        writes(debug / "out")
    assert (debug.parents[1] / "train.py").read_text() == "x = 1\n"
    assert not (debug.parents[1] / "new.py").exists()


@pytest.mark.parametrize("link", ["scratch", "scratch/debug", "scratch/debug/plots"])
def test_no_link_on_the_way_is_followed(tmp_path: Path, link: str) -> None:
    (tmp_path / "src").mkdir()
    (tmp_path / link).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / link).symlink_to(tmp_path / "src")
    for folder in ("scratch/debug/plots", "scratch/debug/plots/deeper"):
        with pytest.raises(LeadsElsewhere, match="remove it"):
            made(tmp_path / folder)
    assert list((tmp_path / "src").iterdir()) == []


def test_a_file_on_the_way_is_said(debug: Path) -> None:
    (debug / "plots").write_text("")
    with pytest.raises(NotADirectoryError):
        made(debug / "plots" / "x")


def test_what_is_plain_is_written_and_kept_out_of_git(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("scratch/debug/a/b.txt")
    append(path, "é\n")
    append(path, "2\n", lasting=True)
    assert path.read_text("utf-8") == "é\n2\n"
    assert write(path, b"3").read_bytes() == b"3"
    assert Path("scratch/debug/.gitignore").read_text() == "*\n"
    with opened(path.with_name("c"), "x") as file:
        file.write("new")
    with pytest.raises(FileExistsError):
        opened(path.with_name("c"), "x")


@pytest.mark.parametrize("there", ["own\n", None], ids=["a file of the person", "a link that leads nowhere"])
def test_a_gitignore_that_is_there_stays(tmp_path: Path, there: str | None) -> None:
    ignore = tmp_path / "scratch" / "debug" / ".gitignore"
    ignore.parent.mkdir(parents=True)
    if there is None:
        ignore.symlink_to("../../made_by_us")
    else:
        ignore.write_text(there)
    made(tmp_path / "scratch" / "debug" / "x")
    assert not (tmp_path / "made_by_us").exists()
    assert there is None or ignore.read_text() == there


def test_elsewhere_a_path_means_what_it_always_means(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "out").symlink_to("real")
    made(tmp_path / "out" / "x")
    (tmp_path / "real" / "file").write_text("")
    (tmp_path / "link").symlink_to("real/file")
    write(tmp_path / "link", "y")
    assert (tmp_path / "real" / "file").read_text() == "y"
    assert (tmp_path / "real" / "x").is_dir()
    assert write(tmp_path / "new" / "file", "y").read_text() == "y"


@contextmanager
def _room_for(size: int) -> Iterator[None]:
    """A disk on which a file has no more bytes than that."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.parametrize("folder", [".", "scratch/debug"])
def test_a_full_disk_leaves_what_was_there(tmp_path: Path, folder: str) -> None:
    there = write(tmp_path / folder / "report.html", "the one before")
    with _room_for(1000), pytest.raises(OSError, match="too large"):
        write(there, b"x" * 100_000)
    with _room_for(1000), pytest.raises(OSError, match="too large"):
        write(there.with_name("new.html"), b"x" * 100_000)
    assert there.read_text() == "the one before"
    assert sorted(p.name for p in there.parent.iterdir() if p.is_file() and p.name != ".gitignore") == ["report.html"]


def test_a_gitignore_for_which_there_was_no_room_is_made_later(tmp_path: Path) -> None:
    with _room_for(0), pytest.raises(OSError, match="too large"):
        made(tmp_path / "scratch" / "debug" / "a")
    made(tmp_path / "scratch" / "debug" / "b")
    assert (tmp_path / "scratch" / "debug" / ".gitignore").read_text() == "*\n"


def test_what_is_replaced_keeps_its_rights_and_its_second_name(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text("")
    (tmp_path / "mine").chmod(0o640)
    write(tmp_path / "mine", "x")
    assert (tmp_path / "mine").stat().st_mode & 0o777 == 0o640
    os.link(tmp_path / "mine", tmp_path / "twin")
    write(tmp_path / "mine", "both")
    assert (tmp_path / "twin").read_text() == "both"


def test_a_device_or_a_pipe_is_written_to(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    come: list[str] = []
    reader = threading.Thread(target=lambda: come.append((tmp_path / "pipe").read_text()))
    reader.start()
    write(tmp_path / "pipe", "through")
    reader.join(10)
    assert come == ["through"]
    assert (tmp_path / "pipe").is_fifo()
