"""The fingerprint names what changed, and stays bounded."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from traindx import workspace as workspace_module
from traindx.workspace import Fingerprinter


def changed(root: Path, change) -> tuple[str, ...]:
    prints = Fingerprinter(root)
    before = prints.take()
    change()
    return before.changed(prints.take())


@pytest.mark.parametrize(("change", "named"), [
    (lambda r: (r / "train.py").write_text("x"), ("train.py",)),
    (lambda r: (r / "new file ü.py").write_text("x"), ("new file ü.py",)),
    (lambda r: (r / "other.py").unlink(), ("other.py",)),
    (lambda r: (r / "train.py").chmod(0o600), ("train.py",)),
    (lambda r: (r / "link").symlink_to("train.py"), ("link",)),
    (lambda r: os.mkfifo(r / "pipe"), ("pipe",)),
    (lambda r: (r / "other.py").rename(r / "moved.py"), ("moved.py", "other.py")),
    (lambda r: os.utime(r / "train.py"), ()),
    (lambda r: (r / "scratch/debug").mkdir(parents=True) or (r / "scratch/debug/x").write_text("x"), ()),
    (lambda r: (r / "__pycache__").mkdir() or (r / "__pycache__/x.pyc").write_text("x"), ()),
    (lambda r: (r / "scratch").mkdir() or (r / "scratch/mine.py").write_text("x"), ("scratch/mine.py",)),
])
def test_it_names_exactly_what_changed(workspace: Path, change, named: tuple[str, ...]):
    assert changed(workspace, lambda: change(workspace)) == named


def test_a_change_of_the_same_length_within_the_same_clock_tick_is_seen(workspace: Path):
    path = workspace / "train.py"
    stamp = path.stat()

    def same_size_same_time() -> None:
        path.write_text(path.read_text().replace("10.0", "99.9"))
        os.utime(path, ns=(stamp.st_atime_ns, stamp.st_mtime_ns))

    assert changed(workspace, same_size_same_time) == ("train.py",)


def test_virtual_environments_are_left_out_by_what_they_hold(workspace: Path):
    (workspace / "my env").mkdir()
    (workspace / "my env/pyvenv.cfg").write_text("home = /usr")
    assert changed(workspace, lambda: (workspace / "my env/site.py").write_text("x")) == ()


def test_a_folder_beyond_the_bound_is_left_out_and_named(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workspace_module, "FILES_AT_MOST", 3)
    for n in range(4):
        (workspace / "data").mkdir(exist_ok=True)
        (workspace / f"data/{n}").write_text("x")
    (workspace / "data/deep").mkdir()
    taken = Fingerprinter(workspace).take()
    assert "train.py" in taken.files
    assert taken.skipped == ("data/deep",)


def test_a_large_file_is_not_hashed_but_watched(workspace: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(workspace_module, "HASHED_UP_TO", 10)
    assert Fingerprinter(workspace).take().files["train.py"].endswith(" -")
    assert changed(workspace, lambda: (workspace / "train.py").write_text("longer than ten bytes")) == ("train.py",)


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_large_ignored_folders_are_left_out_and_gits_own_state_is_watched(workspace: Path,
                                                                          monkeypatch: pytest.MonkeyPatch):
    subprocess.run(["git", "init", "-q", "."], cwd=workspace, check=True)
    (workspace / ".gitignore").write_text("runs/\n")
    (workspace / "runs").mkdir()
    for n in range(5):
        (workspace / f"runs/{n}").write_text("x")
    monkeypatch.setattr(workspace_module, "IGNORED_FILES_AT_MOST", 3)
    assert changed(workspace, lambda: (workspace / "runs/6").write_text("x")) == ()
    assert Fingerprinter(workspace).take().skipped == ("runs",)
    hook = workspace / ".git/hooks/post-commit"
    assert changed(workspace, lambda: hook.write_text("#!/bin/sh\n")) == (".git/hooks/post-commit",)


def test_paths_that_the_user_excepts_may_change(workspace: Path):
    prints = Fingerprinter(workspace, ("*.log", "tmp/*"))
    before = prints.take()
    (workspace / "run.log").write_text("x")
    (workspace / "run.py").write_text("x")
    assert before.changed(prints.take()) == ("run.py",)


def test_a_file_name_that_is_no_text_is_named(workspace: Path):
    name = os.fsdecode(b"bad\xff.py")
    assert changed(workspace, lambda: (workspace / name).write_text("x")) == (name,)


def test_the_bound_of_hashed_bytes_never_makes_an_unchanged_file_look_changed(workspace: Path, monkeypatch):
    monkeypatch.setattr(workspace_module, "HASHED_IN_ALL", (workspace / "other.py").stat().st_size)
    tight = Fingerprinter(workspace).take()
    assert tight.files["train.py"].endswith(" -")
    monkeypatch.undo()
    roomy = Fingerprinter(workspace).take()
    assert tight.changed(roomy) == ()
    (workspace / "train.py").write_text("x")
    assert roomy.changed(Fingerprinter(workspace).take()) == ("train.py",)


def test_links_are_compared_by_their_whole_target(workspace: Path):
    (workspace / "link").symlink_to("a x y d")

    def change() -> None:
        (workspace / "link").unlink()
        (workspace / "link").symlink_to("a z y d")

    assert changed(workspace, change) == ("link",)
