"""Commits: each state is made of objects, and the repository and the worktree are only read."""

from __future__ import annotations

import hashlib
import subprocess
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage, UnreadableInput
from traindx_tools.experiments.isolating.spaces.commits import Commits, object_id


def git(folder: Path, *words: str) -> str:
    own = ("user.name=a", "user.email=a@b", "commit.gpgsign=false", "core.hooksPath=/dev/null")
    command = ["git", "-C", str(folder), *(w for s in own for w in ("-c", s)), *words]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def commit(folder: Path, subject: str, **files: str | None) -> None:
    for name, text in files.items():
        path = folder / name.replace("__", "/").replace("_py", ".py")
        path.parent.mkdir(exist_ok=True)
        path.unlink(missing_ok=True)
        if text is not None:
            path.write_text(text)
    git(folder, "add", "-A", ":!data")
    git(folder, "commit", "-q", "-m", subject)


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    folder = tmp_path / "repository"
    folder.mkdir()
    git(folder, "init", "-q", "-b", "main")
    commit(folder, "first", train_py="1", old_py="o", sub__x_py="x")
    commit(folder, "second", train_py="2", old_py=None, new_py="n")
    commit(folder, "third", train_py="3")
    (folder / "data").mkdir()
    (folder / "data" / "x.bin").write_bytes(b"\0")
    (folder / "train.py").write_text("3, and not yet committed")
    return folder


def held(folder: Path) -> str:
    """A hash of every file below, `.git` included, and of the times at which they changed."""
    files = sorted(p for p in folder.rglob("*") if p.is_file())
    return hashlib.sha256(repr([(p, p.stat().st_mtime_ns, p.read_bytes()) for p in files]).encode()).hexdigest()


def test_a_state_is_what_differs_from_the_workspace(repository: Path) -> None:
    before = held(repository)
    space = Commits.of("HEAD~2..HEAD", "python train.py", repository)
    assert [label.partition(" ")[2] for label in space.labels] == ["second", "third"]
    assert space.prepared(frozenset()).files == {"train.py": b"1", "old.py": b"o", "new.py": None}
    assert space.prepared(frozenset({0})).files == {"train.py": b"2"}
    assert space.prepared(frozenset({0, 1})).files == {"train.py": b"3"}
    assert space.prepared(frozenset()).command == "python train.py"
    assert held(repository) == before


def test_a_command_of_a_subfolder_runs_there(repository: Path) -> None:
    space = Commits.of("HEAD~2..", "python x.py", repository / "sub")
    assert space.prepared(frozenset({0, 1})).command == "cd sub && python x.py"
    assert space.repository.root == repository


def test_a_merge_is_one_step_and_can_be_looked_into(repository: Path) -> None:
    git(repository, "checkout", "-q", "-f", "-b", "side", "HEAD~1")
    commit(repository, "side one", side_py="1")
    commit(repository, "side two", side_py="2")
    git(repository, "checkout", "-q", "main")
    git(repository, "merge", "-q", "--no-ff", "-m", "merge", "side")
    space = Commits.of("HEAD~2..HEAD", "python train.py", repository)
    assert [label.partition(" ")[2] for label in space.labels] == ["third", "merge"]
    within = space.within(space.commits[1])
    assert within is not None
    assert [label.partition(" ")[2] for label in within.labels] == ["side one", "side two"]
    assert within.prepared(frozenset({0})).files["side.py"] == b"1"
    assert space.within(space.commits[0]) is None


def test_ids_are_those_of_git(repository: Path) -> None:
    told = git(repository, "hash-object", "new.py").strip()
    assert object_id(b"n", told) == told
    assert len(object_id(b"n", "0" * 64)) == 64


@pytest.mark.parametrize(("spec", "said"), [
    ("HEAD", "expected GOOD..BAD"), ("..HEAD", "expected GOOD..BAD"), ("HEAD~1...HEAD", "expected GOOD..BAD"),
    ("nowhere..HEAD", "git says"), ("--all..HEAD", "names no commit"), ("HEAD..HEAD~1", "no ancestor"),
])  # fmt: skip
def test_what_names_no_commits(repository: Path, spec: str, said: str) -> None:
    with pytest.raises(BadUsage, match=said):
        Commits.of(spec, "python train.py", repository)


def test_no_repository_and_no_folder(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="not a git repository"):
        Commits.of("a..b", "python train.py", tmp_path)
    with pytest.raises(UnreadableInput, match="no such folder"):
        Commits.of("a..b", "python train.py", tmp_path / "none")
