"""Rows of a table (embeddings, scores) lie in another order than the numbers by which other tables name them.

Rows that are linked (bought together, cited, joined by an edge) are alike, and what an index says goes along with what
it names. Where that holds only once the rows are put in another order, they were written so: sorted by their numbers as
text (1, 10, 100, 2), reversed, or shuffled by a usual seed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.links import MOST_LINKS, Links, Rows, alike, classes_beside, links_of, sureness, told
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.row_orders import number_orders
from traindx_tools.on_data.significance import LEVEL, normal_tail
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

GAIN = 0.05
LEFT = 1 / 3
MOST_NAMED = 20_000

RULE = Rule(
    id="D169",
    name="rows-in-text-order",
    title="Rows lie in another order than the numbers that name them",
    severity=Severity.HIGH,
    sees="how much the rows are alike that links join, and what an index tells of them, as stored and in twelve orders",
    matters="Every row is taken for another one: embeddings and scores belong to strangers, and nothing fails.",
    alike=("Links that say nothing of what is alike: no order fits, and nothing is said.",
           "Rows with a field of their numbers: they are found by it."),
    confirm=("Compare the first ten rows with those of items 1, 10, 100, 1000.",
             "Put the rows in the named order in a copy and look at the nearest neighbours of ten items."),
    thresholds={
        "gain": Threshold(GAIN, "mean similarity, or share of links", "that the order must win"),
        "left": Threshold(LEFT, "of that", "which may hold as stored"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all orders and tables"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each table whose rows are named by others."""
    seen: set[str] = set()
    for links in links_of(view):
        if links.to.by or links.to.shard.name in seen or len(links.to.ids) > MOST_NAMED:
            continue
        found = _of_links(links, view.comparisons)
        if found is not None:
            seen.add(links.to.shard.name)
            yield found


def _of_links(links: Links, comparisons: int) -> Finding | None:
    numbers = [np.concatenate([s.columns[n].values for s in links.group]).astype(np.int64) for n in links.fields]
    some = np.unique(np.linspace(0, len(numbers[0]) - 1, min(len(numbers[0]), MOST_LINKS)).astype(np.int64))
    numbers = [v[some] for v in numbers]
    beside = [(n, y[some]) for n, y in classes_beside(links)] if len(numbers) == 1 else []
    if len(numbers) == 1 and not beside:
        return None
    rows = len(links.to.ids)
    start = int(min(v.min() for v in numbers) > 0 and max(v.max() for v in numbers) == rows)
    stored = _fits(links, numbers, beside, start)
    by_chance = _fits(_in_order(links, np.random.default_rng(7).permutation(rows)), numbers, beside, start)
    orders = list(number_orders(rows))
    best: tuple[float, str, int] | None = None
    for order_told, values in orders:
        for order in (np.argsort(values, kind="stable"), _inverse(values)):
            made = _fits(_in_order(links, order), numbers, beside, start)
            for way, (own, own_fit) in enumerate(zip(stored, made, strict=True)):
                after, before = (float(np.nanmean(v)) - float(np.nanmean(by_chance[way])) for v in (own_fit, own))
                if after < GAIN or before > LEFT * after:
                    continue
                gain = np.nan_to_num(own_fit) - np.nan_to_num(own)
                z = sureness(gain, numbers[0])
                sure = normal_tail(z / 1.5) * 2 * len(orders) * len(stored) * comparisons < LEVEL
                if sure and (best is None or after > best[0]):
                    best = after, order_told, way
    if best is None or any(float(np.nanmean(moved[best[2]])) - float(np.nanmean(by_chance[best[2]])) > LEFT * best[0]
                           for moved in (_fits(links, numbers, beside, start + by) for by in (-1, 1))):
        return None  # no order, or the numbers are but counted from another one
    before = float(np.nanmean(stored[best[2]])) - float(np.nanmean(by_chance[best[2]]))
    return _finding(links, best[1], best[0], before, [n for n, _ in beside][best[2] : best[2] + 1])


def _inverse(values: Array) -> Array:
    order = np.argsort(values, kind="stable")
    out = np.empty(len(order), np.int64)
    out[order] = np.arange(len(order))
    return out


def _in_order(links: Links, order: Array) -> Links:
    to: Rows = replace(links.to, vectors=tuple(v[order] for v in links.to.vectors))
    return replace(links, to=to)


def _fits(links: Links, numbers: Sequence[Array], beside: Sequence[tuple[str, Array]], start: int) -> list[Array]:
    if len(numbers) == 2:
        return alike(links, numbers, -start)
    return [told(links, numbers[0], y, -start) for _, y in beside]


def _finding(links: Links, order: str, after: float, before: float, said: Sequence[str]) -> Finding:
    shard, source = links.to.shard, links.group[0]
    what = (f"{said[0]} of {short(source)} is told by the rows that {links.fields[0]} names" if said
            else f"the rows that {' and '.join(links.fields)} of {short(source)} join are alike")
    return RULE.finding(
        f"the rows of {short(shard)} lie in the order of {order}, and {short(source)} names them by their numbers: "
        f"{what} only once they are put back ({number(after)} above chance, and {number(before)} as stored)",
        place(shard),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": next(iter(shard.columns), ""), "key": order, "fit": round(after, 4),
                  "before": round(before, 4), "beside": short(source), "rows": len(links.to.ids),
                  "kind": "order", "shard": short(shard)},
    )
