"""What is known of all lines of one shape."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from operator import itemgetter

from traindx_tools.on_logs.readers.line_plans import NOTHING, Plan
from traindx_tools.on_logs.readers.names import group_word
from traindx_tools.on_logs.readers.prefixes import Prefix
from traindx_tools.on_logs.readers.recorder import Columns, Key

LONGEST_HEADING = 60
"""Characters of a line that may head others."""


@dataclass
class Shape:
    """What is known of all lines that differ in digits only: the plan, and from where to where each number stands."""

    prefix: Prefix
    plan: Plan
    spans: list[tuple[int, int]]
    note: str | None
    indented: bool
    traceback: bool = False
    sectioned: bool = False
    """A line of a box without a value: it heads the names below it."""
    keys: list[Key] = field(default_factory=list)
    tokens: tuple[int, ...] = ()
    """The tokens that the plan needs: step, its total, epoch, its total, then the fields; -1 for none."""
    pick: Callable[[str], tuple[str, ...]] = field(default=tuple)
    """Cuts these out of a line."""
    factors: list[float] | None = None
    scales: tuple[float, ...] = ()
    """What the first four of `tokens` are times, empty where all are as they are written."""
    commas: bool = False
    divided: bool = False
    plain: bool = False
    """Neither a bar nor a line in which a metric stands twice."""
    silent: bool = False
    """Whether such lines say nothing at all."""
    unread: bool = False
    """Whether they hold numbers that are neither settings nor part of a warning."""
    ready: bool = False
    """Whether such lines are records and nothing else."""
    columns: dict[int | None, list[Columns | None]] = field(default_factory=dict)
    _grouped: dict[str, Shape] = field(default_factory=dict)
    """Where the values go, by rank."""
    writer: str = ""
    """The logger, or the mark at the head of the line, that says whose it is."""
    named: tuple[int, ...] = ()
    """Where digits stand that are part of names, and which (`named_digits.py`)."""
    digits: bytes = b""
    announces: str = ""
    """The group of which the indented lines below it tell: "Test Error:"."""
    fitting: bool = False
    """A line of Keras' `fit` or `evaluate`, which look the same."""

    def __post_init__(self) -> None:
        plan = self.plan
        counted = [t for c in (plan.step, plan.epoch) for t in ((c.token, c.total) if c else (None, None))]
        self.tokens = (*(-1 if t is None else t for t in counted), *(f.token for f in plan.fields))
        slices = [slice(0, 0) if t < 0 else slice(*self.spans[t]) for t in self.tokens]
        self.pick = itemgetter(*slices)
        scales = tuple(s for c in (plan.step, plan.epoch) for s in (c.scales if c else (1.0, 1.0)))
        self.scales = scales if any(s != 1.0 for s in scales) else ()
        self.keys = [f.key for f in plan.fields]
        self.ready = bool(plan.fields) and not self.note and not self.traceback
        self.silent = plan is NOTHING and not (
            self.note or self.traceback or self.sectioned or self.announces)
        self.factors = [f.factor for f in plan.fields] if any(f.factor != 1.0 for f in plan.fields) else None

    def in_group(self, group: str) -> Shape:
        """The same with its metrics as those of a group, which something else than the line itself says."""
        if group not in self._grouped:
            fields = tuple(replace(f, key=replace(f.key, group=group)) for f in self.plan.fields)
            self._grouped[group] = replace(self, plan=replace(self.plan, fields=fields), columns={}, _grouped={})
        return self._grouped[group]


_ANNOUNCES = re.compile(r"[\W_]*([A-Za-z]+)(?: (?:error|results?|set|metrics|scores?|performance|statistics|summary))?"
                        r"[:\W_]*$", re.IGNORECASE)


def announced_by(body: str) -> str:
    """The group that a line says that what is below it was measured on: "Test Error:", "== Validation =="; "" for any
    other."""
    found = _ANNOUNCES.match(body) if len(body) <= LONGEST_HEADING else None
    return group_word(found[1]) or "" if found is not None else ""


_WRITER = re.compile(r"\[([A-Za-z][A-Za-z_.-]{0,40})\](?=[ :])|([A-Za-z][A-Za-z_.-]{0,40}) *\| (?=\D)")


def writer_before(body: str) -> str:
    """Who writes a line, by a word in brackets or before a stroke: "[teacher] step 5", "student | step 5"."""
    found = _WRITER.match(body)
    return (found[1] or found[2]) if found else ""
