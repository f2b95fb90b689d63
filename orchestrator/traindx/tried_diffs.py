"""Which diffs were tried in a workspace and what came of each: `scratch/debug/tried_diffs.jsonl`.

A diff is known by its content, not by its place: the same lines taken out and put in, in the same file, are the same
diff after the file moved on. It outlives sessions, so that one that failed is never offered anew without a word.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator
from datetime import datetime
from difflib import SequenceMatcher
from pathlib import Path
from typing import Literal

from filelock import FileLock
from filelock import Timeout as LockTimeout
from pydantic import Field, ValidationError

from traindx.durable import StateNotWritable
from traindx.hindrances import Change
from traindx.model import Model, Quoted, VerificationResult, now
from traindx.scratch import SCRATCH
from traindx.strikes import append_line
from traindx_tools import unlinked

FILE = SCRATCH / "tried_diffs.jsonl"


class TriedDiff(Model):
    """A diff that was applied after an approval, and how its verification went."""

    kind: Literal["tried-diff"] = "tried-diff"
    key: str
    """"<session>/<attempt>": the same trial is noted once."""
    fingerprint: str
    session: str
    summary: Quoted
    result: VerificationResult
    reasons: tuple[Quoted, ...] = ()
    own_error: Quoted = ""
    at: datetime = Field(default_factory=now)

    @property
    def said(self) -> str:
        """For a person: when, where and with what outcome."""
        why = "; ".join(self.reasons)
        return (f"this diff was tried on {self.at:%Y-%m-%d} in session {self.session}: {self.result.replace('_', ' ')}"
                f"{f' ({why})' if why else ''}")


def fingerprint(changes: Iterable[Change]) -> str:
    """Of what a fix made of the files."""
    return _digest((c.path, out, new) for c in changes for out, new in _hunks(c))


def _hunks(change: Change) -> Iterator[tuple[str, str]]:
    old, new = change.before.split("\n"), change.after.split("\n")
    for kind, a, b, c, d in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if kind != "equal":
            yield _bare("\n".join(old[a:b])), _bare("\n".join(new[c:d]))


def _bare(text: str) -> str:
    """Without the white space at the ends of lines and without empty lines."""
    return "\n".join(line.rstrip() for line in text.split("\n") if line.strip())


def _digest(hunks: Iterable[tuple[str, str, str]]) -> str:
    """Of all lines taken out and put in, by file: however they are grouped into hunks."""
    out: dict[str, list[str]] = {}
    for path, old, new in hunks:
        lines = out.setdefault(path, [])
        lines += [f"-{line}" for line in old.split("\n") if line] + [f"+{line}" for line in new.split("\n") if line]
    told = json.dumps({path: sorted(lines) for path, lines in out.items()}, sort_keys=True)
    return hashlib.sha256(told.encode()).hexdigest()


class TriedDiffs:
    """The diffs that were tried in one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / FILE
        self._lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = FileLock(self._lock_path)

    def entries(self) -> tuple[TriedDiff, ...]:
        """All of them, the oldest first. A line that is none is passed over: what it would say is only a warning."""
        return tuple(self._read())

    def last(self, mark: str) -> TriedDiff | None:
        """The last trial of the diff with this fingerprint, or None."""
        return next((e for e in reversed(self.entries()) if e.fingerprint == mark), None)

    def failed(self, mark: str) -> tuple[TriedDiff, ...]:
        """The trials of a diff that failed since it last helped, the oldest first."""
        own = [e for e in self.entries() if e.fingerprint == mark]
        helped = max((i for i, e in enumerate(own) if e.result == "fixed"), default=-1)
        return tuple(e for e in own[helped + 1:] if e.result in ("failed", "no_effect"))

    def add(self, entry: TriedDiff) -> None:
        """Note a trial, once. Raises StateNotWritable."""
        try:
            unlinked.append(self._lock_path, "")
            with self._lock.acquire(timeout=10):
                if not any(e.key == entry.key for e in self._read()):
                    append_line(self.path, (json.dumps(entry.to_json(), sort_keys=True) + "\n").encode())
        except LockTimeout as error:
            raise StateNotWritable(self.path, OSError(0, "another process holds the ledger of diffs")) from error
        except OSError as error:
            raise StateNotWritable(self.path, error) from error

    def _read(self) -> Iterator[TriedDiff]:
        if not self.path.is_file():
            return
        for line in self.path.read_bytes().split(b"\n")[:-1]:
            try:
                yield TriedDiff.model_validate_json(line)
            except ValidationError:
                continue
