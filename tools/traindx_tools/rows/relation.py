"""How evaluated inputs relate to trained ones: alike, or one made from the other by a transform.

Two sets of inputs of one origin have the same mean and spread in each feature, up to what batches differ by. A
transform that one of them lacks leaves a relation that chance does not make: one factor for the spreads of all
features, features in another order, token ids that are moved by a constant. Where the numbers differ without such a
relation it is said that they differ, and no more: an evaluation on another domain looks so too.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from traindx_tools.rows.profile import Floats, Spread

Flags = NDArray[np.bool_]

SHIFT, RATIO = 1.0, 2.0
"""Standard deviations of a feature's mean, and times of its spread, below which nothing is said: a harder set or a
stronger augmentation makes as much."""
FACTOR, EXACT = 4.0, 0.25
"""Times of all spreads from which a common factor is a transform, and the logarithm by which features may stray."""
BATCHES = 2
NOISE = 6.0
"""Times of what batches differ by, that a mean must be away."""
LUCK = 0.001
"""Chance, over all features that vary in training, below which one that does not in evaluation is no luck: rare
features (a border pixel, a rare word) are absent from many a held-out part."""
ALIKE = 0.25
"""Share by which the variances that were added to features may differ beyond sampling."""
FEWEST_FEATURES = 3
FEWEST_IDS = 5.0
"""Ids in use below which their frequencies say nothing of a vocabulary."""
LOST_IDS = 0.1
"""Of the fit (cosine) that training batches have with each other: what evaluated batches must lack of it."""
MOVES = 8
"""Numbers by which ids are tried to be moved."""


@dataclass(frozen=True)
class Relation:
    """`kind`: "scaled", "standardised", "shifted", "permuted", "ids-moved", "other-ids", "constant-features",
    "noise-added", "differs". `text`: how, in numbers, as a clause behind "evaluation inputs"."""

    kind: str
    text: str
    measured: dict[str, float | str | int] = field(default_factory=dict)


def relation(trained: Spread, evaluated: Spread) -> Relation | None:
    """The strongest relation, None where they are alike or too little was seen."""
    if trained.batches < BATCHES or evaluated.batches < 1:
        return None
    if trained.ids.size and evaluated.ids.size:
        return _of_ids(trained, evaluated)
    if trained.mean.shape != evaluated.mean.shape or not trained.mean.size:
        return None
    return _of_numbers(trained, evaluated)


def _of_numbers(t: Spread, e: Spread) -> Relation | None:
    varies = t.std > 1e-6 * max(1e-12, float(np.abs(t.mean).max()), float(t.std.max()))
    still = varies & (e.std <= 1e-6 * t.std)
    dead = still & (_by_chance(t, e) * max(1, int(varies.sum())) < LUCK)
    if dead.any() and varies.sum() > dead.sum() and _noise_between(e, t) is None:  # an augmentation adds noise to all
        return _constant(t, e, dead)
    both = varies & (e.std > 0)
    if not both.any():
        return None
    log = np.log(e.std[both] / t.std[both])
    away = (e.mean[both] - t.mean[both]) / t.std[both]
    noise = NOISE * (t.between[both] + e.between[both]) / t.std[both] / np.sqrt(max(1, min(t.batches, e.batches)))
    shifted = np.abs(away) > np.maximum(SHIFT, noise)
    typical = float(np.median(log))
    if (found := _permuted(t, e, both)) is not None:
        return found
    if abs(typical) >= np.log(FACTOR) and np.abs(log).min() >= 0.5 * np.log(FACTOR):
        return _scaled(t, e, typical, bool(np.abs(log - typical).max() <= EXACT))
    if _standard(t, both) != _standard(e, both) and shifted.mean() > 0.5 and both.sum() >= FEWEST_FEATURES:
        return _standardised(t, e, both)
    if not shifted.any() and (found := _noised(t, e)) is not None:
        return found
    if shifted.any() or abs(typical) >= np.log(RATIO):
        return _differs(away, shifted, np.flatnonzero(both), float(np.exp(typical)))
    return None


def _by_chance(t: Spread, e: Spread) -> Floats:
    """The chance, feature by feature, that the evaluated rows all hold their one value in a random split.

    Of T trained and N evaluated rows in random order the K that hold another value all fall among the trained ones with
    (T/(T+N))^K at most (hypergeometric). K is not counted; two things bound it from below. Rows with mean m and
    standard deviation s differ from a value c in a share of (m-c)^2/((m-c)^2+s^2) at least (Cauchy and Schwarz), and
    where a share v of batches of n rows is not the same throughout, about 1-(1-v)^(1/n) of the rows differ, v shrunk
    by half a batch since no finite number of batches shows that all do.
    """
    away = (t.mean - e.mean) ** 2
    share = away / np.maximum(away + t.std**2, 1e-300)
    if t.varied.shape == share.shape:
        seen = np.minimum(t.varied, 1 - 0.5 / t.batches)
        share = np.maximum(share, 1 - (1 - seen) ** (t.batches / max(t.rows, t.batches)))
    return np.asarray((t.rows / (t.rows + e.rows)) ** (share * t.rows), np.float64)


def _differs(away: Floats, shifted: Flags, features: NDArray[np.int64], ratio: float) -> Relation:
    k = int(np.argmax(np.abs(away)))
    level = (f"a mean {abs(away[k]):.3g} standard deviations {'above' if away[k] > 0 else 'below'} that of training in "
             f"feature {features[k]} ({int(shifted.sum())} of {len(features)} features are that far), and ")
    return Relation("differs", f"have {level if shifted.any() else ''}{ratio:.3g} times the spread of training",
                    {"shift": float(away[k]), "ratio": ratio, "features": int(shifted.sum())})


def _constant(t: Spread, e: Spread, dead: Flags) -> Relation:
    which = np.flatnonzero(dead)
    k = int(which[0])
    return Relation(
        "constant-features",
        f"are constant in {len(which)} of {len(t.mean)} features that vary in training (feature {k} is {e.mean[k]:.4g} "
        f"throughout; in training {t.mean[k]:.4g} with a standard deviation of {t.std[k]:.4g})",
        {"features": len(which), "feature": k})


def _noised(t: Spread, e: Spread) -> Relation | None:
    """The same means and, in every feature alike, more variance: noise that was added to what is evaluated alone."""
    noise = _noise_between(t, e)
    ratio = float(np.median(e.std) / max(1e-12, float(np.median(t.std))))
    if noise is None or ratio < RATIO:
        return None
    return Relation(
        "noise-added",
        f"have the means of training and {ratio:.3g} times its spread (in the median of {len(t.mean)} features): in "
        f"every feature as if noise of standard deviation {noise:.3g} had been added in evaluation alone",
        {"ratio": ratio, "noise": noise, "features": len(t.mean)})


def _noise_between(t: Spread, e: Spread) -> float | None:
    """The standard deviation of what `e` has beside `t` in every feature alike; None where there is no such.

    A variance from n rows of a distribution with the fourth moment of a normal one is off by sqrt(2/n) of itself.
    """
    added = e.std**2 - t.std**2
    level = float(np.median(added))
    error = NOISE * (t.std**2 * np.sqrt(2 / max(1, t.rows)) + e.std**2 * np.sqrt(2 / max(1, e.rows)))
    if len(added) < FEWEST_FEATURES or level <= float(np.median(error)):
        return None
    return None if (np.abs(added - level) > error + ALIKE * level).any() else float(np.sqrt(level))


def _scaled(t: Spread, e: Spread, log: float, exact: bool) -> Relation:
    ratio = float(np.exp(log))
    how = f"x{ratio:.4g}" if ratio > 1 else f"/{1 / ratio:.4g}"
    own_std, own_mean, std, mean = (float(np.median(v)) for v in (e.std, e.mean, t.std, t.mean))
    return Relation(
        "scaled",
        f"are scaled otherwise: {how} in {'every feature alike' if exact else 'the median feature'} (standard "
        f"deviation {own_std:.4g} against {std:.4g} in training, mean {own_mean:.4g} against {mean:.4g}, values from "
        f"{e.low:.4g} to {e.high:.4g} against {t.low:.4g} to {t.high:.4g})", {"ratio": ratio, "exact": int(exact)})


def _standard(s: Spread, which: Flags) -> bool:
    """Whether features have mean 0 and standard deviation 1, as a scaler leaves them."""
    return bool((np.abs(s.mean[which]) < 0.25).all() and (np.abs(np.log(s.std[which])) < 0.25).all())


def _standardised(t: Spread, e: Spread, which: Flags) -> Relation:
    one, other = ("training", e) if _standard(t, which) else ("evaluation", t)
    mean, std = other.mean[which], other.std[which]
    return Relation(
        "standardised",
        f"are standardised otherwise: in {one} each of {int(which.sum())} features has mean 0 and standard deviation "
        f"1, in the other the means lie between {mean.min():.4g} and {mean.max():.4g} and the deviations between "
        f"{std.min():.4g} and {std.max():.4g}", {"standard": one, "features": int(which.sum())})


def _permuted(t: Spread, e: Spread, both: Flags) -> Relation | None:
    """Features in another order: each evaluated one is near another trained one and, as they stand, they are not."""
    if both.sum() < FEWEST_FEATURES or not both.all():
        return None
    scale = float(np.median(t.std))
    apart = np.abs(e.mean[:, None] - t.mean[None]) / scale + np.abs(np.log(e.std[:, None] / t.std[None]))
    own, places = np.diag(apart), np.arange(len(apart))
    strays = 0.1 + 3 * float(np.median((t.between + e.between) / scale)) / np.sqrt(min(t.batches, e.batches))
    for order in (places[::-1], apart.argmin(1)):
        moved, error = order != places, apart[places, order]
        if (len(set(order.tolist())) == len(order) and moved.sum() >= 2 and error.mean() < strays
                and error.max() < 3 * strays and own[moved].mean() > 6 * max(strays / 2, float(error.mean()))):
            return _order_of(order, error, own, moved)
    return None


def _order_of(order: NDArray[np.int64], error: Floats, own: Floats, moved: Flags) -> Relation:
    shown = ", ".join(map(str, order[:6].tolist())) + (", ..." if len(order) > 6 else "")
    how = "in reverse order" if (order == np.arange(len(order))[::-1]).all() else f"in the order {shown} of training"
    return Relation(
        "permuted",
        f"have their {len(order)} features {how}: mean and spread of each fit another one within "
        f"{float(error.max()):.2g}, and in place they are {float(own[moved].mean()):.2g} away in the mean",
        {"features": len(order), "moved": int(moved.sum())})


def _of_ids(t: Spread, e: Spread) -> Relation | None:
    """Token ids: moved by a constant, or hardly any in common.

    Roots of the frequencies without the two largest of each: masks, padding and the like are as frequent as they are
    for reasons of their own, and a relation must hold for many ids.
    """
    mine, theirs = _roots(t.ids.mean(0)), _roots(e.ids.mean(0))
    if min(_effective(mine), _effective(theirs)) < FEWEST_IDS:
        return None
    usual = float(np.median([_cosine(_roots(row), mine) for row in t.ids]))
    now = _cosine(theirs, mine)
    lost = 1.0 - now / usual if usual > 0.6 else 0.0
    if lost < LOST_IDS:
        return None
    best = max((k for k in range(-MOVES, MOVES + 1) if k), key=lambda k: _cosine(_moved(theirs, -k), mine))
    fits = _cosine(_moved(theirs, -best), mine)
    if 1.0 - fits / usual <= lost / 5:
        return Relation(
            "ids-moved",
            f"have token ids that are moved by {best:+d}: their frequencies fit those of training with {fits:.2f} "
            f"(cosine) after moving them back, and with {now:.2f} as they are",
            {"moved": best, "fits": fits, "now": now})
    return None if lost < 0.5 else Relation(
        "other-ids",
        f"have other token ids: their frequencies fit those of training with {now:.2f} (cosine), where training "
        f"batches fit each other with {usual:.2f}", {"now": now, "usual": usual})


def _roots(shares: Floats) -> Floats:
    out = np.sqrt(shares)
    out[np.argsort(shares)[-2:]] = 0.0
    return out


def _effective(roots: Floats) -> float:
    """How many ids there are, the rare ones counted in part (inverse participation of the frequencies)."""
    shares = roots**2
    return float(shares.sum() ** 2 / max(1e-12, float((shares**2).sum())))


def _moved(counts: Floats, by: int) -> Floats:
    out = np.zeros_like(counts)
    if by >= 0:
        out[by:] = counts[:len(counts) - by]
    else:
        out[:by] = counts[-by:]
    return out


def _cosine(a: Floats, b: Floats) -> float:
    return float(a @ b / max(1e-12, float(np.sqrt((a @ a) * (b @ b)))))
