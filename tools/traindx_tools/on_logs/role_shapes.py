"""What the course of a series says of what it is, where its name says nothing."""

from __future__ import annotations

import re

import numpy as np

from traindx_tools.on_logs.readers.names import words
from traindx_tools.on_logs.run import Floats, Series

ENOUGH, LARGEST_RATE, SMALLEST_RATE = 8, 0.2, 1e-9
_OTHER_SCHEDULES = frozenset({
    "temperature", "temp", "tau", "beta", "betas", "kl", "epsilon", "eps", "teacher", "forcing", "tf",
    "momentum", "mom", "dropout", "drop", "decay", "wd", "ema", "gamma", "lam", "lambda", "mask", "ratio",
    "progress", "frac", "fraction", "share", "coef", "coeff", "weight", "w", "prob", "p", "annealing", "anneal",
    "alpha", "sigma", "std", "noise", "pct", "percent", "percentage", "time", "mem", "memory", "clip",
    "threshold", "thresh", "sparsity", "acc", "accuracy", "f1", "augment", "augmentation", "aug",
})
"""Words of other quantities that follow a schedule, or grow without noise."""
_NO_LOSS = frozenset({
    "time", "sec", "secs", "seconds", "ms", "s", "eta", "speed", "rate", "mem", "memory", "gb", "mb",
    "throughput", "tok", "tokens", "samples", "acc", "accuracy", "score", "norm", "grad", "weight", "std",
    "var", "entropy", "temp", "temperature", "epsilon", "eps", "lr", "beta", "gamma", "sigma", "noise", "gap",
    "left", "remaining", "dur", "duration", "count", "num", "n", "skipped", "scale", "fid", "wer", "cer", "ppl",
    "perplexity", "rmse", "mae", "err", "error", "max", "min", "ratio", "util", "gpu", "cpu", "len", "length",
    "size",
})

_FUNCTION_OF = re.compile(r"[()|@%]")
"""Signs of a quantity that is computed from others, such as D(G(z)), |grad| or recall@5: no rate is written so."""


def is_small_and_smooth(v: Floats, largest: float) -> bool:
    """Whether values could be a learning rate: positive (0 allowed), at most `largest`, constant or without noise."""
    known = v[np.isfinite(v)]
    if not len(known) or float(known.min()) < 0 or not 0 < float(known.max()) <= largest:
        return False
    return len(known) < 5 or _is_smooth(known)


def _is_smooth(v: Floats) -> bool:
    """Whether a curve is computed rather than measured: nearly all second differences are small against its range.

    Jumps and corners are allowed in a tenth of the places, as schedules have them.
    """
    reach = float(np.ptp(v))
    if reach == 0:
        return True
    bends = np.abs(np.diff(v, 2)) / reach
    turns = np.sign(np.diff(v))
    changes = int((np.diff(turns[turns != 0]) != 0).sum())
    return float(np.quantile(bends, 0.8)) < 0.15 and changes <= max(2, len(v) // 6)


def moves_like_a_schedule(s: Series) -> bool:
    """Whether a series of an unknown name can only be the learning rate: small numbers of a computed curve."""
    v = s.values
    if len(v) < ENOUGH or not s.finite.all() or _OTHER_SCHEDULES.intersection(words(s.original)):
        return False
    if _FUNCTION_OF.search(s.original):
        return False
    high, low = float(v.max()), float(v[v > 0].min()) if (v > 0).any() else 0.0
    if (v < 0).any() or not SMALLEST_RATE <= low <= high <= LARGEST_RATE or len(np.unique(v)) < 0.5 * len(v):
        return False
    bends = np.abs(np.diff(v, 2)) / max(float(np.ptp(v)), 1e-300)
    return float(np.ptp(v)) > 0.1 * high and float(np.quantile(bends, 0.8)) < 0.04 and _is_smooth(v)


def falls_like_a_loss(s: Series) -> bool:
    """Whether a series of an unknown name falls like a loss: positive, noisy, clearly lower at its end."""
    v = s.values
    if len(v) < ENOUGH or not s.finite.all() or _NO_LOSS.intersection(words(s.original)) or (v <= 0).any():
        return False
    if bool((v == np.round(v)).all()):
        return False
    third = len(v) // 3
    head, tail = float(np.median(v[:third])), float(np.median(v[-third:]))
    ups = float((np.diff(v) > 0).mean())
    return tail < 0.8 * head and 0.1 <= ups <= 0.55 and float(v[-third:].max()) < float(v[:third].max())
