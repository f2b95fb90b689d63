"""A diagnosis in a process that is being watched: what is recorded is brought to disk, what is not in yet is said."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from traindx_tools.live.session import watching

END = "traindx_tools.live.attach.end()"


def written_so_far() -> None:
    """Brings to disk what the instruments of this process recorded; without any it does nothing."""
    session = watching()
    if session is not None:
        session.recorder.flush()


def note_of(read: Iterable[str | Path]) -> str:
    """What is missing from a diagnosis that read the record of this very process while it goes on, "" where it did not.

    Many conclusions ("in no step of the run") hold for the whole of it, and are drawn when it ends.
    """
    session = watching()
    if session is None:
        return ""
    folder = os.path.join(os.path.realpath(session.settings.folder), "")
    if not any(os.path.realpath(path).startswith(folder) for path in read):
        return ""
    return (f"this process is still watched, and what its instruments conclude from the whole run is not in yet: {END} "
            "before diagnose(...) brings it in (a Monitor: diagnose behind its with statement)")
