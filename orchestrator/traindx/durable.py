"""Writing to disk so that a kill or a power cut leaves either the old or the new content, never half of it."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path

from traindx_tools.errors import TraindxError
from traindx_tools.unlinked import HALF_BEGINS, HALF_ENDS, made


class StateNotWritable(TraindxError):
    """The session's folder cannot be written to: the disk is full, the file system is read-only, or rights lack."""

    def __init__(self, path: Path, cause: OSError) -> None:
        super().__init__(f"cannot write {path}: {cause.strerror or cause}. What was recorded so far is kept; free some "
                         "space or fix the rights, then resume the session.")


def sync(descriptor: int) -> None:
    """Force a file's content to the disk. One name for it, so that a test can count and cut it."""
    os.fsync(descriptor)


def sync_folder(folder: Path) -> None:
    """Force a folder's entries to the disk, so that a new or renamed file is found after a power cut."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        sync(descriptor)
    finally:
        os.close(descriptor)


def write_durably(path: Path, content: bytes, *, mode: int | None = None, staging: Path | None = None) -> None:
    """Replace a file's content atomically, through a temporary file in `staging` (default: beside it).

    `mode` sets the permission bits; the owner of an existing file is kept where the process may. Raises OSError as it
    comes; no temporary file is left behind unless the process is killed, and then only in `staging`.
    """
    descriptor, name = tempfile.mkstemp(prefix=HALF_BEGINS, suffix=HALF_ENDS, dir=staging or path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            _keep_owner(path, file.fileno())
            if mode is not None:
                os.fchmod(file.fileno(), mode)
            sync(file.fileno())
        os.replace(name, path)
    except BaseException:  # also Ctrl-C and a full disk: no half-written file stays behind; it is raised again
        Path(name).unlink(missing_ok=True)
        raise
    sync_folder(path.parent)


def _keep_owner(path: Path, descriptor: int) -> None:
    try:
        owner = path.stat()
        os.fchown(descriptor, owner.st_uid, owner.st_gid)
    except OSError:  # a new file, or a file of somebody else: it belongs to whoever runs this
        return


def write_state(path: Path, content: bytes) -> None:
    """`write_durably` for the session's own files. Raises StateNotWritable."""
    try:
        made(path.parent)
        write_durably(path, content, mode=0o644)
    except OSError as error:
        raise StateNotWritable(path, error) from error
