"""A copy to run in: whole, apart from the user's files, and never written through a link."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx import protected_copy
from traindx.protected_copy import CopyRefused, copy_into, in_copy


@pytest.fixture
def work(tmp_path: Path) -> Path:
    root = tmp_path / "project"
    for folder in ("env", "data", ".git", "scratch/debug/s", "scratch/notes", "venv/bin"):
        (root / folder).mkdir(parents=True)
    for name in ("train.py", "env/__init__.py", "data/x.csv", ".git/HEAD", "scratch/debug/s/journal.jsonl",
                 "scratch/notes/a.txt", "venv/pyvenv.cfg", "venv/bin/python"):
        (root / name).write_text(name)
    return root


def test_it_holds_what_a_training_needs_and_the_given_contents(work: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy"
    copy_into(work, copy, {"train.py": b"old", "new.py": None, "sub/made.py": b"x"})
    assert (copy / "train.py").read_text() == "old"
    assert (work / "train.py").read_text() == "train.py"
    assert (copy / "sub/made.py").read_text() == "x"
    assert (copy / "env/__init__.py").is_file(), "a package called env is no environment"
    assert (copy / "scratch/notes/a.txt").is_file()
    assert not (copy / ".git").exists()
    assert not (copy / "scratch/debug").exists()
    assert (copy / "venv").resolve() == (work / "venv").resolve()


def test_links_stay_inside_or_point_where_they_pointed(work: Path, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("o")
    (work / "in.csv").symlink_to(work / "data/x.csv")
    (work / "out").symlink_to("../outside")
    (work / "folder").symlink_to("data")
    (work / "linked.py").symlink_to(work / "train.py")
    copy = tmp_path / "somewhere/copy"
    copy_into(work, copy, {"linked.py": b"new"})
    assert (copy / "in.csv").resolve() == (copy / "data/x.csv").resolve()
    assert (copy / "folder/x.csv").resolve() == (copy / "data/x.csv").resolve()
    assert (copy / "out").read_text() == "o"
    assert (copy / "linked.py").read_text() == "new"
    assert (copy / "train.py").read_text() == "train.py", "a link is replaced, never written through"


def test_large_files_are_linked_only_where_they_are_protected(work: Path, tmp_path: Path,
                                                              monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(protected_copy, "LARGE", 10)
    (work / "big.bin").write_bytes(b"x" * 20)
    copy_into(work, tmp_path / "a", {}, links=True)
    copy_into(work, tmp_path / "b", {})
    assert (tmp_path / "a/big.bin").is_symlink()
    assert not (tmp_path / "b/big.bin").is_symlink()
    monkeypatch.setattr(protected_copy, "COPY_LIMIT", 25)
    with pytest.raises(CopyRefused, match="GiB"):
        copy_into(work, tmp_path / "c", {})
    assert not (tmp_path / "c").exists()


def test_the_workspaces_own_path_in_a_command_leads_into_the_copy(tmp_path: Path) -> None:
    copy, home = tmp_path / "copy", tmp_path / "project"
    assert in_copy(f"cd {home} && python train.py", home, copy) == f"cd {copy} && python train.py"
    assert in_copy(f"python {home}2/train.py", home, copy) == f"python {home}2/train.py"
    inside = home / "scratch/debug/copy"
    assert in_copy(f"{home}/run", home, inside) == f"{inside}/run"
    assert in_copy(("python", f"{home}/train.py"), home, copy) == ("python", f"{copy}/train.py")
