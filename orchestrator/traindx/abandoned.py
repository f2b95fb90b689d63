"""Folders of runs whose process was killed: marked while they are in use, gone at the next start.

The mark is a locked file. The kernel gives the lock back with the process, however that ends; who ends in order takes
the mark away. So a mark that nobody holds is the mark of a kill.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from traindx_tools.unlinked import HALF_BEGINS, HALF_ENDS

MARK = "in-use"
SUPERVISOR = "supervisor.lock"
"""Held by who ends the processes of a run: they go before their folder does."""
WAIT_SECONDS = 5.0
_PAUSE = 0.05


@contextlib.contextmanager
def in_use(folder: Path) -> Iterator[None]:
    """Marks a folder that exists as in use. Raises OSError."""
    made, mark = folder / f"{MARK}.{os.getpid()}", folder / MARK
    with made.open("w") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        made.rename(mark)  # locked before it has its name: no moment in which it looks abandoned
        try:
            yield
        finally:
            mark.unlink(missing_ok=True)


@contextlib.contextmanager
def temporary(prefix: str) -> Iterator[Path]:
    """A folder for the time of a block; those of this prefix that killed processes left go first."""
    remove_abandoned(Path(tempfile.gettempdir()), f"{prefix}*")
    with tempfile.TemporaryDirectory(prefix=prefix) as name, in_use(Path(name)):
        yield Path(name)


MADE_SECONDS = 60.0
"""Between making a folder and marking it, or a file's half and the whole, pass milliseconds; a busy disk takes more."""


def remove_abandoned(parent: Path, pattern: str, *, wait: float = WAIT_SECONDS) -> tuple[Path, ...]:
    """Removes this user's folders of killed processes below `parent`; one whose run has not ended by then stays."""
    gone = []
    for folder in sorted(parent.glob(pattern)):
        if _is_abandoned(folder) and _ended(folder, time.monotonic() + wait):
            shutil.rmtree(folder, ignore_errors=True)
            gone.append(folder)
        elif _is_old(folder):
            with contextlib.suppress(OSError):
                folder.rmdir()  # empty, of a process that was killed before it could mark it; any other stays
                gone.append(folder)
    return tuple(gone)


def remove_halves(folder: Path) -> None:
    """Removes the half-written files that `durable` leaves in a folder where its process is killed."""
    for half in folder.glob(f"{HALF_BEGINS}*{HALF_ENDS}"):
        if _is_old(half):
            with contextlib.suppress(OSError):
                half.unlink()


def _is_old(path: Path) -> bool:
    """Whether it was made so long ago that no living process is about to go on with it."""
    try:
        return time.time() - path.lstat().st_mtime > MADE_SECONDS
    except OSError:
        return False


def _is_abandoned(folder: Path) -> bool:
    try:
        own = not folder.is_symlink() and folder.stat().st_uid == os.getuid()
    except OSError:
        return False
    return own and _is_free(folder / MARK)


def _ended(folder: Path, deadline: float) -> bool:
    locks = [lock for above in ("", "*/", "*/*/") for lock in folder.glob(above + SUPERVISOR)]
    while not all(_is_free(lock) for lock in locks):
        if time.monotonic() >= deadline:
            return False
        time.sleep(_PAUSE)
    return True


def _is_free(lock: Path) -> bool:
    """True for a lock file that nobody holds; False where there is none."""
    try:
        file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return False
    finally:
        os.close(file)
    return True
