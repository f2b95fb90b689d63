"""What must be so for a failure mode to be possible, and whether anything that was read shows it.

A loss that turns NaN may be an overflow of float16, if float16 is used. Where nothing in the log, the configuration or
the code speaks of float16, that mode has no worse evidence than others and still less ground: it stands behind them,
and says what would show its ground. Where all the code of the run was read (`closed_code.py`) and does not hold what
the mode cannot be without, it is no suspect on a hint. The table is `catalog/preconditions.toml`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path

from traindx_tools.catalog.shipped import shipped, table
from traindx_tools.closed_code import closed_text
from traindx_tools.domains import switched_on, texts_of
from traindx_tools.errors import CatalogError
from traindx_tools.finding import Bearing
from traindx_tools.on_logs.run import Run
from traindx_tools.weighing import Hypothesis

NOTHING_SHOWS = "nothing that was read shows"
"""How the sentence begins that says so."""
LIKELY = 0.40
"""Confidence from which evidence of its own stands for the precondition: `triage.SUSPECTED`."""


DATA_JUDGED = "data judged"
"""Stands among what is shown where all data files of the run were read and judged: what that would have found and did
not is no suspect on a hint."""


@dataclass(frozen=True)
class Precondition:
    """`words`: what must be so. `shown_by`: what would show it. `traces`: what speaks of it in a text.

    `unless`: what speaks against it; where it is given, the ground counts as there until a text says otherwise.
    """

    name: str
    words: str
    shown_by: str
    traces: re.Pattern[str]
    modes: frozenset[str]
    unless: re.Pattern[str] | None = None
    in_code: re.Pattern[str] | None = None
    """What code that is all the code of a run holds somewhere where it is so; None where its text may not say."""

    @property
    def excluded(self) -> str:
        """How it stands among what is shown that it is not so."""
        return f"not {self.name}"

    def excluded_by(self, code: str, told: Sequence[str]) -> bool:
        """Whether it cannot be so: neither all of the code nor what a log or a person tells speaks of it."""
        return self.in_code is not None and not self.in_code.search(code) and not any(map(self.traces.search, told))

    def shown_in(self, texts: Sequence[str]) -> bool:
        """Whether these texts speak of it, or, where only something else would exclude it, of nothing else."""
        spoken = any(self.traces.search(t) for t in texts)
        return spoken or (self.unless is not None and not any(self.unless.search(t) for t in texts))


@lru_cache(maxsize=1)
def preconditions() -> Mapping[str, Precondition]:
    """The precondition of each mode that has one, by the mode's id. Raises CatalogError where a mode has two."""
    found: dict[str, Precondition] = {}
    for name, row in table(shipped("preconditions.toml")).items():
        made = Precondition(name, row["words"], row["shown_by"], re.compile(row["traces"], re.IGNORECASE),
                            frozenset(row["modes"]),
                            re.compile(row["unless"], re.IGNORECASE) if "unless" in row else None,
                            re.compile(row["in_code"], re.IGNORECASE | re.DOTALL) if "in_code" in row else None)
        if twice := found.keys() & made.modes:
            raise CatalogError(f"preconditions.toml names {', '.join(sorted(twice))} twice")
        found |= dict.fromkeys(made.modes, made)
    return found


def shown_by(run: Run, code: Iterable[Path] = (), symptom: str = "", sources: Iterable[object] = ()) -> frozenset[str]:
    """The names of the preconditions of which something that was read speaks, and those that the code excludes.

    `sources`: the logs, whose beginnings are looked through as they stand: settings are printed in all forms.
    """
    files = tuple(code)
    told, texts = texts_of(run, files, symptom)
    rows = {p.name: p for p in preconditions().values()}
    every = (*told, *texts, *(a.format for a in run.artifacts), *(_beginning(s) for s in sources))
    found = {name for name, p in rows.items() if p.shown_in(every)}
    several = (run.world_size or 1) > 1 or any(s.rank is not None for s in run.series)
    whole = closed_text(files)
    gone = {p for p in rows.values() if whole is not None and p.excluded_by(whole, told)}
    if several:
        found.add("several-ranks")
        gone.discard(rows["several-ranks"])
    return frozenset((found - {p.name for p in gone}) | {p.excluded for p in gone})


def _beginning(source: object) -> str:
    with suppress(OSError):
        head = getattr(source, "head", b"")
        return switched_on(head.decode("utf-8", "replace")) if isinstance(head, bytes) else ""
    return ""


def grounded_first(ordered: Sequence[Hypothesis], shown: frozenset[str] | None) -> list[Hypothesis]:
    """The hypotheses with those behind whose precondition nothing shows; none of these is surer than one before it.

    What is likelier than `LIKELY`, or was seen itself in the run, shows its ground by its evidence. `shown`: None where
    nobody looked.
    """
    if shown is None:
        return list(ordered)
    if DATA_JUDGED in shown:
        ordered = [h for h in ordered if not _looked_for_in_data(h)]
    missing = {h.mode.id: _unshown(h, shown) for h in ordered}
    first = [h for h in ordered if not missing[h.mode.id]]
    most = min((h.confidence for h in first), default=1.0)
    behind = [replace(h, confidence=min(h.confidence, most), unshown=missing[h.mode.id]) for h in ordered
              if missing[h.mode.id]]
    return [*first, *behind]


def impossible(mode: str, shown: frozenset[str] | None) -> bool:
    """Whether the code of the run excludes what a failure mode cannot be without."""
    needed = preconditions().get(mode)
    return shown is not None and needed is not None and needed.excluded in shown


def _looked_for_in_data(found: Hypothesis) -> bool:
    """Whether the cause itself is something that data files show, and nothing but hints of a log speak for it."""
    in_files = any(e.role == "cause" and e.rule[0] == "D" for e in found.mode.speaks_for)
    return in_files and bool(found.speaks_for) and all(
        w.role == "hint" and w.finding.rule[0] == "L" for w in found.speaks_for)


def _unshown(found: Hypothesis, shown: frozenset[str]) -> str:
    needed = preconditions().get(found.mode.id)
    seen = any(w.bearing is Bearing.CAUSE or w.role == "cause" for w in found.speaks_for)
    if needed is None or needed.name in shown or found.confidence >= LIKELY or seen:
        return ""
    return f"{NOTHING_SHOWS} {needed.words}: {needed.shown_by} would"
