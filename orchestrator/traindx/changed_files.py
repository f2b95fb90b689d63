"""The files that a session's fix changed."""

from __future__ import annotations

from traindx.machine import Session

MEANWHILE = "meanwhile session "
"""In the reason of a halt: another session of the folder made a fix since the diagnosis."""


UNKNOWN = "files_unknown"
"""A note: the session's own record of the files was gone, so that what changed since could not be told."""

KEPT_BESIDE = "kept_beside"
"""A note: files that a person changed beside the fix, and that kept this when it was taken out."""


def changed_files(s: Session) -> tuple[str, ...]:
    """Files that hold a fix which is neither verified nor taken back, each as `path:line`."""
    last = s.attempts[-1] if s.attempts and s.stands_in in ("verify", "strike") else None
    return () if last is None or last.reverted else last.where
