"""A run of rows of a table holds fresh draws of an initialiser, and the optimizer's moments say that it was trained.

Rows that had gradients as often as the others were moved as the others were. Where their norms scatter as draws do, far
from those of the others, and no direction holds more of them than of draws, they were drawn anew: a table that was
resized or cut into shards, a range that was reset and never written back.
Rows without a gradient have no second moments (W120), rows that were added later stand at the end (W106).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_weights.fresh_runs import NOWHERE, SOMEWHERE, Run, fresh_run, points_nowhere
from traindx_tools.on_weights.rules.w120_rows_without_gradient import MOST_BYTES, moments_of_tables
from traindx_tools.on_weights.seen import Seen
from traindx_tools.on_weights.statistics import Stats, measure
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W156",
    name="rows-drawn-anew",
    title="A run of rows of an embedding is at its initialisation although it was trained",
    severity=Severity.HIGH,
    sees="Norms of the rows of tables, and their second moments in the optimizer.",
    matters="These rows mean nothing: what training made of them is lost.",
    alike=("rare rows: scattered, and with small moments", "rows that were added at the end",
           "tables that are as they were drawn throughout", "rows on a sphere, whose norms are equal"),
    confirm=("compare these rows with the checkpoint before", "evaluate the rows of these ids alone"),
    thresholds={
        "run": Threshold(0.02, "share of the rows", "fewer may be special"),
        "alive": Threshold(0.2, "times the others' second moments", "at the median and the lowest tenth, at least"),
        "directions": Threshold(NOWHERE, "times the edge of Marchenko and Pastur", "of the run at most; of all other "
                                                                                  f"rows at least {SOMEWHERE}"),
        "level": Threshold(LEVEL, "probability", "that rows of such norms follow each other by chance"),
    },
)
_RUN, _ALIVE = 0.02, 0.2
_QUANTILES = (0.1, 0.5)


def check(seen: Seen) -> Iterator[Finding]:
    """Every table whose second moments can be told to be its own."""
    if not seen.main:
        return
    for stats, moment in moments_of_tables(seen):
        squares, width = stats.row_squares, stats.tensor.shape[1]
        bytes_read = max(moment.nbytes, stats.tensor.nbytes)
        if bytes_read > MOST_BYTES or stats.nan or stats.inf or len(squares) != stats.tensor.shape[0]:
            continue
        run = fresh_run(squares, width)
        if run is None or run.rows < _RUN * len(squares) or run.at + run.rows == len(squares) or (
                run.log_chance > math.log(LEVEL)):
            continue
        kept = measure(moment)
        alive = 0.0 if kept.nan or kept.inf else _alive(kept.row_squares, run)
        if alive >= _ALIVE and points_nowhere(np.asarray(stats.tensor.load(), np.float64), run):
            yield _finding(seen, stats, run, alive)


def _alive(moments: NDArray[np.float64], run: Run) -> float:
    """The least ratio of the run's second moments to those of the other rows, at their median and their lowest tenth.

    `moments`: squared norms of the rows of second moments, whose roots are of the size of one moment.
    """
    own = moments[run.at:run.at + run.rows]
    others = np.concatenate([moments[:run.at], moments[run.at + run.rows:]])
    here, usual = (np.sqrt(np.quantile(m, _QUANTILES)) for m in (own, others))
    return float((here / usual).min()) if (usual > 0).all() else 0.0


def _finding(seen: Seen, stats: Stats, run: Run, alive: float) -> Finding:
    last = run.at + run.rows - 1
    return RULE.finding(
        f"rows {run.at}..{last} of {stats.name} {list(stats.tensor.shape)} in {seen.path} are fresh draws (their norms "
        f"scatter as chance does, {run.scale:.3g} a value; the other rows {run.others:.3g}), although their second "
        f"moments in the optimizer are alive ({alive:.2g} times the others', median and lowest tenth): they were "
        "trained, and drawn anew or never written back",
        seen.where(stats.name), seen.path, bearing=Bearing.CAUSE,
        measured={"name": stats.name, "at": run.at, "rows": run.rows, "of": len(stats.row_squares), "kind": "drawn",
                  "scale": run.scale, "others": run.others, "alive": round(alive, 3)})
