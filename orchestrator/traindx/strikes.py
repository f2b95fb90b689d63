"""The three-strike ledger: failed fixes, by approach, in `scratch/debug/strikes.jsonl` of the workspace.

It outlives sessions and restarts. An approach is a failure mode in a component; a fix that edits the same lines of the
same file is the same approach under another name ("one more variation") and is counted with it. At three strikes a fix
of that approach is refused, until a person reopens it and says why.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime
from pathlib import Path
from typing import Literal

from filelock import FileLock
from filelock import Timeout as LockTimeout
from pydantic import Field, ValidationError

from traindx.durable import StateNotWritable, sync
from traindx.model import Approach, Attempt, Diagnosis, Fix, Model, now
from traindx.scratch import LEDGER as LEDGER
from traindx.strike_levels import STRIKES_OUT
from traindx_tools import unlinked
from traindx_tools.errors import TraindxError


class LedgerDamaged(TraindxError):
    """The ledger holds a line that is neither a strike nor a reopening."""


class StrikeRefused(TraindxError):
    """A fix is refused because its approach has three strikes."""


class Strike(Model):
    """One fix that failed its verification."""

    kind: Literal["strike"] = "strike"
    key: str
    """"<session>/<attempt>": the same failure is counted once, however often it is reported."""
    approach: Approach
    summary: str
    places: tuple[tuple[str, int, int], ...]
    originals: tuple[str, ...] = ()
    learned: tuple[str, ...] = ()
    """What the failed verification showed."""
    symptom_stayed: bool = False
    """Whether the symptom was measured with the fix in place, and stayed: only that speaks against the cause."""
    at: datetime = Field(default_factory=now)


class Reopening(Model):
    """A person's explicit decision that an approach may be tried again, and why."""

    kind: Literal["reopening"] = "reopening"
    approach: Approach
    by: str
    reason: str = Field(min_length=1)
    at: datetime = Field(default_factory=now)


def overlap(one: Sequence[tuple[str, int, int]], other: Sequence[tuple[str, int, int]]) -> bool:
    """True where two changes touch a common line of a common file (an insertion touches the line it stands before)."""
    return any(posixpath.normpath(p) == posixpath.normpath(q) and a <= max(d, c) and c <= max(b, a)
               for p, a, b in one for q, c, d in other)


def same_approach(strike: Strike, approach: Approach, fix: Fix | Attempt) -> bool:
    """True where the fix is a variation of what the strike was counted for."""
    originals = {_bare(t) for t in _originals(fix)} - {""}
    return (strike.approach == approach or overlap(strike.places, fix.places)
            or (_files(strike.places) & _files(fix.places) != set()
                and bool(originals & {_bare(t) for t in strike.originals})))


def _originals(fix: Fix | Attempt) -> tuple[str, ...]:
    return fix.originals if isinstance(fix, Attempt) else tuple(e.original for e in fix.edits)


def _files(places: Sequence[tuple[str, int, int]]) -> set[str]:
    return {posixpath.normpath(p) for p, _, _ in places}


def _bare(text: str) -> str:
    return "".join(text.split())


class Ledger:
    """The strikes of one workspace."""

    def __init__(self, workspace: Path) -> None:
        self.path = workspace / LEDGER
        self._lock_path = self.path.with_name(f"{self.path.name}.lock")
        self._lock = FileLock(self._lock_path)

    def entries(self) -> list[Strike | Reopening]:
        """All entries in order. A torn last line is not one. Raises LedgerDamaged."""
        return list(self._read())

    def _read(self) -> Iterator[Strike | Reopening]:
        if not self.path.exists():
            return
        lines = self.path.read_bytes().split(b"\n")
        for number, line in enumerate(lines[:-1], 1):
            try:
                data = json.loads(line)
                yield (Reopening if data.get("kind") == "reopening" else Strike).model_validate(data)
            except (ValueError, AttributeError, ValidationError) as error:
                raise LedgerDamaged(f"{self.path}:{number} is no entry of the strike ledger: {line[:80]!r}. Remove "
                                    "that line if you know that it is not a strike.") from error

    def strikes(self, approach: Approach, fix: Fix | Attempt) -> tuple[Strike, ...]:
        """The strikes that count against this fix, since the approach was last reopened."""
        against: list[Strike] = []
        for entry in self._read():
            if isinstance(entry, Strike):
                if same_approach(entry, approach, fix):
                    against.append(entry)
            else:
                against = [s for s in against if s.approach != entry.approach]
        return tuple(against)

    def refusal(self, diagnosis: Diagnosis, fix: Fix) -> str | None:
        """Why this fix may not be tried, with what the strikes showed; None where it may."""
        against = self.strikes(diagnosis.approach, fix)
        if len(against) < STRIKES_OUT:
            return None
        learned = "; ".join(f"{s.summary}: {', '.join(s.learned) or 'failed'}" for s in against)
        names = ", ".join(dict.fromkeys(str(s.approach) for s in against))
        return (f"{len(against)} fixes of this approach failed ({names}): one more variation is refused. What they "
                f"showed: {learned}. Try a fundamentally different approach, or reopen this one and say why.")

    def allow(self, diagnosis: Diagnosis, fix: Fix | None) -> None:
        """Raise StrikeRefused where the fix may not be tried; None is no fix at all."""
        refusal = self.refusal(diagnosis, fix) if fix is not None else None
        if refusal is not None:
            raise StrikeRefused(refusal)

    def struck_out(self) -> tuple[Approach, ...]:
        """Approaches that have three strikes of their own."""
        counts: dict[Approach, int] = {}
        for entry in self._read():
            counts[entry.approach] = counts.get(entry.approach, 0) + 1 if isinstance(entry, Strike) else 0
        return tuple(a for a, n in counts.items() if n >= STRIKES_OUT)

    def count(self, strike: Strike) -> bool:
        """Add a strike, once: False where this key was counted before. Raises StateNotWritable."""
        return self._append(strike, unless=lambda e: isinstance(e, Strike) and e.key == strike.key)

    def reopen(self, approach: Approach, by: str, reason: str) -> None:
        """A person's decision that the approach may be tried again. Raises StateNotWritable."""
        self._append(Reopening(approach=approach, by=by, reason=reason), unless=lambda e: False)

    def _append(self, entry: Strike | Reopening, unless: Callable[[Strike | Reopening], bool]) -> bool:
        try:
            unlinked.append(self._lock_path, "")
            with self._lock.acquire(timeout=10):
                if any(unless(e) for e in self._read()):
                    return False
                append_line(self.path, (json.dumps(entry.to_json(), sort_keys=True) + "\n").encode())
        except LockTimeout as error:
            raise StateNotWritable(self.path, OSError(0, "another process holds the strike ledger")) from error
        except OSError as error:
            raise StateNotWritable(self.path, error) from error
        return True


def append_line(path: Path, line: bytes) -> None:
    """Append durably; a torn last line of an earlier crash is cut off first."""
    unlinked.append(path, "")
    descriptor = os.open(path, os.O_RDWR | os.O_CLOEXEC)
    try:
        content = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        end = content.rfind(b"\n") + 1
        os.ftruncate(descriptor, end)
        written = os.pwrite(descriptor, line, end)
        if written < len(line):
            os.ftruncate(descriptor, end)
            raise OSError(28, "no space left")
        sync(descriptor)
    finally:
        os.close(descriptor)
