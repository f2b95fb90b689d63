"""What of the findings of one look after another is worth a word: nothing that flickers, and nothing twice.

A log that grows is judged anew at each look, so a finding may come and go: the last line was half written, a curve had
too few values, a spike recovered. It is told when two looks in a row have it, between which something was written or
nothing was; that it has gone is told when three in a row do not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Literal

from traindx_tools.finding import Finding, Severity

SEEN, MISSED = 2, 3
"""Looks in a row from which on a finding counts as there, and as gone: a doubt is cheaper than a false alarm, and a
finding that was told must not be taken back for one odd look."""
LEAST = Severity.MEDIUM
"""The mildest severity that a person is called for."""
_WORDS = re.compile(r"[^\W\d][\w./@-]*")

Key = tuple[str, int, str | None, str | None, int | None, tuple[str, ...]]


@dataclass(frozen=True)
class News:
    """One thing to say: a finding that came, or one that was told and has gone."""

    kind: Literal["came", "gone"]
    finding: Finding


@dataclass
class _Known:
    finding: Finding
    seen: int = 0
    missed: int = 0
    told: bool = False
    gone: bool = False


@dataclass
class Hysteresis:
    """The findings of the looks so far. `take` gives what to say after one more look."""

    _known: dict[Key, _Known] = field(default_factory=dict)
    _earlier: frozenset[Key] = frozenset()
    """What was told of the file before it began anew and had not gone."""

    def take(self, findings: Iterable[Finding], names: Sequence[str] = (), run: int = 1, *,
             same_run: bool = False) -> list[News]:
        """What is new after a look. `names`: of the metrics that were read; `run`: the number of the run in the log;
        `same_run`: whether a log that began anew goes on where it ended, so that nothing is told again."""
        now = {key_of(f, names, run): f for f in findings if f.severity.rank >= LEAST.rank}
        for key, finding in now.items():
            known = self._known.setdefault(key, _Known(finding))
            known.finding, known.seen, known.missed = finding, known.seen + 1, 0
        for key, known in self._known.items():
            if key not in now:
                known.seen, known.missed = 0, known.missed + 1
        if same_run:
            for key, known in self._known.items():
                known.told = known.told or key in self._earlier
        return [*self._came(), *self._gone()]

    def begin_anew(self) -> None:
        """Forgets what was told: the file holds another run now."""
        self._earlier = frozenset(key for key, k in self._known.items() if k.told and not k.gone) or self._earlier
        self._known.clear()

    @property
    def told(self) -> tuple[Finding, ...]:
        """What was told and is still there."""
        return tuple(k.finding for k in self._known.values() if k.told and not k.gone)

    @property
    def waiting(self) -> tuple[Finding, ...]:
        """What the last look saw and too few looks before it to be told."""
        return tuple(k.finding for k in self._known.values() if k.seen and not k.told)

    def _came(self) -> Iterable[News]:
        ready = [k for k in self._known.values() if k.seen >= SEEN and not k.told]
        for known in sorted(ready, key=lambda k: -k.finding.severity.rank):
            known.told = True
            yield News("came", known.finding)

    def _gone(self) -> Iterable[News]:
        for known in self._known.values():
            if known.told and not known.gone and known.missed >= MISSED:
                known.gone = True
                yield News("gone", known.finding)


def key_of(finding: Finding, names: Sequence[str], run: int) -> Key:
    """What stays of a finding while the log grows: its rule, its place without steps and lines, and its metrics."""
    words = {w.strip(".") for w in _WORDS.findall(finding.statement)}
    about = tuple(sorted(words.intersection(names)))
    where = finding.where
    return finding.rule, run, where.file, where.module, where.rank, about
