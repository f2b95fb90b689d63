"""What piles up below scratch/debug and can go: reports, kept runs, outputs of probes. Sessions and strikes stay.

A session that ended goes only where that is asked for; one that waits, is interrupted or is driven right now never
does, and neither do the strikes, the changes that were tried and the notes of a project: the next session reads them.
No link is followed: a folder that is one is left where it is.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from traindx.scratch import SCRATCH
from traindx.session_folder import JOURNAL, SessionBusy, SessionFolder

KINDS = {"diagnose-20*": "reports of traindx diagnose", "experiments": "kept runs of experiments",
         "baselines": "kept runs of verifications",
         f"isolate-*-{'[0-9a-f]' * 8}": "kept runs of traindx isolate", "plots": "pictures",
         "probes": "outputs of probes"}
"""Patterns of folders that can be made again, and what they are."""
SESSIONS = "sessions that ended"
ENDED = frozenset({"fixed", "healthy", "rejected", "stopped"})
YOUNG = 60.0
"""Seconds: what was written to in the last minute may be somebody's work."""


@dataclass(frozen=True)
class Leftover:
    """A folder that can go."""

    path: Path
    kind: str
    bytes: int
    changed: float
    """When something in it was last written, in seconds since 1970."""


def leftovers(workspace: Path, *, sessions: bool = False, older_than: float = 0.0,
              now: float | None = None, young: float = YOUNG) -> tuple[Leftover, ...]:
    """What can go, the largest first. `older_than`, `young`: seconds since it was last written to."""
    scratch, moment = workspace / SCRATCH, time.time() if now is None else now
    if scratch.is_symlink() or scratch.parent.is_symlink() or not scratch.is_dir():
        return ()
    named = [(p, kind) for pattern, kind in KINDS.items() for p in scratch.glob(pattern)]
    ended = ((p.parent, SESSIONS) for p in scratch.glob(f"*/{JOURNAL}")) if sessions else ()
    found = [_measured(p, kind) for p, kind in (*named, *ended)
             if p.is_dir() and not p.is_symlink() and (kind == SESSIONS) == (p / JOURNAL).is_file()]
    old = [f for f in found if moment - f.changed > max(older_than, young)]
    return tuple(sorted((f for f in old if f.kind != SESSIONS or _ended(f.path)), key=lambda f: (-f.bytes, f.path)))


def remove(found: Iterable[Leftover]) -> Iterator[tuple[Leftover, str]]:
    """Removes them one after the other; each with "" or why it is still there."""
    for one in found:
        try:
            if one.kind == SESSIONS:
                with SessionFolder(one.path).locked(wait=0.0):
                    shutil.rmtree(one.path)
            else:
                shutil.rmtree(one.path)
        except SessionBusy:
            yield one, "another process drives it"
        except RecursionError:
            yield one, "its folders are nested too deeply: remove it by hand (rm -r)"
        except OSError as error:
            yield one, f"{error.strerror or error}"
        else:
            yield one, ""


def _measured(folder: Path, kind: str) -> Leftover:
    size, changed = 0, folder.lstat().st_mtime
    waiting = [folder]
    while waiting:  # not os.walk: it calls itself for each level
        with contextlib.suppress(OSError), os.scandir(waiting.pop()) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    waiting.append(Path(entry.path))
                    continue
                seen = entry.stat(follow_symlinks=False)
                size, changed = size + seen.st_blocks * 512, max(changed, seen.st_mtime)
    return Leftover(folder, kind, size, changed)


def _ended(folder: Path) -> bool:
    from traindx.session import read_result
    from traindx_tools.errors import TraindxError

    try:
        return read_result(folder).status in ENDED
    except (TraindxError, OSError, ValueError):  # a damaged one is looked at by a person
        return False
