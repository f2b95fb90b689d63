"""A finding: the one currency in which every instrument reports what it saw.

An instrument returns findings and decides nothing else; `triage` turns findings into ranked hypotheses.
"""

from __future__ import annotations

import html
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

Value = bool | int | float | str | None | tuple["Value", ...]
"""What `Finding.measured` may hold: plain values that survive JSON."""


class Severity(str, Enum):
    """How much harm it does if it is true. `INFO` is a remark: never a fault by itself."""

    CRITICAL = "critical"
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"
    INFO = "info"

    @property
    def rank(self) -> int:
        """4 for critical down to 0 for info."""
        return 4 - list(Severity).index(self)


class Bearing(str, Enum):
    """How near what was seen is to the cause. The author of a check says it."""

    CAUSE = "cause"
    """The cause itself."""
    SIGN = "sign"
    """It fits the cause; something else could explain it."""
    COMPANION = "companion"
    """It commonly goes along with the cause."""

    @property
    def cap(self) -> float:
        """Highest confidence that a hypothesis may claim on evidence that is as near as this."""
        return {"cause": 0.97, "sign": 0.85, "companion": 0.55}[self.value]


class Strength(str, Enum):
    """How a thing was seen. The machinery says it (see `Finding.strength`), no author of a check can."""

    RAN = "ran"
    """Measured in a run: its log, its files, a live process, a rank, an experiment."""
    DERIVED = "derived"
    """Read from the text of a program, and every premise follows from what the program does."""
    GUESSED = "guessed"
    """Read from a text, and a premise rests on a name or a default."""

    @property
    def cap(self) -> float:
        """Highest confidence that a hypothesis may claim on evidence of this strength."""
        return {"ran": 0.97, "derived": 0.85, "guessed": 0.55}[self.value]


BEFORE = {"direct": Bearing.CAUSE, "circumstantial": Bearing.SIGN, "pattern": Bearing.COMPANION}
"""What records of earlier versions call strength."""


@dataclass(frozen=True)
class Location:
    """Where it was seen: a file and line, a range of steps, a module path, a rank, or several of these.

    `line` is 1-based. `step` and `end_step` are optimizer steps (or epochs where `unit` says so).
    """

    file: str | None = None
    line: int | None = None
    end_line: int | None = None
    step: float | None = None
    end_step: float | None = None
    unit: str = "step"
    """What `step` counts: "step", "epoch" or "line" (where the log numbers nothing)."""
    module: str | None = None
    rank: int | None = None
    quote: str | None = None
    """The text at that place, bounded; it is data and never obeyed."""
    cell: int | None = None
    """Of a notebook: the code cell (the first is 1) in which `line` is counted."""
    printed: bool = False
    """Of a notebook: `line` is counted in what the cell printed below itself."""

    def __post_init__(self) -> None:
        if self.file is None and self.step is None and self.module is None and self.rank is None:
            raise ValueError("a finding without a place is a bug: give a file, a step, a module or a rank")

    @property
    def code(self) -> str | None:
        """`file.py:LINE` (`file.ipynb:cell 3:LINE`, of what it printed `file.ipynb:cell 3 output:LINE`), or None where
        no line is known."""
        return None if self.file is None or self.line is None else f"{self.file}{self.numbers}"

    @property
    def numbers(self) -> str:
        """What follows the file's name: `:LINE`, `:cell 3:LINE`, `:cell 3 output:LINE`; "" where no line is known."""
        if self.line is None:
            return ""
        cell = "" if self.cell is None else f":cell {self.cell}{' output' if self.printed else ''}"
        return f"{cell}:{self.line}"

    def __str__(self) -> str:
        parts = [self.code or self.file] if self.file else []
        if self.step is not None and self.unit != "line":
            span = f"{self.step:g}" if self.end_step in (None, self.step) else f"{self.step:g}-{self.end_step:g}"
            parts.append(f"{self.unit} {span}")
        if self.module is not None:
            parts.append(f"module {self.module}")
        if self.rank is not None:
            parts.append(f"rank {self.rank}")
        return ", ".join(str(p) for p in parts if p)


@dataclass(frozen=True)
class Patch:
    """A certain change to one file: the lines `line`..`end_line` (1-based, inclusive) become `replacement`.

    `original` is the text those lines held when they were read, so that a stale patch is noticed.
    An insertion before `line` has `end_line == line - 1` and an empty `original`.
    """

    file: str
    line: int
    end_line: int
    original: str
    replacement: str
    summary: str


SURE = 1e-6
"""Chance of a test by luck, all comparisons counted or not, below which luck is no explanation any more."""

_RULE = re.compile(r"[LCDWTJRSVX]\d{3}")


@dataclass(frozen=True, repr=False)
class Finding:
    """One thing that an instrument saw.

    `rule` is a letter for where it was seen (L logs, C code, D data, W weights, T torch, J jax, R ranks, S settings,
    V variables, X experiments) and three digits. `statement` is one sentence with the measured values in it. `source`
    names the artifact that was read.
    """

    rule: str
    title: str
    severity: Severity
    bearing: Bearing
    statement: str
    where: Location
    source: str
    measured: Mapping[str, Value] = field(default_factory=dict)
    patch: tuple[Patch, ...] = ()
    """Changes that would remove the fault, where place and change are certain; applied only after approval."""
    by_name: bool = False
    """Of a finding in code: whether it is gone when the program's own names are (see `code_audit/renaming.py`)."""

    def __post_init__(self) -> None:
        if not _RULE.fullmatch(self.rule):
            raise ValueError(f"rule is a letter of LCDWTJRSVX and three digits, got {self.rule!r}")
        if not self.statement.strip():
            raise ValueError(f"{self.rule}: a finding needs a statement")

    def __repr__(self) -> str:
        where = str(self.where)
        return f"<Finding {self.rule} {self.severity.value}: {self.statement}{f' ({where})' if where else ''}>"

    def _repr_html_(self) -> str:
        """For a notebook: the sentence, its place and name, and what was measured."""
        where = str(self.where)
        named = f"{where}, {self.severity.value}" if where else self.severity.value
        known = {k: v for k, v in self.measured.items() if v is not None and v != ()}
        measured = [f"  {k}: {v:.4g}" if isinstance(v, float) else f"  {k}: {v}" for k, v in known.items()]
        lines = [self.statement, f"{named}, {self.rule} {self.title}", *measured]
        return f'<pre style="white-space:pre-wrap">{html.escape(chr(10).join(lines))}</pre>'

    @property
    def strength(self) -> Strength:
        """How it was seen: text that holds without its names is derived, the rest of what text says is guessed."""
        if self.rule[0] != "C":
            return Strength.RAN
        return Strength.GUESSED if self.by_name or self.bearing is not Bearing.CAUSE else Strength.DERIVED

    @property
    def undone(self) -> float | None:
        """Of a test that undoes what it claims: the lower bound of the share of rows that agree only then.

        None where the finding is no such test, or its p-value leaves room for chance.
        """
        share, p = self.measured.get("undone"), self.measured.get("p")
        if self.bearing is not Bearing.CAUSE or not isinstance(share, float) or not isinstance(p, (int, float)):
            return None
        return share if p <= SURE and 0.0 < share <= 1.0 else None

    def to_json(self) -> dict[str, Any]:
        """A dict of plain JSON values; non-finite numbers become strings ("nan", "inf", "-inf")."""
        where = {k: _plain(v) for k, v in vars(self.where).items() if v is not None and v is not False}
        return {
            "rule": self.rule,
            "title": self.title,
            "severity": self.severity.value,
            "strength": self.strength.value,
            "bearing": self.bearing.value,
            "statement": self.statement,
            "measured": {k: _plain(v) for k, v in self.measured.items()},
            "where": where,
            "source": self.source,
            "patch": [vars(p).copy() for p in self.patch],
        }

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Finding:
        """The inverse of `to_json`. Raises ValueError, KeyError or TypeError on anything else."""
        measured = {str(k): _value(v) for k, v in data.get("measured", {}).items()}
        where = {k: _number(v) if k in ("step", "end_step") else v for k, v in data["where"].items()}
        return cls(
            rule=data["rule"],
            title=data["title"],
            severity=Severity(data["severity"]),
            bearing=BEFORE.get(data["strength"]) or Bearing(data["bearing"]),
            by_name=data["strength"] == Strength.GUESSED.value,
            statement=data["statement"],
            where=Location(**where),
            source=data["source"],
            measured=measured,
            patch=tuple(Patch(**p) for p in data.get("patch", ())),
        )


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return value


def _value(value: Any) -> Value:
    if isinstance(value, list):
        return tuple(_value(v) for v in value)
    number: Value = _number(value)
    return number


def _number(value: Any) -> Any:
    return float(value) if value in ("nan", "inf", "-inf") else value
