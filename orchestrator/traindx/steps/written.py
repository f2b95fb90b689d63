"""What a verification wrote, told apart from what a person or another program changed meanwhile.

A file is the command's where it changed while the command ran. Three things speak against that. It changed before the
run began or after it ended. It holds the fix, and now something else. Or it is a file of the project's code that was
there before, or new code beside such, and the command does not write it on the unfixed code: what the run proves is
then not known to be proven of these files. Such a file halts the session, by name.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from traindx import patching
from traindx.abandoned import SUPERVISOR
from traindx.accepting import on_top
from traindx.as_known import applied_fix, content_of, hash_of
from traindx.patching import FileState
from traindx.protected_copy import SOURCE_ENDINGS
from traindx.scratch import SCRATCH
from traindx.turn import Turn

SETTING_ENDINGS = frozenset({".yaml", ".yml", ".toml", ".cfg", ".ini"})
WROTE = "verification_wrote"
BASELINES = SCRATCH / "baselines"
REWRITTEN = "rewritten.json"
"""Of a run on the unfixed code: the code and settings that the command itself wrote, with hashes of what it left."""


@dataclass(frozen=True)
class _Run:
    """When a run of the command began and ended, in nanoseconds of its file system; None where that is not known."""

    began: int | None
    ended: int | None
    device: int


def settle(turn: Turn) -> None:
    """Note what the runs of this verification wrote; halt for what they did not. Raises HaltRecorded."""
    wrote, others = _told_apart(turn)
    _adopt(turn, wrote)
    turn.halt_for(others)


def adopt(turn: Turn) -> None:
    """Note what the runs of this verification wrote; anything else is still to be told."""
    _adopt(turn, _told_apart(turn)[0])


def _adopt(turn: Turn, wrote: tuple[str, ...]) -> None:
    if wrote:
        turn.journal.append("note", {WROTE: list(wrote[:20])})
        on_top(turn.folder, turn.journal, turn.session, wrote)
        turn.watch(only=wrote)


def is_running(turn: Turn) -> bool:
    """Whether a command that a killed process started still runs: what it writes is not known yet."""
    return any(not (f / "result.json").exists() and _is_held(f / SUPERVISOR) for f in _folders(turn))


def _told_apart(turn: Turn) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Changed files that the command wrote, and all others."""
    changed = turn.changed()
    if not changed:
        return (), ()
    runs = [_run(f) for f in _folders(turn)]
    own = {s.path: s for s in applied_fix(turn.session, turn.journal.records)}
    known, unfixed = _known_code(turn), _written_unfixed(turn)
    free = {name for name, _ in unfixed} | _accepted(turn)
    wrote = tuple(p for p in changed
                  if (_as_unfixed(turn, own[p], unfixed) if p in own else p in free or not _is_code(p, known))
                  and (_by_hand(turn) or any(_within(turn.workspace / p, run) for run in runs)))
    return wrote, tuple(p for p in changed if p not in wrote)


def _as_unfixed(turn: Turn, state: FileState, unfixed: Collection[tuple[str, str]]) -> bool:
    """Whether a file of the fix holds, but for the fix, exactly what the command makes of it on the unfixed code."""
    content = content_of(turn.workspace, state.path)
    if content is None or state.before is None or state.after is None:
        return False
    without = patching.undo(turn.store.get(state.before), turn.store.get(state.after), content)
    return without is not None and (state.path, hash_of(without)) in unfixed


def _folders(turn: Turn) -> list[Path]:
    """Of the runs of the applied fix that were begun, also by a process that is gone."""
    begins = f"attempt-{turn.session.attempts[-1].number}-run-"
    keys = dict.fromkeys(str(r.body["key"]) for r in turn.journal.records
                         if r.kind == "begin" and str(r.body["key"]).startswith(begins))
    return [turn.folder.path / "verify" / key for key in keys]


def _run(folder: Path) -> _Run:
    began, ended = _changed_at(folder / "started"), _changed_at(folder / "result.json")
    return _Run(began, ended, folder.stat().st_dev if folder.is_dir() else -1)


def _changed_at(path: Path) -> int | None:
    try:
        return path.lstat().st_ctime_ns
    except OSError:
        return None


def _within(path: Path, run: _Run) -> bool:
    """Whether the file may have changed while the command ran; one that is gone may."""
    at = _changed_at(path)
    if run.began is None or at is None:
        return run.began is not None
    if path.lstat().st_dev != run.device:  # clocks of two file systems are not compared
        return True
    return run.began <= at and (run.ended is None or at <= run.ended)


def _by_hand(turn: Turn) -> bool:
    """Whether the session waited for a person, to run the program or to put the machine right: that writes files."""
    applied = max(r.number for r in turn.journal.records if r.kind == "event" and r.body.get("kind") == "applied")
    how = turn.verify
    said = {"terms": {"verify", "allow_run"}, "note": {"could_not_verify"}}
    return how is None or not how.command or any(r.number > applied and said.get(r.kind, set()) & set(r.body)
                                                 for r in turn.journal.records)


def _known_code(turn: Turn) -> frozenset[str]:
    """Code and settings that were there when the fix was made."""
    before = turn.folder.saved_fingerprint()
    return frozenset() if before is None else frozenset(p for p in before.files if _ending(p) in CODE)


CODE = SOURCE_ENDINGS | SETTING_ENDINGS


def _ending(path: str) -> str:
    return PurePosixPath(path).suffix.lower()


def _is_code(path: str, known: frozenset[str]) -> bool:
    """Code or settings that were there, or new code in a folder that has code: a program there may take it."""
    if path in known:
        return True
    folders = {PurePosixPath(k).parent for k in known if _ending(k) in SOURCE_ENDINGS}
    return _ending(path) in SOURCE_ENDINGS and PurePosixPath(path).parent in folders


def _written_unfixed(turn: Turn) -> frozenset[tuple[str, str]]:
    """What the command writes on the unfixed code as well, with the hash of what it left there."""
    begun = turn.journal.begun(baseline_place(turn))
    found: set[tuple[str, str]] = set()
    if begun is not None:
        for kept in (turn.workspace / BASELINES / str(begun["folder"])).glob(f"*/{REWRITTEN}"):
            with contextlib.suppress(OSError, ValueError, AttributeError):
                found |= set(json.loads(kept.read_text()).items())
    return frozenset(found)


def baseline_place(turn: Turn) -> str:
    """The key under which it is written down where the runs of the unfixed code are kept."""
    times = halts(turn)
    return f"baseline-place-{turn.session.attempts[-1].number}{f'-after-{times}' if times else ''}"


def halts(turn: Turn) -> int:
    """How often the verification of this fix was halted: what ran before proves nothing of the files after it."""
    applied = max(r.number for r in turn.journal.records if r.kind == "event" and r.body.get("kind") == "applied")
    return sum(1 for r in turn.journal.records
               if r.number > applied and r.kind == "event" and r.body.get("kind") == "halted")


def _accepted(turn: Turn) -> frozenset[str]:
    """Files that a halt of this verification named, and that a person accepted: the command may write them again."""
    found: set[str] = set()
    for r in turn.journal.records:
        kind = r.body.get("kind") if r.kind == "event" else ""
        found = set() if kind == "applied" else found | set(r.body["accepted"]) if kind == "resumed" else found
    return frozenset(found)


def _is_held(lock: Path) -> bool:
    try:
        file = os.open(lock, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    finally:
        os.close(file)
    return False


def code_below(root: Path, files: Iterable[tuple[Path, int]]) -> Iterator[str]:
    """Of files of a copy those that are code or settings, as they are named in it."""
    return (p.relative_to(root).as_posix() for p, _ in files if p.suffix.lower() in CODE)
