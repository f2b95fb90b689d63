"""The setting that parts first from the run that works, as a finding of the run that does not.

A series that a program sets (the learning rate, a scale, a size) has no noise: where it is equal digit for digit in
both runs and then another, and loss or gradients part from there on, it went ahead of them, with the run that works as
the control. It joins the evidence as what goes ahead within one log does (L802).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from traindx_tools.against.metrics import MetricDifference, longest_by_name
from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.shapes import number, ratio
from traindx_tools.on_logs.events.onsets import SET
from traindx_tools.on_logs.events.rules.l802_before_onset import RULE
from traindx_tools.on_logs.run import Run


def parting_of(here: Run, metrics: Sequence[MetricDifference]) -> Finding | None:
    """`metrics`: the differences of both runs, those that part first in front. None where no setting parts first."""
    parted = [m for m in metrics if m.step is not None]
    first = next((m for m in parted if m.name.startswith(SET)), None)
    after = [m for m in parted if not m.name.startswith(SET)]
    if first is None or first.step is None or not after or not np.isfinite([first.here, first.there]).all():
        return None
    if any(m.unit != first.unit or m.step is None or m.step < first.step for m in after):
        return None
    series = longest_by_name(here)[first.name]
    at = int(np.argmin(np.abs(series.position - first.step))) if series.unit == first.unit else 0
    names = ", ".join(m.name for m in after[:3])
    begin = "from the first record on" if first.step == first.first else f"from {first.unit} {first.step:g} on"
    return RULE.finding(
        f"{first.name} is {number(first.here)} here and {number(first.there)} in the run that works, {begin}"
        f"{', equal before' if first.same_until is not None else ''}; {names} part{'s' if len(after) == 1 else ''} "
        f"{'there' if after[0].step == first.step else f'at {first.unit} {after[0].step:g}'} and not before",
        series.at(at), series.source, severity=Severity.MEDIUM,
        bearing=Bearing.COMPANION if first.step == first.first else Bearing.SIGN,  # runs set up apart differ in more
        measured={"metric": after[0].name, "lead": first.name, "is_set": True, "up": first.here > first.there,
                  "before": first.there, "after": first.here, "ratio": ratio(first.here, first.there), "against": True,
                  "good_records": at, "position": first.step})
