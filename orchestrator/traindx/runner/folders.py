"""The folders of a run: below the workspace for what is shared, in a private one of this user for the rest.

A folder is made and looked at step by step from its parent's descriptor, so that no link on the way is ever followed.
"""

from __future__ import annotations

import os
import stat
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import NamedTuple
from zlib import crc32

from traindx.runner.plan import CannotProtect, within

SCRATCH = ("scratch", "debug")
PROBES = (*SCRATCH, "probes")
SESSION_FILE = "journal.jsonl"
"""What makes a folder below scratch/debug a session of the orchestrator."""
LEDGERS = "strikes"

FOLDER_VARIABLE = "TRAINDX_RUNS"
"""Names the folder for private folders; default: /tmp/traindx-UID. A short path: sockets allow 107 bytes."""
KEPT_DAYS = 3.0
KEPT_AT_MOST = 20
"""Private folders of other workspaces: older ones go, and the oldest where there are more."""
OPEN_SCRATCH = "scratch"
"""The folder of the lock that a run holds while it may write all of scratch/debug."""
LOOKED_AT = 50_000
"""Files below a shared folder that are looked at for other names of project files."""


class Private(NamedTuple):
    """The folders of one workspace that nobody else writes to."""

    tmp: str
    cache: str
    copies: str
    keep: str
    """The runner's own notes: no command writes here."""


def made_below(root: str, parts: tuple[str, ...]) -> str:
    """The folder root/parts, made where it is missing. Raises CannotProtect for a link or a file on the way."""
    path, at = root, os.open(root, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        for part in parts:
            path = os.path.join(path, part)
            with suppress(FileExistsError):
                os.mkdir(part, dir_fd=at)
            at = _entered(at, part, path)
    finally:
        os.close(at)
    return path


def _entered(at: int, part: str, path: str) -> int:
    try:
        below = os.open(part, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=at)
    except OSError as error:
        leads = f"leads to {os.path.realpath(path)}" if os.path.islink(path) else error.strerror
        raise CannotProtect(f"{path} {leads}, expected a folder") from error
    os.close(at)
    return below


def private_folders(workspace: str, environment: Mapping[str, str]) -> Private:
    """This user's folders for this workspace. Raises CannotProtect where somebody else can write there."""
    base = _base(environment)
    if not os.path.isabs(base) or within(os.path.realpath(base), workspace):
        raise CannotProtect(f"{FOLDER_VARIABLE} is {base}, expected an absolute path outside of {workspace}")
    with suppress(FileExistsError):
        os.mkdir(base, 0o700)
    about = os.lstat(base)
    if not stat.S_ISDIR(about.st_mode) or about.st_uid != os.getuid() or about.st_mode & 0o022:
        raise CannotProtect(f"{base} is not a folder of yours that only you can write: remove it, or name another in "
                            f"{FOLDER_VARIABLE}")
    base = os.path.realpath(base)
    name = _name(workspace)
    made = Private(*(made_below(base, (name, part)) for part in Private._fields))
    os.utime(os.path.join(base, name))
    _tidy(base, name)
    return made


def fresh_folders(private: Private) -> Private:
    """Folders for temporary files and caches that only this process's run has. What ended runs left there goes."""
    import shutil

    base = made_below(os.path.dirname(private.keep), ("fresh",))
    for name in os.listdir(base):
        if not os.path.exists(f"/proc/{name}"):
            shutil.rmtree(os.path.join(base, name), ignore_errors=True)
    own = str(os.getpid())
    return private._replace(tmp=made_below(base, (own, "tmp")), cache=made_below(base, (own, "cache")))


def _base(environment: Mapping[str, str]) -> str:
    return environment.get(FOLDER_VARIABLE) or f"/tmp/traindx-{os.getuid()}"


def _name(workspace: str) -> str:
    return f"{crc32(os.fsencode(workspace)):08x}{len(workspace)}"


def _tidy(base: str, current: str) -> None:
    """Remove what other workspaces left; a folder with a run in it is in use."""
    ages = sorted((os.lstat(os.path.join(base, n)).st_mtime, n) for n in os.listdir(base) if n != current)
    old = time.time() - KEPT_DAYS * 86_400
    gone = [n for age, n in ages if age < old]
    gone += [n for _, n in ages if n not in gone][:max(0, len(ages) - len(gone) - KEPT_AT_MOST)]
    for name in gone[:5]:
        removed(os.path.join(base, name))


def removed(folder: str) -> None:
    """Remove a folder of our own, unless a run is in it."""
    import shutil

    with in_use(os.path.join(folder, "keep")) as alone:
        if alone:
            shutil.rmtree(folder, ignore_errors=True)


class in_use:
    """Holds a folder's lock while it is entered; the value says whether it was free. `shared`: with other runs."""

    def __init__(self, folder: str, shared: bool = False) -> None:
        self.folder, self.shared, self.file = folder, shared, -1

    def __enter__(self) -> bool:
        import fcntl

        try:
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
            self.file = os.open(os.path.join(self.folder, "lock"), flags, 0o600)
            fcntl.flock(self.file, (fcntl.LOCK_SH if self.shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except OSError:
            return False
        return True

    def __exit__(self, *_: object) -> None:
        if self.file >= 0:
            os.close(self.file)


def shared_folders(workspace: str) -> list[str]:
    """What the command may write below scratch/debug: all of it where no session or ledger lies there, else the probes.

    The probes are made where they are missing. Nothing, where there are too many files to look at.
    """
    probes = made_below(workspace, PROBES)
    scratch = os.path.dirname(probes)
    _ignored_by_git(scratch)
    wanted = [probes] if list(sessions(scratch)) else [scratch, probes]
    return [folder for folder in wanted if _only_names(folder)][:1]


def command_runs(workspace: str, environment: Mapping[str, str]) -> bool:
    """True while a command runs that may write below scratch/debug of this workspace."""
    if not sys.platform.startswith("linux"):
        return False
    folder = os.path.join(_base(environment), _name(workspace), "keep", OPEN_SCRATCH)
    if not os.path.isdir(folder):
        return False
    with in_use(folder) as free:
        return not free


def sessions(scratch: str) -> Iterator[str]:
    """What below scratch/debug is the orchestrator's: folders of sessions, and ledgers."""
    with os.scandir(scratch) as entries:
        for entry in entries:
            session = entry.is_dir(follow_symlinks=False) and os.path.lexists(os.path.join(entry.path, SESSION_FILE))
            if session or entry.name.startswith(LEDGERS):
                yield entry.name


def _ignored_by_git(scratch: str) -> None:
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW
        file = os.open(os.path.join(scratch, ".gitignore"), flags, 0o644)
    except OSError:
        return
    os.write(file, b"*\n")
    os.close(file)


def _only_names(folder: str) -> bool:
    """A file with a second name elsewhere (a hard link) becomes a file of its own: the other may be the project's.

    False where there are too many files to look at.
    """
    seen = 0
    for where, _, names in os.walk(folder):
        for name in names:
            path = os.path.join(where, name)
            about = os.lstat(path)
            if stat.S_ISREG(about.st_mode) and about.st_nlink > 1:
                _own(path, about)
        seen += len(names)
        if seen > LOOKED_AT:
            return False
    return True


def _own(path: str, about: os.stat_result) -> None:
    fresh = f"{path}.own-{os.getpid()}"
    with open(path, "rb") as old, open(fresh, "xb") as new:
        while block := old.read(2**20):
            new.write(block)
    os.chmod(fresh, stat.S_IMODE(about.st_mode))
    os.replace(fresh, path)
