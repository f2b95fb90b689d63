"""The channels of one shard are in another order than those of its siblings, although level and scale are alike.

Two leads of a recording, blue for red. Each channel is described row by row by its quantiles, its autocorrelation, its
spectrum and how it goes along with the others. The order under which the shard fits its siblings best is found by
linear assignment; it counts where nearly every row fits better under it, while nearly every row of each sibling fits
better as it is.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.channels import FEWEST, Channels, channels_of, standard
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.rules import d126_columns_exchanged
from traindx_tools.on_data.significance import LEVEL, paired_tail, share_bound
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHARE = 0.8
FIT = 2.0
APART = 4.0
LEFT = 10.0
MOST = 25.0
"""Squared spreads that one feature of one row counts at most: one wild value must not decide."""

RULE = Rule(
    id="D136",
    name="channels-exchanged",
    title="The channels of one shard are in another order",
    severity=Severity.HIGH,
    sees="quantiles, autocorrelation, spectrum and correlations of each channel, row by row, by shard",
    matters="The model reads one channel as another: in a part of the training data, or where it is judged.",
    alike=(
        "Channels that are alike anyway: no order fits better.",
        "Another device: its channels are like none of the others in any order.",
    ),
    confirm=("Plot the named channels of a row of the shard beside those of a sibling.",
             "Put them in the order of the siblings in a copy, and compare the loss on that shard."),
    thresholds={
        "share": Threshold(SHARE, "share of rows", "that fit better in the other order; of each sibling, as they are"),
        "fit": Threshold(FIT, "times", "the worst sibling's distance to the others that is left in the other order"),
        "apart": Threshold(APART, "times", "that distance, between the channels: files may differ by less"),
        "left": Threshold(LEFT, "times", "what the other order leaves, between channels, where siblings differ too"),
        "rows": Threshold(FEWEST, "rows", "of a shard; of a table, stretches of 128 rows"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all shards, fields and orders"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each shard and field whose channels are in another order."""
    found = [f for data in view.sets for g in _groups([c for s in data.shards for c in channels_of(data, s)])
             for f in _of_group(g, view.comparisons)]
    told = {f.source for f in d126_columns_exchanged.check(view)} if found else set()
    yield from (f for f in found if f.source not in told)


def _groups(every: Sequence[Channels]) -> list[list[Channels]]:
    """Those of one field that were described alike: buckets of other lengths have other spectra."""
    by: dict[tuple[object, ...], list[Channels]] = {}
    for channels in every:
        by.setdefault((channels.field, channels.names, channels.features.shape[1:]), []).append(channels)
    return [g for g in by.values() if len(g) >= 3]


def _of_group(group: Sequence[Channels], comparisons: int) -> Iterator[Finding]:
    found = []
    for at, mine in enumerate(group):
        others = [g for k, g in enumerate(group) if k != at]
        seen = _other_order(mine, others, comparisons)
        if seen is not None:
            found.append(_finding(mine, len(others), *seen))
    if len(found) <= max(1, len(group) // 4):
        yield from found


def _other_order(mine: Channels, others: Sequence[Channels], comparisons: int) -> tuple[Array, float, float] | None:
    """What each channel is elsewhere, the share of rows that fit so, and the chance; None where nothing tells."""
    means, spread = standard(others)
    own = np.median(mine.features, axis=0)
    best = assigned(_cost(own[None], means, spread)[0])
    moved = np.flatnonzero(best != np.arange(len(best)))
    if not len(moved):
        return None
    shares = [_share(g.features, best, moved, means, spread) for g in others]
    share = _share(mine.features, best, moved, means, spread)
    rows = len(mine.features)
    better = round(share * rows)
    chance = math.log(max(paired_tail(better, rows - better), 1e-300)) + math.lgamma(len(best) + 1)
    if share < SHARE or max(shares) > 1 - SHARE or chance + math.log(comparisons) > math.log(LEVEL):
        return None
    left = float(_cost(own[None], means, spread)[0][moved, best[moved]].mean())
    apart = float(_cost(means[None], means, spread)[0][moved, best[moved]].mean())
    costs = [_cost(np.median(g.features, axis=0)[None], means, spread)[0] for g in others]
    usual = [float(c[moved, moved].mean()) for c in costs]
    if not _fits(left, apart, max(usual), own.shape[1]):
        # Some siblings may be of another device: they are like none of the others, and yet in their order.
        ordered = all(np.array_equal(assigned(c)[moved], moved) for c in costs)
        if not (ordered and left * LEFT <= apart and _fits(left, apart, float(np.median(usual)), own.shape[1])):
            return None
    return best, share, math.exp(chance)


def _fits(left: float, apart: float, usual: float, features: int) -> bool:
    """Whether what is left in the other order is as usual between siblings, and channels differ by far more."""
    return apart >= APART * usual and left <= FIT * usual + 0.1 * features


def _cost(rows: Array, means: Array, spread: Array) -> Array:
    """float64 shape (rows, channels, channels): squared distance of each channel to each channel elsewhere."""
    z = (rows[:, :, None, :] - means[None, None]) / spread
    return np.asarray(np.minimum(z * z, MOST).sum(axis=3))


def _share(rows: Array, best: Array, moved: Array, means: Array, spread: Array) -> float:
    """The share of rows whose moved channels are nearer to what `best` says than to themselves."""
    cost = _cost(rows, means, spread)
    return float((cost[:, moved, best[moved]].sum(axis=1) < cost[:, moved, moved].sum(axis=1)).mean())


def _finding(mine: Channels, siblings: int, best: Array, share: float, p: float) -> Finding:
    moved = [int(k) for k in np.flatnonzero(best != np.arange(len(best)))]
    pairs = [f"{mine.names[k]} is {mine.names[int(best[k])]}" for k in moved]
    field = mine.field or mine.names[moved[0]]
    return RULE.finding(
        f"the channels of {short(mine.shard)} are in another order than those of its {siblings} siblings: "
        f"{listed(pairs)} there, by quantiles, spectrum and correlations, in {percent(share)} of the rows looked at",
        place(mine.shard, field),
        mine.shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "order": tuple(int(k) for k in best), "share": share, "p": p,
                  "undone": share_bound(round(share * len(mine.features)), len(mine.features)),
                  "kind": "exchanged", "shard": short(mine.shard)},
    )
