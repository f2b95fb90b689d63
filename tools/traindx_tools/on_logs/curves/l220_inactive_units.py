"""The share of active units that the log prints is zero, or that of dead ones is all.

Scripts that watch their activations print how many units are above zero. Where that is none, in every record of the
second half, no input reaches what lies above and no gradient what lies below: the units are dead.
The cause lies before: a bias far below zero, an update that was far too large, inputs of one sign.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import curve, last_part
from traindx_tools.on_logs.curves.constants import key_with_underscores
from traindx_tools.on_logs.curves.learning import number, span
from traindx_tools.on_logs.run import Run
from traindx_tools.rules import Rule, Threshold

NONE, ALL, ENOUGH = 0.005, 0.99, 4

RULE = Rule(
    id="L220",
    name="inactive-units",
    title="No unit of a layer is active",
    severity=Severity.HIGH,
    sees="Shares of active or dead units that the log prints.",
    matters="A layer without active units passes neither inputs nor gradients: it never recovers by itself.",
    alike=("Codes of a codebook and experts: L601 and the router's balance.",
           "Sparse layers that are meant: a few per cent stay active."),
    confirm=("Count units that are zero for a whole batch after each activation.",),
    thresholds={
        "none": Threshold(NONE, "share of active units", "none, as printed with two decimals"),
        "all": Threshold(ALL, "share of dead units", "published tools call a layer dead at 50 % already"),
    },
)

_ACTIVE = re.compile(r"(?:^|_)(?:active|alive|nonzero|non_zero)_(?:frac\w*|share|units?|ratio|pct|neurons?)$|"
                     r"(?:^|_)(?:frac\w*|share|ratio|pct)_(?:active|alive|nonzero|non_zero)$|"
                     r"^(?:relu|act\w*|units?|neurons?)_(?:active|alive)$")
_DEAD = re.compile(r"(?:^|_)(?:dead|inactive|dying|zero)_(?:frac\w*|share|ratio|pct|relus?|units?|neurons?)$|"
                   r"(?:^|_)(?:frac\w*|share|ratio|pct)_(?:dead|inactive|zeros?)$|^(?:relu|units?|neurons?)_dead$")


def check(run: Run) -> Iterator[Finding]:
    """At most one finding."""
    for s in run.series:
        name = key_with_underscores(s.original)
        c = curve(s)
        if len(c) < ENOUGH or len(c) < len(s) or not (_ACTIVE.search(name) or _DEAD.search(name)):
            continue
        last = last_part(c.values, 0.5)
        highest = 100.0 if float(c.values.max()) > 1.5 else 1.0
        active = _ACTIVE.search(name) is not None
        silent = float(last.max()) <= NONE * highest if active else ALL * highest <= float(last.min()) and (
            float(last.max()) <= highest)
        if silent:
            start, end = c.where(len(c) - len(last), len(c) - 1)
            yield RULE.finding(
                f"{s.original} is {number(float(last[-1]))} {span(s, start, end)}: no unit is active", s.at(start, end),
                s.source, bearing=Bearing.SIGN,
                measured={"metric": s.original, "level": float(last[-1]), "records": len(last),
                          "from_start": bool(c.values[0] == last[-1])})
            return
