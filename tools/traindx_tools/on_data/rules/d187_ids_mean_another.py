"""In one part an id stands for something else than in all others: another catalogue, sorted otherwise.

What an id goes along with (the mean of a number, a class of its own, how often it occurs) is the same in every other
part, by rank correlation of its ids. In the odd part that agreement is lost, while two halves of its own rows agree:
ids mean something there, and something else. A table beside the data that lists the ids may say which order was taken.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.cuts import Cut, called_origin, cuts_of, in_two, told_by_another_field
from traindx_tools.on_data.id_meanings import (
    AGREES,
    EACH,
    FEWEST_IDS,
    LOST,
    MOST_ROWS,
    OWN,
    Ids,
    Lost,
    OddPart,
    ids_of,
    odd_part,
    quantities_of,
)
from traindx_tools.on_data.id_orders import BACK, Restored, orders_of, restored
from traindx_tools.on_data.month_parts import by_month
from traindx_tools.on_data.places import listed, place, short
from traindx_tools.on_data.roles import is_target
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_FIELDS = 8

RULE = Rule(
    id="D187",
    name="ids-mean-another",
    title="Ids of one part stand for something else than in all others",
    severity=Severity.HIGH,
    sees="means, classes and counts by id in each file, month and group, and tables that list the ids",
    matters="A table of embeddings, or of means by id, is looked up with numbers that mean another item there.",
    alike=("Files of one entity each, whose ids are their own: no two agree, and nothing is said.",
           "A number that measures something (an age): neighbours are alike, and it is no id.",
           "A length of the row's own fields, and a number by whose size rows were put into parts (buckets).",
           "A part with few rows, or noisier: its own halves do not agree either.",
           "One quantity alone that changed, such as prices of a sale: medium, unless an order brings it back; where "
           "another one is as everywhere nothing is said.",
           "Two files: which of both is odd only a known order tells."),
    confirm=("Print what five frequent ids go along with in the named part and in another one.",
             "Look which list of ids each part was made with."),
    thresholds={
        "ids": Threshold(FEWEST_IDS, "ids", "that both sides have"),
        "rows": Threshold(EACH, "rows", "of an id on both sides, where a mean is compared"),
        "agrees": Threshold(AGREES, "rank correlation", "of every other part with the rest, at least"),
        "lost": Threshold(LOST, "of that", "in the odd part, at most, of either sign"),
        "own": Threshold(OWN, "of that", "between two halves of the odd part, at least"),
        "back": Threshold(BACK, "of that", "that a known order must bring back to be told"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all fields, parts and quantities"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each field of ids."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if not group or sum(s.rows for s in group) > MOST_ROWS:
            continue
        cuts = [*cuts_of(group, data.labels), *by_month(group), *in_two(group)]
        names = [n for n in group[0].columns if not is_target(n)] if cuts else []
        made = 0
        for name in names:
            ids = ids_of(group, name)
            if ids is None:
                continue
            made += 1
            if (found := _of_ids(view, data, group, ids, cuts)) is not None:
                yield found
            if made == MOST_FIELDS:
                break


def _of_ids(view: View, data: DataSet, group: Sequence[Shard], ids: Ids, cuts: Sequence[Cut]) -> Finding | None:
    quantities = list(quantities_of(group, ids.field, data.fields))
    for cut in cuts:
        if cut.by == ids.field:
            continue
        comparisons = float(len(quantities) * len(cuts) * MOST_FIELDS)
        odd = odd_part(ids, quantities, cut, comparisons)
        if odd is None:
            continue
        for part in _sides(group, cut) if len(cut.names) == 2 else [odd.part]:  # of two either may be the odd one
            order = _order(view, data, ids, odd.lost, cut, part)
            if order is not None or _is_meaning(cut, odd):
                return _finding(group, ids, cut, replace(odd, part=part), order)
    return None


def _sides(group: Sequence[Shard], cut: Cut) -> list[int]:
    """Held-out rows first."""
    of_train = [any(s.split == "train" and (m == p).any() for s, m in zip(group, cut.member, strict=True))
                for p in (0, 1)]
    return sorted((0, 1), key=lambda p: (of_train[p], -p))


def _order(view: View, data: DataSet, ids: Ids, lost: Sequence[Lost], cut: Cut, part: int) -> Restored | None:
    member = np.concatenate(cut.member)
    mine, others = np.flatnonzero(member == part), np.flatnonzero((member != part) & (member >= 0))
    orders = list(orders_of(ids, view.sets, view.name_lists, data, others))
    return restored(ids, [one.quantity for one in lost], mine, others, orders, min(one.others for one in lost))


def _is_meaning(cut: Cut, odd: OddPart) -> bool:
    """Whether ids mean something else there, without an order that says what: of two parts none is the odd one.

    How often ids occur may change alone, and so may one quantity where another one is as everywhere.
    """
    fields = {one.quantity.field for one in odd.lost if one.quantity.values is not None}
    if len(cut.names) < 3 or not fields:
        return False
    return len(fields) > 1 or (not odd.kept and cut.origin and not any(map(called_origin, fields)))


def _finding(group: Sequence[Shard], ids: Ids, cut: Cut, odd: OddPart, order: Restored | None) -> Finding:
    part, lost = odd.part, odd.lost
    fields = list(dict.fromkeys(one.quantity.field for one in lost))
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    declared = told_by_another_field(group, cut, part, (ids.field, *fields))
    best = min(lost, key=lambda one: (one.here, one.log_chance))
    two = len(cut.names) == 2
    rest = cut.told(1 - part) if two else f"the {len(cut.names) - 1} other parts"
    said = (
        f"{ids.field} of {cut.told(part)} stands for something else than in {rest}: {best.quantity.told} by "
        f"{ids.field} correlates with that of all others by {best.here:.2f}, "
        + ("" if two else f"in every other part by {best.others:.2f} at least, ")
        + f"and between two halves of these rows by {best.own:.2f}"
    )
    more = [one.quantity.told for one in lost if one is not best]
    said += f"; also {listed(more, 3)}" if more else ""
    said += (f"; taken for ids in another order ({order.told}) it is {order.after:.2f}" if order is not None else
             "; no order that is known here makes them agree")
    said += f"; {declared}" if declared else ""
    sure = order is not None or (len(fields) > 1 and not odd.kept)
    return RULE.finding(
        said,
        place(group[at], ids.field),
        group[at].name,
        bearing=Bearing.CAUSE if sure else Bearing.SIGN,
        severity=Severity.INFO if declared else None if sure else Severity.MEDIUM,
        measured={"field": ids.field, "fields": (ids.field,), "by": cut.by, "part": cut.names[part],
                  "here": best.here, "others": best.others, "own": best.own, "log_p": best.log_chance,
                  "quantities": tuple(one.quantity.told for one in lost[:8]),
                  "order": order.told if order is not None else "",
                  "after": order.after if order is not None else best.here, "shard": short(group[at]),
                  "kind": "ordered" if order is not None else "several" if sure else "one"},
    )
