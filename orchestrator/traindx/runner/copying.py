"""A copy of the workspace that a command may change: code copied, data linked, used again where nothing changed.

What a copy holds is known by inode and change time, which no command can set: a file that an earlier command touched
is copied anew, so that a verification never runs what somebody left there.
"""

from __future__ import annotations

import json
import os
import shutil
import stat
import time
from typing import NamedTuple

from traindx.runner.folders import Private, in_use
from traindx.runner.plan import CannotProtect

LEFT_OUT = frozenset({"__pycache__", "scratch", "wandb", ".mypy_cache", ".ruff_cache", ".pytest_cache", ".tox",
                      ".claude"})
LINKED_FOLDERS = frozenset({".git", ".hg", ".svn", ".venv", "venv", "env", "node_modules"})
"""Read where they are: programs and history, which no experiment changes."""
LINKED_FROM = 32 * 2**20
"""Bytes; a larger file is linked into the copy: it can be read there and not written."""
LINKED_ENTRIES = 1_000
"""A folder with more entries is data, and linked as a whole."""
FILES_AT_MOST = 100_000
COPIES = 4
"""At one time; a run that finds all of them in use is refused."""
KEPT_DAYS = 1.0
MANIFEST = "manifest.json"

Stamps = dict[str, list[int]]
"""By relative path: size, time and inode of the source; inode, change time and size of the copy."""


class Copy(NamedTuple):
    """A copy that nobody else is in, as long as `lock` is held."""

    folder: str
    manifest: int
    """A descriptor of what the copy held last, read and written within the confinement."""
    lock: in_use


def free_copy(workspace: str, private: Private) -> Copy:
    """A copy of this workspace that no run is in; not brought up to date yet. Raises CannotProtect."""
    for number in range(1, COPIES + 1):
        keep = os.path.join(private.keep, f"copy-{number}")
        os.makedirs(keep, exist_ok=True)
        lock = in_use(keep)
        if lock.__enter__():
            _drop_old(private, number)
            folder = os.path.join(private.copies, f"copy-{number}")
            os.makedirs(folder, exist_ok=True)
            manifest = os.open(os.path.join(keep, MANIFEST), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
            os.utime(manifest)
            return Copy(folder, manifest, lock)
        lock.__exit__()
    raise CannotProtect(f"all {COPIES} copies of {workspace} are in use: wait for a run to end")


def bring(workspace: str, folder: str, manifest: int = -1) -> None:
    """Make the copy like the workspace. Called within the confinement: a link on the way leads nowhere.

    Raises CannotProtect, OSError.
    """
    text = os.pread(manifest, os.fstat(manifest).st_size, 0) if manifest >= 0 else b""
    try:
        before: Stamps = json.loads(text)
    except ValueError:
        before = {}
    made = _Synchronized(workspace, folder, before)
    made.folder("")
    if manifest >= 0:
        os.ftruncate(manifest, 0)
        os.pwrite(manifest, json.dumps(made.after).encode(), 0)


def _drop_old(private: Private, current: int) -> None:
    for number in range(1, COPIES + 1):
        keep = os.path.join(private.keep, f"copy-{number}")
        manifest = os.path.join(keep, MANIFEST)
        if number == current or not os.path.exists(manifest):
            continue
        with in_use(keep) as alone:
            if alone and os.path.getmtime(manifest) < time.time() - KEPT_DAYS * 86_400:
                shutil.rmtree(os.path.join(private.copies, f"copy-{number}"), ignore_errors=True)
                os.unlink(manifest)


class _Synchronized:
    """Brings one copy to the workspace's state."""

    def __init__(self, workspace: str, target: str, before: Stamps) -> None:
        self.workspace, self.target, self.before = workspace, target, before
        self.after: Stamps = {}

    def folder(self, relative: str) -> None:
        """Copy what is new or was touched, remove what does not belong there."""
        source, target = os.path.join(self.workspace, relative), os.path.join(self.target, relative)
        if not os.path.isdir(target) or os.path.islink(target):
            _remove(target)
            os.mkdir(target)
        with os.scandir(source) as found:
            wanted = {e.name: e for e in found if e.name not in LEFT_OUT}
        for name in os.listdir(target):
            if name not in wanted:
                _remove(os.path.join(target, name))
        for name, entry in wanted.items():
            self._entry(os.path.join(relative, name), entry)

    def _entry(self, relative: str, entry: os.DirEntry[str]) -> None:
        about = entry.stat(follow_symlinks=False)
        if stat.S_ISLNK(about.st_mode):
            self._link(relative, self._pointing(relative))
        elif stat.S_ISDIR(about.st_mode):
            if entry.name in LINKED_FOLDERS or _is_large(entry.path):
                self._link(relative, entry.path)
            else:
                self.folder(relative)
        elif stat.S_ISREG(about.st_mode):
            if about.st_size > LINKED_FROM:
                self._link(relative, entry.path)
            else:
                self._file(relative, entry.path, about)

    def _pointing(self, relative: str) -> str:
        """Where a link of the workspace points from the copy: into the copy as it is, else to the real place."""
        source = os.path.join(self.workspace, relative)
        text, real = os.readlink(source), os.path.realpath(source)
        inside = os.path.relpath(real, self.workspace)
        copied = not inside.startswith("..") and not (LEFT_OUT | LINKED_FOLDERS) & set(inside.split(os.sep))
        return text if copied and not os.path.isabs(text) else real

    def _link(self, relative: str, to: str) -> None:
        target = os.path.join(self.target, relative)
        if not os.path.islink(target) or os.readlink(target) != to:
            _remove(target)
            os.symlink(to, target)

    def _file(self, relative: str, source: str, about: os.stat_result) -> None:
        if len(self.after) >= FILES_AT_MOST:
            raise CannotProtect(f"{self.workspace} holds more than {FILES_AT_MOST} files to copy: run without --copy, "
                                "or link the data into it")
        target = os.path.join(self.target, relative)
        known, of_source = self.before.get(relative, []), [about.st_size, about.st_mtime_ns, about.st_ino]
        if known[:3] != of_source or known[3:] != _of_copy(target):
            _remove(target)
            _copied(source, target, about)
        self.after[relative] = [*of_source, *_of_copy(target)]


def _copied(source: str, target: str, about: os.stat_result) -> None:
    """By descriptors: the file that was made is the one that gets the content, the mode and the time."""
    with open(source, "rb") as old:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        with open(os.open(target, flags, stat.S_IMODE(about.st_mode) & 0o755 | 0o600), "wb") as new:
            shutil.copyfileobj(old, new, 2**20)
            new.flush()
            os.utime(new.fileno(), ns=(about.st_atime_ns, about.st_mtime_ns))


def _of_copy(target: str) -> list[int]:
    try:
        about = os.lstat(target)
    except OSError:
        return []
    own = stat.S_ISREG(about.st_mode) and about.st_nlink == 1
    return [about.st_ino, about.st_ctime_ns, about.st_size] if own else []


def _is_large(folder: str) -> bool:
    with os.scandir(folder) as found:
        return sum(1 for _ in zip(found, range(LINKED_ENTRIES + 1), strict=False)) > LINKED_ENTRIES


def _remove(path: str) -> None:
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    elif os.path.lexists(path):
        os.unlink(path)
