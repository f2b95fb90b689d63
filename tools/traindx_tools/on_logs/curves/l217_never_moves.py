"""The training loss scatters around its first value over the whole run, without any trend.

Batches differ, so the printed loss moves all the time; what it lacks is a direction. The rule tests for one: no
monotone trend (Mann-Kendall), the halves on one level, and enough records that a fall of a tenth would have shown. A
loop in which nothing is updated looks like that: the optimizer holds other parameters than the model, the loss is cut
off from the weights, `step()` is never called. So does a model whose inputs carry nothing, whose learning rate is far
too small, or one that had converged before the log begins.

That last one is why a second metric must agree (a score that is low and does not rise) before this counts as a fault;
without one it is a remark. A loss that is flat and quiet is L201's; this rule speaks only where L201 says nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_logs.curves import l201_plateau
from traindx_tools.on_logs.curves.baselines import Curve, constant, curve, ending, fraction, ratio, tail, trend
from traindx_tools.on_logs.curves.l216_metric_exactly_constant import SCORES
from traindx_tools.on_logs.curves.learning import (
    continues_earlier_run,
    is_adversarial,
    is_reinforcement,
    listed,
    main_loss,
    number,
    percent,
    span,
)
from traindx_tools.on_logs.run import Floats, Run
from traindx_tools.rules import Rule, Threshold

RECORDS, TREND, UNSEEN, LOW_SCORE = 12, 2.0, 0.10, 0.6

RULE = Rule(
    id="L217",
    name="never-moves",
    title="The loss scatters around its first value without a trend",
    severity=Severity.HIGH,
    sees="the training loss over the whole log: its trend, the level of its halves, the scores beside it",
    matters="The steps change nothing: time is spent, nothing is learned.",
    alike=(
        "A converged model that is trained on: its scores are high.",
        "Fine-tuning from good weights: the loss starts near its end.",
        "Too few records for the scatter: a slow fall hides in it.",
    ),
    confirm=(
        "Compare one weight before and after optimizer.step(): (after - before).abs().max() must not be 0.",
        "Over-fit one batch for 200 steps: its loss must fall.",
    ),
    thresholds={
        "records": Threshold(RECORDS, "records", "fewer have no trend that could be seen"),
        "trend": Threshold(TREND, "Mann-Kendall z", "beyond, chance is unlikely"),
        "unseen": Threshold(UNSEEN, "relative fall", "a fall of this size would have shown (two standard errors)"),
        "low_score": Threshold(LOW_SCORE, "fraction", "a better score has learned something, now or before"),
    },
)


@dataclass(frozen=True)
class _Witness:
    learned: bool
    words: tuple[str, ...] = ()


def check(run: Run) -> Iterator[Finding]:
    """At most one finding, and none where L201 reports."""
    series = main_loss(run)
    if series is None or is_reinforcement(run) or is_adversarial(run) or series.name == "elbo":
        return
    c = curve(series)
    if len(c) < RECORDS or len(c) < len(series) or constant(c.values) or not _usual_rate(run):
        return
    unseen = _largest_hidden_fall(c.values)
    witness = _witness(run)
    if unseen is None or witness.learned or any(l201_plateau.check(run)):
        return
    if not witness.words and continues_earlier_run(run, series):
        return
    yield _finding(c, unseen, witness)


def _usual_rate(run: Run) -> bool:
    """Whether the learning rate, where it is logged, is one at which something would move."""
    rate = run.first("learning_rate")
    if rate is None or not len(curve(rate)):
        return True
    values = curve(rate).values
    return 1e-7 <= float(np.median(values)) <= 10.0


def _largest_hidden_fall(v: Floats) -> float | None:
    """The largest fall, as a share of the level, that two standard errors allow; None where there is a trend."""
    half = len(v) // 2
    first, second = v[:half], v[half:]
    level = abs(float(v.mean()))
    scatter = float(v.std())
    error = scatter * (1.0 / len(first) + 1.0 / len(second)) ** 0.5
    fall = float(first.mean() - second.mean())
    if level <= 0 or abs(trend(v)) >= TREND or abs(fall) > 2.0 * error:
        return None
    if abs(float(v[0]) - float(v[1:].mean())) > 3.0 * scatter or abs(_of_neighbours(v)) > 0.6:
        return None  # it fell at once, or it wanders: the scatter is no noise of batches
    hidden = ratio(abs(fall) + 2.0 * error, level)
    return hidden if hidden <= UNSEEN else None


def _of_neighbours(v: Floats) -> float:
    """The correlation of each value with the next; 0 where only the first or the last one differs from the others."""
    before, after = v[:-1], v[1:]
    return float(np.corrcoef(before, after)[0, 1]) if before.std() > 0 and after.std() > 0 else 0.0


def _witness(run: Run) -> _Witness:
    words = []
    for s in run.series:
        c = curve(s)
        if (not SCORES.match(s.name) and s.name != "r2") or len(c) < 3:
            continue
        values = fraction(c.values) if s.name != "r2" else c.values
        level = tail(values)
        if level >= LOW_SCORE or (trend(values) > TREND and level > 1.05 * float(values[0])):
            return _Witness(True)
        words.append(f"{s} stays at {ending(c)}")
    return _Witness(False, tuple(dict.fromkeys(words))[:3])


def _finding(c: Curve, unseen: float, witness: _Witness) -> Finding:
    start, end = c.where(0, len(c) - 1)
    v = c.values
    agrees = f"; {listed(witness.words)}" if witness.words else ""
    return RULE.finding(
        f"{c.series} scatters around its first value of {number(float(v[0]))} (mean {number(float(v.mean()))}) in all "
        f"{len(c)} records {span(c.series, start, end)} without a trend; a fall of {percent(unseen)} would have "
        f"shown{agrees}", c.series.at(start, end), c.series.source,
        bearing=Bearing.SIGN if witness.words else Bearing.COMPANION,
        severity=Severity.HIGH if witness.words else Severity.INFO,
        measured={"metric": c.series.name, "group": c.series.group, "first": float(v[0]), "level": float(v.mean()),
                  "trend_z": trend(v), "unseen": unseen, "records": len(c), "corroborated": bool(witness.words)})
