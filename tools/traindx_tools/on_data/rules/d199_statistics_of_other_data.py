"""Statistics that a model keeps of its inputs are those of the same columns in another set of data.

A layer that normalises its inputs keeps a mean and a spread of each column. That they are of these columns, in this
order, is told by their magnitudes: no other order fits as well. That they are of other data is told where most of them
are half a standard deviation off and more: of another site or year, or of the file before it was filtered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.channel_statistics import (
    AGREES,
    Measured,
    matching,
    of_columns,
    off_by,
    orders_of,
    partly_moved,
    transformed,
)
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number
from traindx_tools.on_data.statistic_forms import Form, stored_as
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import Statistics, View
from traindx_tools.rules import Rule, Threshold

COLUMNS, COLUMNS_IN_PART, MOST = 4, 3, 128
MANY = 5
"""Columns from which on some may be off by less: of four there are but 24 orders, and all have to tell the same."""
GAIN = 4.0
"""Times that spreads are as large in all of few channels, at most: pixels of 0 to 1 and of 0 to 255 are 255 apart."""
FAR, VERY_FAR, TIMES = 0.5, 1.0, 5.0
SHARE, SHARE_ALONE, OWN_PLACE = 0.5, 0.75, 0.75
DRAWS = 4000
ROWS = 200

RULE = Rule(
    id="D199",
    name="statistics-of-other-data",
    title="Stored statistics are those of other data",
    severity=Severity.HIGH,
    sees="means and spreads that layers of checkpoints and files keep, with those of the columns of the data",
    matters="Each input is shifted and scaled as another set needs it: the model sees values that it never learnt.",
    alike=(
        "A sample of the data the model was trained on: its means are near, within their errors.",
        "A pretrained model that keeps its own normalisation on purpose.",
        "Columns that are transformed first, or averages that have not come to rest.",
    ),
    confirm=("Adapt the layer to the training file and compare its mean and variance.",
             "Evaluate with the recomputed statistics: the metric moves."),
    thresholds={
        "far": Threshold(FAR, "standard deviations", "that most columns are off; one without a training split"),
        "share": Threshold(SHARE, "of the columns", "that are far off; three quarters without a training split"),
        "own_place": Threshold(OWN_PLACE, "of the columns", "that fit their own statistics best"),
        "draws": Threshold(DRAWS, "orders", "drawn at random, none of which may fit as well"),
        "rows": Threshold(ROWS, "rows", "of the data"),
        "many": Threshold(MANY, "columns", "of fewer all must be far off, each at its own place after one factor"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each layer or file."""
    for said in (*view.kept, *view.statistics):
        if not COLUMNS_IN_PART <= len(said.means) <= MOST or not (said.spreads > 0).all():
            continue
        laid = [(data, m, names) for data in view.sets for m, names in _laid(view, data, said)]
        formed = next(((m, form) for _, m, _ in laid if (form := stored_as(said, m)) is not None), None)
        if formed is not None:
            yield _in_another_form(said, *formed)
            continue
        if any(_agree(said, m) > 1 - SHARE for _, m, _ in laid):
            yield from _in_part(view, said, laid)
            continue
        if len(said.means) < COLUMNS:
            continue
        yield from (f for data, m, names in laid[:1] if (f := _whole(view, said, data, m, names)) is not None)


Laid = Sequence[tuple[DataSet, Measured, list[str]]]


def _laid(view: View, data: DataSet, said: Statistics) -> Iterator[tuple[Measured, list[str]]]:
    """The channels and orders of columns that the statistics may be of, and what these are called."""
    if sum(s.rows for s in data.shards) < ROWS:
        return
    for m in matching(data, said):
        if _usable(m):
            yield m, list(said.names) or [f"channel {k}" for k in range(len(said.means))]
    if not said.names:
        for names in orders_of(view.name_lists, data, len(said.means)):
            yield from ((m, names) for m in of_columns(data, names) if _usable(m))


def _usable(measured: Measured) -> bool:
    return bool(np.isfinite(measured.margin).all() and (measured.spreads > 0).all())


def _off(said: Statistics, measured: Measured) -> Array:
    return off_by(said, measured, np.arange(len(said.means)), 1.0)


def _agree(said: Statistics, measured: Measured) -> float:
    return float((_off(said, measured) < np.maximum(AGREES, measured.margin)).mean())


def _in_part(view: View, said: Statistics, laid: Laid) -> Iterator[Finding]:
    """A layer that agrees for most columns; files of which that is so are those of D138."""
    data, measured, names = max(laid, key=lambda one: _agree(said, one[1]))
    off = _off(said, measured)
    far = np.flatnonzero((off >= FAR) & (off >= TIMES * measured.margin))
    agree = off < np.maximum(AGREES, measured.margin)
    if said not in view.kept or not len(far) or agree.sum() + len(far) < len(off) or not _of_these(said, measured):
        return
    if partly_moved(measured, said) is not None:
        return
    far = np.array([k for k in far if not transformed(said, measured, int(k), 1.0)], np.int64)
    if len(far):
        yield _finding(said, measured, names, far, "part", _trained_on(data))


def _whole(view: View, said: Statistics, data: DataSet, measured: Measured, names: list[str]) -> Finding | None:
    """Most columns are far off, and all stand at their own places."""
    train, own = _trained_on(data), said in view.kept
    if not train and not own:
        return None
    least, share = (FAR, SHARE) if train and own else (VERY_FAR, SHARE if train else SHARE_ALONE)
    share = share if len(said.means) >= MANY else 1.0
    off = _off(said, measured)
    far = np.flatnonzero((off >= least) & (off >= TIMES * measured.margin))
    if len(far) < share * len(off) or not _of_these(said, measured) or _on_the_way(said, measured):
        return None
    if any(transformed(said, measured, int(k), 1.0) for k in far[:3]):
        return None
    return _finding(said, measured, names, far, "other", train and own and len(off) >= MANY)


def _trained_on(data: DataSet) -> bool:
    return any(s.split == "train" for s in data.shards)


def _of_these(said: Statistics, measured: Measured) -> bool:
    """Whether the statistics are of these columns in this order: no other order fits as well."""
    means, spreads = said.means, said.spreads
    if len(means) < MANY:  # a darker set is so in all channels: what tells few of them apart is what is left of that
        common = float(np.exp(np.median(np.log(measured.spreads / spreads))))
        if not 1 / GAIN <= common <= GAIN:
            return False
        means, spreads = means * common, spreads * common
    spread = np.maximum(spreads[:, None], measured.spreads[None, :])
    cost = np.log1p(np.abs(means[:, None] - measured.means[None, :]) / spread) + np.abs(
        np.log(spreads[:, None] / measured.spreads[None, :]))
    places = np.arange(len(cost))
    if float((assigned(cost) == places).mean()) < (OWN_PLACE if len(cost) >= MANY else 1.0):
        return False
    rng, own = np.random.default_rng(0), float(cost[places, places].sum())
    drawn = np.stack([rng.permutation(len(cost)) for _ in range(DRAWS)])
    moved = drawn[(drawn != places).sum(axis=1) > min(2, len(cost) - 2)]
    return bool(own < cost[places, moved].sum(axis=1).min() and own < 0.5 * float(np.median(
        cost[places, moved].sum(axis=1))))


def _on_the_way(said: Statistics, measured: Measured) -> bool:
    """Whether they are averages on their way: means one share of those of the data, from zero on."""
    some = np.abs(measured.means) > measured.spreads
    ratios = said.means[some] / measured.means[some]
    return bool(some.sum() >= 3 and (ratios < 0.95).all() and (ratios >= 0).all() and np.ptp(ratios) < 0.02)


def _in_another_form(said: Statistics, measured: Measured, form: Form) -> Finding:
    """The same numbers of the same data, squared, inverted or exchanged."""
    of = f"{said.field} of " if said.field else ""
    return RULE.finding(
        f"the means and spreads that {of}{said.file} keeps are those of {measured.field or 'the columns beside it'} in "
        f"another form: {form.told}, in all of {len(said.means)} channels (channel 0: {number(said.means[0])} and "
        f"{number(said.spreads[0])} there, {number(measured.means[0])} and {number(measured.spreads[0])} in the data)",
        Location(file=said.file, module=said.field or None),
        said.file,
        bearing=Bearing.CAUSE if form.sure else Bearing.SIGN,
        severity=None if form.sure else Severity.MEDIUM,
        measured={"field": said.field, "kind": "form", "form": form.kind, "far": len(said.means),
                  "of": len(said.means)},
    )


def _finding(said: Statistics, measured: Measured, names: list[str], far: Array, kind: str, sure: bool) -> Finding:
    told = [f"{names[k]} has mean {number(said.means[k])} and spread {number(said.spreads[k])} there, "
            f"{number(measured.means[k])} and {number(measured.spreads[k])} in the data" for k in far]
    of = f"{said.field} of " if said.field else ""
    where = measured.field or "the columns beside it"
    return RULE.finding(
        f"the mean and variance that {of}{said.file} keeps are not those of {where}: {len(far)} of {len(said.means)} "
        f"are off ({listed(told, 3)}), and no other order of the columns fits: they were computed from "
        f"{'other data' if kind == 'other' else 'other values of these'}",
        Location(file=said.file, module=said.field or None),
        said.file,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=None if sure else Severity.MEDIUM,
        measured={"field": said.field, "channels": tuple(names[k] for k in far[:16]), "kind": kind, "far": len(far),
                  "of": len(said.means)},
    )
