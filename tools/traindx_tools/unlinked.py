"""Writing below scratch/debug, where code that nobody has read may have left links to files of the project.

Below that folder no link is followed and no file with a second name (a hard link) is written: not on the way, not as
the file itself, not where it leads nowhere yet. Elsewhere a path means what it always means: the person named it.
Standard library only.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
import threading
from pathlib import Path
from typing import IO, Any

SCRATCH = ("scratch", "debug")
IGNORE = ".gitignore"
HALF_BEGINS, HALF_ENDS = ".traindx-", ".part"
"""Name of a file that is not whole yet."""
_FLAGS = {"a": os.O_APPEND, "w": 0, "x": os.O_EXCL}
_NO_LINK = getattr(os, "O_NOFOLLOW", 0)
_BY_DESCRIPTOR = os.open in os.supports_dir_fd and os.mkdir in os.supports_dir_fd


class LeadsElsewhere(OSError):
    """A link, or a second name of another file, stands where something of ours would be written."""

    def __init__(self, path: Path) -> None:
        leads = f"leads to {os.path.realpath(path)}" if path.is_symlink() else "is no file or folder of its own"
        super().__init__(errno.ELOOP, f"it {leads}: remove it", str(path))


def below_scratch(path: Path) -> tuple[Path, tuple[str, ...]] | None:
    """The workspace of a path in scratch/debug, and the parts below it; None for a path elsewhere."""
    parts = Path(os.path.abspath(path)).parts
    at = next((i for i in range(len(parts) - 1) if parts[i:i + 2] == SCRATCH), None)
    return None if at is None else (Path(*parts[:at]), parts[at:])


def made(folder: Path) -> Path:
    """The folder, made with its parents; scratch/debug is kept out of git. Raises OSError."""
    found = below_scratch(folder)
    if found is None:
        folder.mkdir(parents=True, exist_ok=True)
        return folder
    root, parts = found
    root.mkdir(parents=True, exist_ok=True)
    at, path = _entered(None, root), root
    try:
        for number, part in enumerate(parts, 1):
            path /= part
            at = _entered(at, path)
            if number == len(SCRATCH):
                _ignored(at, path / IGNORE)
    finally:
        _left(at)
    return folder


def opened(path: Path, mode: str = "w", *, private: bool = False) -> IO[Any]:
    """The file in a folder that is made, open for writing: `w`, `a` or `x`, with `b` for bytes; text is UTF-8.

    `private`: nobody else may read it, whatever it was before. Raises OSError.
    """
    text: dict[str, Any] = {} if "b" in mode else {"encoding": "utf-8"}
    made(path.parent)
    if below_scratch(path) is None:
        return open(path, mode, opener=_for_its_owner if private else None, **text)
    flags = os.O_WRONLY | os.O_CREAT | _NO_LINK | getattr(os, "O_CLOEXEC", 0) | _FLAGS[mode[0]]
    if os.path.lexists(path) and mode[0] != "x" and not _own(os.lstat(path)):
        raise LeadsElsewhere(path)
    file = os.open(path, flags, 0o600 if private else 0o644)
    try:
        if not _own(os.fstat(file)):
            raise LeadsElsewhere(path)
        if private:
            _close_to_others(file)
        if mode[0] == "w":
            os.ftruncate(file, 0)  # not by O_TRUNC: the file is looked at first
        return os.fdopen(file, mode.replace("x", "w"), **text)
    except BaseException:  # whatever it is, the descriptor is closed; it is raised again
        os.close(file)
        raise


def write(path: Path, content: str | bytes) -> Path:
    """Writes the whole file: a disk that is full or a kill leaves what was there. Raises OSError."""
    mode = "wb" if isinstance(content, bytes) else "w"
    aside = _aside(path)
    if aside is None:
        with opened(path, mode) as file:
            file.write(content)
        return path
    half, target = aside
    try:
        with opened(half, mode.replace("w", "x")) as file:
            file.write(content)
        _take_place(half, target)
    except BaseException:  # whatever it is, no half of a file stays behind; it is raised again
        with contextlib.suppress(OSError):
            half.unlink()
        raise
    return path


def _aside(path: Path) -> tuple[Path, Path] | None:
    """Where a file is written before it takes its place, and that place; None where it has to be written in place: a
    device or a pipe, a file with a second name or of somebody else, a folder in which no file can be made."""
    made(path.parent)
    below = below_scratch(path) is not None
    target = path if below else Path(os.path.realpath(path))
    if os.path.lexists(target):
        about = os.lstat(target)
        if not _own(about):
            if below:
                raise LeadsElsewhere(path)
            return None
        if hasattr(os, "geteuid") and about.st_uid != os.geteuid():
            return None
    if not os.access(target.parent, os.W_OK):
        return None
    return target.with_name(f"{HALF_BEGINS}{os.getpid()}-{threading.get_ident()}{HALF_ENDS}"), target


def _take_place(half: Path, target: Path) -> None:
    with contextlib.suppress(FileNotFoundError):
        half.chmod(stat.S_IMODE(os.lstat(target).st_mode))
    os.replace(half, target)


def append(path: Path, text: str, *, lasting: bool = False) -> None:
    """Appends to a file, and waits for the disk where it is `lasting`. Raises OSError."""
    with opened(path, "a") as file:
        file.write(text)
        if lasting:
            file.flush()
            os.fsync(file.fileno())


def _for_its_owner(path: str, flags: int) -> int:
    file = os.open(path, flags, 0o600)
    _close_to_others(file)
    return file


def _close_to_others(file: int) -> None:
    """Also where the file was there before."""
    if hasattr(os, "fchmod"):
        os.fchmod(file, 0o600)


def _own(about: os.stat_result) -> bool:
    return stat.S_ISREG(about.st_mode) and about.st_nlink == 1


def _entered(at: int | None, path: Path) -> int | None:
    """The folder in `at` of this path's name, made where it is missing; None where no descriptor stands for folders."""
    name = path if at is None else path.name
    if at is not None or not path.is_dir():
        try:
            os.mkdir(name, dir_fd=at)
        except FileExistsError:
            if path.is_symlink():
                raise LeadsElsewhere(path) from None
    if not _BY_DESCRIPTOR:
        return None
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
    below = os.open(name, flags if at is None else flags | _NO_LINK, dir_fd=at)
    _left(at)
    return below


def _left(at: int | None) -> None:
    if at is not None:
        os.close(at)


def _ignored(at: int | None, path: Path) -> None:
    """Writes the .gitignore where nothing of that name is there, a link that leads nowhere included."""
    try:
        file = os.open(IGNORE if at is not None else path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _NO_LINK, 0o644,
                       dir_fd=at)
    except FileExistsError:
        return
    try:
        with os.fdopen(file, "w", encoding="utf-8") as ignore:
            ignore.write("*\n")
    except OSError:  # an empty one would ignore nothing, and stay
        os.unlink(IGNORE if at is not None else path, dir_fd=at)
        raise
