"""Targets stand otherwise to their inputs than the task asks.

Of sequences of tokens: the target of a place is the token so many places on. One place is next-token prediction.
`kind`: "shifted-twice" for two places and more, "backwards" for places before, "not-shifted" where the target is the
token itself: an autoencoder does so on purpose, and a causal model that sees the token learns to copy, so it is
reported as low. "in-input" where the target of a row is one column of its input, up to a factor; a toy problem may be
made so, and it is reported as low too.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import positions
from traindx_tools.rules import Rule, Threshold

MOSTLY, BATCHES, COLUMNS = 0.9, 3, 4

RULE = Rule(
    id="T717",
    name="target-position",
    title="Targets stand at other places of their inputs than they should",
    severity=Severity.HIGH,
    sees="the targets of the loss, place by place against the token ids, and against each column of the input",
    matters="the model learns another task: to skip a token, to copy one, or to read the answer",
    alike=("several heads that predict one, two and more tokens ahead", "autoencoders: the target is the input"),
    confirm=("print(input_ids[0, :8], target[0, :8])",),
    thresholds={"fits": Threshold(positions.FITS, "of the places", "one shift alone explains the targets")},
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """At most one finding of tokens, and one of columns."""
    yield from _shift(seen)
    yield from _column(seen)


def _shift(seen: ModelRows) -> Iterator[Finding]:
    total = sum(seen.shifts.values())
    shift, count = max(((s, n) for s, n in seen.shifts.items() if s is not None), key=lambda p: p[1], default=(1, 0))
    if count < max(BATCHES, MOSTLY * total) or shift == 1:
        return
    found = seen.shift[shift]
    kind = "not-shifted" if shift == 0 else "shifted-twice" if shift > 1 else "backwards"
    what = {"not-shifted": "the token at the same place", "shifted-twice": f"the token {shift} places on",
            "backwards": f"the token {-shift} places before"}[kind]
    yield RULE.finding(
        f"the target of each place is {what} in {found.fits:.1%} of {found.positions} places of a batch ({count} of "
        f"{total} batches)", seen.where, SOURCE,
        bearing=Bearing.SIGN if kind == "not-shifted" else Bearing.CAUSE,
        severity=Severity.LOW if kind == "not-shifted" else RULE.severity,
        measured={"kind": kind, "shift": shift, "fits": found.fits, "batches": count})


def _column(seen: ModelRows) -> Iterator[Finding]:
    rows = seen.trained_rows
    if rows is None or rows.x.shape[1] < COLUMNS or not np.isfinite(rows.label).any():
        return
    found = positions.column_of(rows.x, rows.label)
    if found is None:
        return
    column, factor = found
    where = f"column {column}" if rows.whole else f"the {column}th value that was looked at"
    scaled = "" if abs(factor - 1) < 1e-3 else f" (up to a factor of {factor:.4g} and a constant)"
    yield RULE.finding(
        f"the target of a row is {where} of its input{scaled} in all of {int(np.isfinite(rows.label).sum())} rows",
        seen.where, SOURCE, bearing=Bearing.SIGN,
        severity=Severity.LOW, measured={"kind": "in-input", "column": column, "factor": factor})
