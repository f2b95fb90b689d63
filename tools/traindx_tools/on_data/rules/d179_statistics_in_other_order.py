"""Statistics that a model or a file keeps of its inputs agree with the columns of the data in another order only.

A layer that normalises its inputs keeps a mean and a spread of each column, without their names. Where each agrees with
one column of the table beside it, and hardly any with the column at its own place, they were computed from columns in
another order: sorted by name, or of a file that was written anew. Nothing fails, and each input is normalised with the
numbers of another one.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_data.assignment import assigned
from traindx_tools.on_data.channel_statistics import (
    FAR,
    FEWEST,
    Measured,
    matching,
    of_columns,
    off_by,
    orders_of,
    partly_moved,
)
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.places import listed, number
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import Statistics, View
from traindx_tools.rules import Rule, Threshold

KINDS = 4
AGREES, AGREE, AS_IT_IS = 0.1, 0.9, 0.5
MOVED = 3
MOST = 128

RULE = Rule(
    id="D179",
    name="statistics-in-other-order",
    title="Stored statistics are those of the columns in another order",
    severity=Severity.HIGH,
    sees="means and spreads of layers in checkpoints, and of files without names, with those of each column",
    matters="Each input is shifted and scaled by the numbers of another one, in training or where the model is used.",
    alike=(
        "Statistics of hidden values or of other data: they agree with no order of the columns.",
        "Columns that were standardised and are alike: any order fits, and theirs as well.",
        "A model whose code takes the columns in that order: the named order is then its own.",
    ),
    confirm=("Print the layer's means beside those of the columns in the order in which the code stacks them.",),
    thresholds={
        "agrees": Threshold(AGREES, "standard deviations", "within which a column agrees"),
        "agree": Threshold(AGREE, "of the columns", "that agree in the other order, at least"),
        "as_it_is": Threshold(AS_IT_IS, "of the columns", "that agree as they stand, at most, and in no known order"),
        "moved": Threshold(MOVED, "columns", "that stand elsewhere: two that were exchanged may be a mistake of D138"),
        "far": Threshold(FAR, "standard deviations", "of a few that stand in each other's places, all others agreeing"),
        "rows": Threshold(FEWEST, "rows", "of the data"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each layer or file."""
    for said in (*view.statistics, *view.kept):
        if said.names or not KINDS <= len(said.means) <= MOST:
            continue
        for data in view.sets:
            found = next(_of_set(view, data, said), None)
            if found is not None:
                yield found
                break


def _of_set(view: View, data: DataSet, said: Statistics) -> Iterator[Finding]:
    for measured in matching(data, said):
        order = _other_order([measured], said)
        order = partly_moved(measured, said) if order is None and said in view.kept else order
        if order is not None:
            yield _finding(said, measured, order, [f"channel {k}" for k in range(len(order))])
    orders = list(orders_of(view.name_lists, data, len(said.means)))
    laid = [(names, m) for names in orders for m in of_columns(data, names)]
    order = _other_order([m for _, m in laid], said)
    if order is not None:
        yield _finding(said, laid[0][1], order, laid[0][0])
        return
    for names, measured in laid if said in view.kept else ():
        order = partly_moved(measured, said)
        if order is not None:
            yield _finding(said, measured, order, names)


def _other_order(laid: list[Measured], said: Statistics) -> Array | None:
    """The column of each of the statistics, by the first order; None where they agree in one that is known."""
    places = np.arange(len(said.means))
    usable = [m for m in laid if np.isfinite(m.margin).all() and (m.spreads > 0).all()]
    if not usable or len(usable) < len(laid):
        return None
    for m in usable:
        if float((off_by(said, m, places, 1.0) < np.maximum(AGREES, m.margin)).mean()) > AS_IT_IS:
            return None
    first = usable[0]
    whole = np.stack([off_by(said, first, np.full(len(places), k), 1.0) for k in places])
    order = assigned(np.minimum(whole, 1e3))
    fits = whole[places, order] < np.maximum(AGREES, first.margin[order])
    rivals = (whole < np.maximum(AGREES, first.margin)).sum(axis=1)
    clear = fits & (rivals <= 2) & (order != places)
    return order if float(fits.mean()) >= AGREE and int(clear.sum()) >= MOVED else None


def _finding(said: Statistics, measured: Measured, order: Array, names: list[str]) -> Finding:
    stored = [names[k] for k in order]
    how = "sorted by name" if stored == sorted(names) else "reversed" if stored == names[::-1] else (
        "in another order")
    moved = [k for k in range(len(order)) if order[k] != k]
    told = [f"place {k} has mean {number(said.means[k])} and spread {number(said.spreads[k])} as {stored[k]}, where "
            f"{names[k]} stands ({number(measured.means[k])} and {number(measured.spreads[k])})" for k in moved[:2]]
    of = f"{said.field} of " if said.field else ""
    return RULE.finding(
        f"the mean and variance that {of}{said.file} keeps are those of the columns {how}: {len(moved)} of "
        f"{len(order)} disagree with the column at their place ({listed(told, 2)}), and all agree after a permutation: "
        f"{', '.join(stored[:12])}",
        Location(file=said.file, module=said.field or None),
        said.file,
        bearing=Bearing.CAUSE,
        measured={"field": said.field, "channels": tuple(stored), "kind": "order", "moved": len(moved), "how": how},
    )
