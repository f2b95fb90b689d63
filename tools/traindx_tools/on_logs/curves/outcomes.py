"""What became of a run: did the loss turn non-finite, rise for good, improve? Rules that weigh a cause ask here."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from traindx_tools.on_logs.curves.shapes import (
    Track,
    head_level,
    ratio,
    smooth,
    tail_count,
    tail_level,
    track,
)
from traindx_tools.on_logs.run import Floats, Run, Series

LOSSES = ("loss", "total", "mse", "nll", "mae", "rmse", "bce", "loss/recon", "chamfer", "perplexity")
"""Canonical names that can stand for the training loss, the best first. All of them fall when training works."""

RAMP = 10.0
"""A metric that rose this many times before it broke had a ramp (allocated with the rule ids)."""
TOWERING = 100.0
"""A spike this many times its neighbourhood that is also `RAMP` times an untrained model's loss is no batch."""


def is_reinforcement(run: Run) -> bool:
    """Whether rewards or advantages are logged: a policy loss hovers around zero and says nothing by its level."""
    return any(s.name.startswith(("reward", "advantage", "episode_reward", "return")) for s in run.series)


_ADVERSARIAL = frozenset({"generator_loss", "discriminator_loss", "loss/generator", "loss/discriminator", "loss/d",
                          "loss/g", "d_loss", "g_loss", "critic_loss"})


def is_adversarial(run: Run) -> bool:
    """Whether a generator or its critic is logged: their losses oscillate against each other by design."""
    return any(s.name in _ADVERSARIAL for s in run.series)


def main_loss(run: Run) -> Series | None:
    """The training loss that is judged: the run's own, else a metric that is a loss under another name.

    An evidence lower bound rises when training works, so it never stands for a loss here.
    """
    own = run.loss
    return own if own is not None and own.name != "elbo" else run.first(*LOSSES, group="train")


@dataclass(frozen=True)
class Rise:
    """A loss that rose and stayed up: levels at the start, at the best and at the end."""

    head: float
    best: float
    tail: float
    best_at: int
    """Index in the track of the lowest local median."""
    onset: int
    """Index in the track from which the loss stays clearly above its best."""
    ending: int = 0
    """Of how many last records `tail` is the median; 0: of the last tenth."""

    @property
    def factor(self) -> float:
        """tail / best where both are positive, else inf-free measure of the rise against the former gain."""
        if self.best > 0:
            return ratio(self.tail, self.best)
        return ratio(self.tail - self.best, max(abs(self.head - self.best), abs(self.best)))


def lasting_rise(t: Track) -> Rise | None:
    """The rise of a loss that stays up, or that is still climbing out of all it had been where the log ends."""
    return _stayed(t) or _climbs_out(t.y)


def _stayed(t: Track) -> Rise | None:
    """The rise of a loss that ends up clearly above its best, and stays there; None where it does not.

    Clear means: six times the record-to-record noise; half of what had been gained is lost again; and, for a loss that
    is positive throughout, 1.3 times the best. A loss that never improved must end at 1.5 times its start.
    One that grows by a factor again and again ends far above its last tenth: logarithms are compared.
    """
    n = len(t)
    if (blown := _blown_up(t.y)) is not None:
        return blown
    if n < 5:
        return None
    level, at = smooth(t)
    head, tail = head_level(t.y), tail_level(t.y)
    k = int(np.argmin(level))
    best = min(float(level[k]), head)
    best_at = int(at[k]) if float(level[k]) < head else 0
    rise, gain = tail - best, head - best
    last = t.y[-tail_count(n):]
    if rise <= 0 or best_at >= n - len(last) or rise < 6 * t.noise or not _stays_up(t.y, best, tail):
        return None
    if not _large_against(t.y, head, best, tail, gain, t.noise):
        return None
    clear = min(0.1 * rise, 0.5 * best) if tail >= RAMP * best > 0 else 0.1 * rise
    above = level > best + max(clear, 3 * t.noise)
    under = np.flatnonzero(~above)
    onset = int(at[min(len(at) - 1, int(under[-1]) + 1)]) if len(under) else 0
    return Rise(head, best, tail, best_at, onset)


def _blown_up(y: Floats) -> Rise | None:
    """A loss that is ten times all it had been from some record on, at least two of them: no scatter looks like that.

    Judged without a noise estimate, which a curve of a few records that explodes does not allow.
    """
    if len(y) < 3 or not bool((y > 0).all()):
        return None
    highest, lowest = np.maximum.accumulate(y), np.minimum.accumulate(y[::-1])[::-1]
    apart = np.flatnonzero(lowest[1:-1] >= RAMP * highest[:-2])
    if not len(apart):
        return None
    k = int(apart[0]) + 1
    best = int(np.argmin(y[:k]))
    return Rise(float(y[0]), float(y[best]), tail_level(y), best, k)


def _climbs_out(y: Floats) -> Rise | None:
    """A positive loss whose last records all rise, to ten times all it had been before them: three rises at least.

    A harder batch is one record high; what was stopped while it exploded has no level yet that it stays at.
    """
    falls = np.flatnonzero(np.diff(y) <= 0)
    k = int(falls[-1]) + 1 if len(falls) else 0
    if len(y) < 5 or len(y) - k < 4 or not bool((y > 0).all()) or float(y[-1]) < RAMP * float(y[: k + 1].max()):
        return None
    above = np.flatnonzero(y[k:] >= 1.5 * y[k])
    return Rise(float(y[0]), float(y[: k + 1].min()), float(np.median(y[-3:])), int(np.argmin(y[: k + 1])),
                k + int(above[0]), ending=3)


def _stays_up(y: Floats, best: float, tail: float) -> bool:
    """Whether the lowest of the last tenth has kept four tenths of the rise; ten times and more: in logarithms."""
    lowest = float(y[-tail_count(len(y)):].min())
    if lowest >= best + 0.4 * (tail - best):
        return True
    return 0 < best <= tail / RAMP and lowest > 0 and bool(np.log(lowest / best) >= 0.4 * np.log(tail / best))


def goes_on_after_change(run: Run, t: Track) -> bool:
    """Whether a loss that stands higher has been falling since the last change of the task that the log shows.

    A stage that is announced, or a setting in the records (sequence length, resolution, task) that takes another whole
    value. Harder data raise the loss by a step; what counts is that it falls from there: by a tenth, noise discounted.
    """
    cut = max([0, *changes(run, t)])
    after = t.y[cut:]
    if not cut or len(after) < 6:
        return False
    first, last = float(np.median(after[:3])), float(np.median(after[-3:]))
    return last <= 0.9 * first and first - last > 2 * t.noise


def changes(run: Run, t: Track) -> list[int]:
    """Records at which the task changes by what the log shows: a stage that it announces, a setting in the records."""
    lines = t.series.line[t.index]
    cuts = [int(np.searchsorted(lines, n.line)) for n in run.notes
            if n.kind == "change" and n.source == t.series.source]
    for s in run.series:
        if s.source == t.series.source and s.group == t.series.group and _is_setting(s):
            moved = np.flatnonzero(np.diff(s.values) != 0) + 1
            cuts += [int(np.searchsorted(lines, s.line[i])) for i in moved]
    return [c for c in cuts if 0 < c < len(t)]


def _is_setting(s: Series) -> bool:
    """Whether a series holds a few whole values, each for a long stretch, that only grow: a stage, a length, a size."""
    v = s.values
    if len(v) < 10 or not s.finite.all() or (v != np.round(v)).any() or (np.diff(v) < 0).any():
        return False
    return 2 <= len(np.unique(v)) <= max(2, len(v) // 8)


def _large_against(y: Floats, head: float, best: float, tail: float, gain: float, spread: float) -> bool:
    if bool((y >= 0).all()) and head > 0:
        improved = gain > max(0.1 * abs(head), 3 * spread)
        return tail >= 1.3 * best and tail - best >= 0.5 * gain if improved else tail >= 1.5 * head
    return gain > 20 * spread and tail - best >= 0.5 * gain


def improved(t: Track | None) -> float:
    """Which share of its starting level a positive loss has lost (0.4: it fell by 40 %), noise discounted.

    For a loss that is not positive throughout: 1.0 where it fell by more than ten times its noise, else 0.
    """
    if t is None or len(t) < 2:
        return 0.0
    head, tail = head_level(t.y), tail_level(t.y) if len(t) >= 6 else float(t.y[-1])
    fall = head - tail
    if fall <= 2 * t.noise:
        return 0.0
    return ratio(fall, head) if bool((t.y >= 0).all()) and head > 0 else float(fall > 10 * t.noise)


def growth_before_end(y: Floats) -> float:
    """How many times larger the last values of a positive curve are than what was usual before; 1 where it fell.

    Usual is the lower quartile of all values; the last are a third of them, three at most. Curves with values that are
    not positive give 1: a ratio says nothing about them.
    """
    if len(y) < 2 or not bool((y > 0).all()):
        return 1.0
    usual = float(np.quantile(y, 0.25)) if len(y) >= 4 else float(y.min())
    recent = y[-min(3, max(1, len(y) // 3)):]
    return max(1.0, ratio(float(recent.max()), usual))


def is_beyond_untrained(t: Track, peak: float, base: float) -> bool:
    """Whether a value is `RAMP` times worse than an untrained model's, and `TOWERING` times its neighbourhood.

    Untrained is the largest loss of the first tenth of the log. Losses that are not above 0 have no such scale.
    """
    untrained = float(t.y[: max(1, len(t) // 10)].max())
    return base > 0 and untrained > 0 and peak > RAMP * untrained and peak >= TOWERING * base


@dataclass(frozen=True)
class Trouble:
    """What went wrong with the loss, if anything did."""

    nonfinite: bool
    """The loss ends in values that are not finite."""
    rise: Rise | None
    growth: float
    """The largest ramp of loss or gradient norm before the end of its finite values."""

    @property
    def diverged(self) -> bool:
        """Whether the loss rose for good, or blew up with a ramp before it."""
        return self.rise is not None or (self.nonfinite and self.growth >= RAMP)


def trouble(run: Run) -> Trouble:
    """What became of the training loss."""
    series = main_loss(run)
    if series is None:
        return Trouble(False, None, 1.0)
    t = track(series)
    ends_broken = bool(not series.finite[-1])
    growth = growth_before_end(t.y) if t is not None and ends_broken else 1.0
    for norm in run.find("grad_norm", group="train"):
        if ends_broken and (g := track(norm)) is not None:
            growth = max(growth, growth_before_end(g.y))
    rise = lasting_rise(t) if t is not None and not ends_broken and not _level_says_nothing(run) else None
    return Trouble(ends_broken, rise, growth)


def _level_says_nothing(run: Run) -> bool:
    return is_reinforcement(run) or is_adversarial(run)
