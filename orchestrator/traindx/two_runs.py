"""The curves of two runs, kept small, and the picture of both: what a fix did to the metric of the symptom.

The picture is made when a fix was verified, from the runs that were compared: the files of the workspace hold the new
run by then, beside what is left of the old one.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from traindx_tools.on_logs.run import Run
    from traindx_tools.plots.before_after import Line

POINTS = 300
"""Of one kept curve: more are not told apart in a picture of 1,500 px with a few panels."""
MOST = 16
"""Curves of one run that are kept, those of most records first."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Curve:
    """`at` and `values` of equal length; None is a value that is not finite. `unit`: "step", "epoch" or "line"."""

    at: tuple[float, ...]
    values: tuple[float | None, ...]
    unit: str = "step"

    def to_json(self) -> dict[str, Any]:
        return {"at": list(self.at), "values": list(self.values), "unit": self.unit}

    @classmethod
    def from_json(cls, data: Mapping[str, Any]) -> Curve:
        """The inverse of `to_json`."""
        return cls(tuple(data["at"]), tuple(data["values"]), str(data["unit"]))


def curves_of(run: Run) -> dict[str, Curve]:
    """The curves of a run by the name of each series, thinned so that every spike stays."""
    longest = sorted((s for s in run.series if len(s)), key=len, reverse=True)
    return {str(s): _curve(s.position, s.values, s.unit) for s in longest[:MOST]}


def _curve(at: np.ndarray, values: np.ndarray, unit: str) -> Curve:
    """Spikes and the ends of what is not finite stay: a gap is thinned apart from the rest."""
    from traindx_tools.plots.decimate import decimate

    known = np.isfinite(values)
    kept = np.isin(np.arange(len(at)), _edges(~known))
    x, _ = decimate(np.arange(len(at), dtype=np.float64), np.where(known, values, np.nan), POINTS)
    kept[x.astype(np.int64)] = True
    return Curve(tuple(float(f"{a:.8g}") for a in at[kept]),
                 tuple(float(f"{v:.6g}") if np.isfinite(v) else None for v in values[kept]), unit)


def _edges(bad: np.ndarray) -> np.ndarray:
    """The first and the last of each stretch, at most POINTS of them."""
    change = np.flatnonzero(np.diff(np.concatenate([[0], bad.astype(np.int8), [0]])))
    return np.unique(np.concatenate([change[::2], change[1::2] - 1])[:POINTS])


def draw(before: Mapping[str, Curve], after: Mapping[str, Curve], names: Sequence[str], out: Path) -> Path | None:
    """The metrics `names` of both runs in one picture; None where neither has one, or where it cannot be drawn."""
    from traindx_tools.plots.before_after import Pair, plot_before_after
    from traindx_tools.plots.picture import NARROW, NARROW_INCHES, drawn

    pairs = [Pair(n, _line(before.get(n)), _line(after.get(n))) for n in names]
    try:
        drawn(lambda: plot_before_after(pairs, out.with_suffix(NARROW), "Before and after", NARROW_INCHES))
        return drawn(lambda: plot_before_after(pairs, out, "The run before the change and with it"))
    except OSError as error:  # a picture is for a person's eyes: the verification stands without it
        _log.warning("the picture of both runs could not be written: %s", error)
        return None


def _line(curve: Curve | None) -> Line | None:
    from traindx_tools.plots.before_after import Line

    if curve is None:
        return None
    values = np.array([np.nan if v is None else v for v in curve.values], dtype=np.float64)
    return Line(np.array(curve.at, dtype=np.float64), values, curve.unit)
