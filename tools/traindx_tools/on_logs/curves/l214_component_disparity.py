"""Some of the parallel tasks or sources learn, the others stay where they started.

Where several sources, tasks or heads are trained by one loss, each has a curve of its own. When one falls by half and
more and another ends where it began, the second gets no gradient, or a gradient that is overwritten: cleared between
the micro-batches of an accumulation window, detached, masked, or applied to other parameters.

Siblings are recognised by arithmetic, whatever they are called: metrics of the same records whose mean or sum is the
main loss at every record. Terms called "loss/<name>" (or accuracies called alike) count too when they start
within a factor of 2 of each other and none of them is a regulariser. `measured.arithmetic` says which was used.
`measured.learned_position` tells whether those that learn stand first or last in the record.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import combinations
from statistics import NormalDist

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves.baselines import Curve, curve, ending, head, median, noise, ratio, tail, trend
from traindx_tools.on_logs.curves.learning import (
    AUXILIARY,
    is_adversarial,
    is_reinforcement,
    listed,
    main_loss,
    number,
    span,
)
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.rules import Rule, Threshold

LEARNED = 0.5
STUCK = 0.1
SCALE = 2.0
IDENTITY = 0.005
RECORDS = 6
TREND = 2.0
"""Standard deviations of Kendall's S beyond which a course falls, among as many siblings as `FEW`."""
FEW = 8

RULE = Rule(
    id="L214",
    name="component-disparity",
    title="Some tasks or sources learn, the others stay where they started",
    severity=Severity.HIGH,
    sees="losses of parallel sources, tasks or heads in the same records",
    matters="Part of the data or of the tasks is paid for and not used.",
    alike=(
        "A source that cannot be learned (random labels) stays although its gradient arrives.",
        "A source with a small weight learns later, not never.",
        "Terms of different kinds (box, class, mask) fall at different speed.",
    ),
    confirm=(
        "Train on the stuck source alone for 100 steps: if it learns, its gradient is lost in the mixture.",
        "Print the gradient norm after each source's backward within one update: it must grow or change, not restart.",
    ),
    thresholds={
        "learned": Threshold(LEARNED, "relative fall", "half"),
        "stuck": Threshold(STUCK, "relative fall", "a tenth, and no trend"),
        "scale": Threshold(SCALE, "times", "starting levels of siblings that are not joined by arithmetic"),
        "identity": Threshold(IDENTITY, "relative", "mean or sum against the main loss, record by record"),
        "records": Threshold(RECORDS, "records", "fewer say nothing of a course"),
    },
)

_NO_SOURCE = re.compile(r"(?:^|[^a-z])(?:grad|lr|learning|memory|time|throughput|norm|scale|accuracy|acc|perplexity|"
                        r"epoch|seconds?|std|entropy|weight|kl|mfu|percent|size|count|steps?|tokens)(?:$|[^a-z])")


def check(run: Run) -> Iterator[Finding]:
    """At most one finding: for siblings joined by arithmetic, else for terms of the same scale."""
    if is_reinforcement(run) or is_adversarial(run):
        return
    loss = main_loss(run)
    siblings, mean = _parts_of(run, loss) if loss is not None else ([], False)
    finding = _disparity(siblings if mean else _same_scale(siblings), True) if siblings else None
    if finding is None:
        longest = {s.name: s for s in sorted(run.components(), key=len)}
        terms = [curve(s) for name, s in longest.items() if not AUXILIARY.search(name)]
        finding = _disparity(_same_scale([c for c in terms if len(c) >= RECORDS]), False)
    if finding is not None:
        yield finding


def _parts_of(run: Run, loss: Series) -> tuple[list[Curve], bool]:
    """The series of the loss's own records whose mean or sum is the loss, and whether it is the mean.

    All candidates are tried, then all but one, then all but two.
    """
    candidates = [s for s in run.series if s is not loss and s.group == loss.group and s.source == loss.source
                  and s.rank == loss.rank and len(s) == len(loss) >= RECORDS and not _NO_SOURCE.search(s.name)
                  and np.array_equal(s.line, loss.line) and s.finite.all() and np.abs(s.values).max() < 1e50]
    if not loss.finite.all() or not 2 <= len(candidates) <= 32 or np.abs(loss.values).max() >= 1e50:
        return [], False
    for left_out in range(min(3, len(candidates) - 1)):
        for chosen in combinations(candidates, len(candidates) - left_out):
            total = np.sum([s.values for s in chosen], axis=0)
            for mean in (True, False):
                if _equal(total / len(chosen) if mean else total, loss.values):
                    return [curve(s) for s in chosen], mean
    return [], False


def _equal(a: np.ndarray[tuple[int, ...], np.dtype[np.float64]], b: np.ndarray[tuple[int, ...], np.dtype[np.float64]],
           ) -> bool:
    return bool((np.abs(a - b) <= IDENTITY * np.abs(b) + 1e-12).all()) and bool(np.abs(b).max() > 0)


def _disparity(siblings: list[Curve], arithmetic: bool) -> Finding | None:
    if len(siblings) < 2 or any(c.values.min() < 0.0 for c in siblings):
        return None
    learned = [c for c in siblings if _fall(c) >= LEARNED and trend(c.values) < -_enough(len(siblings))]
    stuck = [c for c in siblings if _is_stuck(c)]
    if not learned or not stuck:
        return None
    order = [c in learned for c in siblings]
    position = "last" if order[-1] and not any(order[:-1]) else "first" if order[0] and not any(order[1:]) else "mixed"
    s = learned[0].series
    return RULE.finding(
        f"{listed(_course(c) for c in learned)} while {listed(_course(c) for c in stuck)}, "
        f"{span(s, *learned[0].where(0, len(learned[0]) - 1))}",
        s.at(*learned[0].where(0, len(learned[0]) - 1)), s.source, bearing=Bearing.SIGN,
        severity=Severity.HIGH if arithmetic else Severity.MEDIUM,
        measured={"learned": tuple(c.series.original for c in learned),
                  "stuck": tuple(c.series.original for c in stuck), "learned_count": len(learned),
                  "stuck_count": len(stuck), "parts": len(siblings),
                  "learned_position": position, "arithmetic": arithmetic},
    )


def _enough(siblings: int) -> float:
    """`TREND` for so many siblings: of twenty thousand without any course some fall by chance (Bonferroni)."""
    return -NormalDist().inv_cdf(NormalDist().cdf(-TREND) * min(1.0, FEW / siblings))


def _same_scale(curves: list[Curve]) -> list[Curve]:
    """Those that start within a factor of `SCALE` of the median start."""
    starts = np.array([_start(c) for c in curves])
    usual = median(starts)
    return [c for c, start in zip(curves, starts, strict=True) if usual > 0 and usual / SCALE <= start <= usual * SCALE]


def _start(c: Curve) -> float:
    """The level at the start; the first value alone of a short log, where a tenth of it is one record anyway."""
    return max(head(c.values), float(c.values[0]))


def _fall(c: Curve) -> float:
    return ratio(_start(c) - tail(c.values), abs(_start(c)))


def _is_stuck(c: Curve) -> bool:
    level = median(c.values)
    half = len(c) // 2
    fall = ratio(median(c.values[:half]) - median(c.values[half:]), abs(median(c.values[:half])))
    slow = _fall(c) <= 2 * STUCK and (fall <= STUCK / 2 or trend(c.values) > -TREND)
    return level > 0 and fall <= STUCK and slow and noise(c.values) < 0.5 * level


def _course(c: Curve) -> str:
    return f"{c.series.original} goes from {number(float(c.values[0]))} to {ending(c)}"
