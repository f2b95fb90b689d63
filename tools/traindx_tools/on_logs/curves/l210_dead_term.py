"""A term of the loss is exactly zero, or exactly the same at every record.

A term that works varies from batch to batch. One that is 0.0 throughout is not computed, is multiplied by a weight
of zero, is masked away, or compares a tensor with itself; one that stays at the same value to the last digit does not
depend on the batch or on the parameters. The optimizer gets nothing from either.

`measured.kind`: "zero" (never anything else, over five records at least), "became-zero" (broke off from a value above
a tenth of its start; a hinge that is fulfilled runs out smoothly instead), "constant" (three digits or more, eight
records at least, while the rest of the loss moves).

Policy terms of reinforcement learning are left alone: with normalised advantages their value is zero by design while
their gradient is not (L602 looks at those).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, constant, curve, head
from traindx_tools.on_logs.curves.learning import AUXILIARY, is_reinforcement, number, place, span
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

ZERO_RECORDS = 5
CONSTANT_RECORDS = 8
ABRUPT = 0.1
DIGITS = 3

RULE = Rule(
    id="L210",
    name="dead-term",
    title="A term of the loss is exactly zero or never changes",
    severity=Severity.MEDIUM,
    sees="every term of the training loss",
    matters="Part of what was meant to be trained is not.",
    alike=(
        "A term whose weight is warmed up is zero at first only.",
        "A hinge or a clipped term that is fulfilled runs out to zero smoothly.",
        "A small term may be constant because the log rounds it.",
    ),
    confirm=(
        "Print the term before its weight, its requires_grad and its grad_fn.",
        "Change the parameters by hand and see whether the term changes.",
    ),
    thresholds={
        "zero_records": Threshold(ZERO_RECORDS, "records", "exactly 0.0: dead path, Systematic Debugging skill"),
        "constant_records": Threshold(CONSTANT_RECORDS, "records", "equal to the last of three digits: 1 in 10^21"),
        "abrupt": Threshold(ABRUPT, "of its start", "a term that still was this large did not run out"),
        "digits": Threshold(DIGITS, "significant digits", "fewer may be the log's rounding"),
    },
)

_POLICY = re.compile(r"policy|pg|actor|surrogate|ppo|entropy|clip")


def check(run: Run) -> Iterator[Finding]:
    """A finding for each dead term, eight at most."""
    reinforcement = is_reinforcement(run)
    others = [curve(s) for s in run.series if s.group == "train" and len(s) >= 2]
    moving = any(not constant(c.values) for c in others if "loss" in c.series.name and len(c) >= 2)
    found = 0
    for series in run.components():
        if reinforcement and _POLICY.search(series.name):
            continue
        kind = _kind(curve(series), moving)
        if kind is not None and moving and found < 8:
            found += 1
            yield _finding(kind, curve(series))


def _kind(c: Curve, moving: bool) -> str | None:
    v = c.values
    if len(v) < ZERO_RECORDS:
        return None
    if not v.any():
        return "zero"
    zeros = _trailing_zeros(v)
    if zeros >= max(ZERO_RECORDS, 0.3 * len(v)) and abs(float(v[len(v) - zeros - 1])) > ABRUPT * abs(head(v)) > 0:
        return "became-zero"
    if moving and len(v) >= CONSTANT_RECORDS and constant(v) and _digits(float(v[0])) >= DIGITS:
        return "constant"
    return None


def _trailing_zeros(values: np.ndarray[tuple[int, ...], np.dtype[np.float64]]) -> int:
    nonzero = np.flatnonzero(values)
    return len(values) - 1 - int(nonzero[-1]) if len(nonzero) else len(values)


def _digits(value: float) -> int:
    return len(f"{abs(value):.6e}".split("e")[0].replace(".", "").strip("0"))


def _finding(kind: str, c: Curve) -> Finding:
    s = c.series
    zeros = _trailing_zeros(c.values)
    start, end = c.where(len(c) - zeros if kind == "became-zero" else 0, len(c) - 1)
    statement = {
        "zero": f"{s.original} is exactly 0 at all {len(c)} records {span(s, start, end)}",
        "became-zero": f"{s.original} breaks off from {number(float(c.values[len(c) - zeros - 1]))} to exactly 0 "
                       f"{place(s, start)} and stays there for {zeros} records" if zeros < len(c) else "",
        "constant": f"{s.original} is {number(float(c.values[0]))} to the last digit at all {len(c)} records "
                    f"{span(s, start, end)}",
    }[kind]
    return RULE.finding(
        statement, s.at(start, end), s.source, bearing=Bearing.SIGN,
        severity=Severity.LOW if AUXILIARY.search(s.name) and kind != "became-zero" else Severity.MEDIUM,
        measured={"kind": kind, "term": s.name, "value": float(c.values[-1]), "records": len(c)},
    )
