"""A field that another one of the same row determines in all other parts says something else in one part.

A time determines the day of the week, the hour and the month; a day of the week determines whether it is a weekend, a
class its superclass. Where such a rule holds in every row of all other files (splits, groups), and in one part hardly
in any, that part was made otherwise: its days are counted from 1, its hours are those of another zone, its column was
moved. Nothing needs to be known of the field but that the rule holds elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.calendar_parts import parts_of, seconds_of
from traindx_tools.on_data.column import Array, Column
from traindx_tools.on_data.cuts import Cut, cuts_of, told_by_another_field
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.roles import is_id_name, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

EXACT = 0.999
BROKEN = 0.3
FEWEST = 40
KINDS, MOST_KINDS = 2, 64
USUAL = 0.9
PER_KEY = 5
MOST_ROWS = 40_000
MOST_FIELDS = 24
MOST_COLUMNS = 96

RULE = Rule(
    id="D178",
    name="told-by-the-row",
    title="A field disagrees in one part with what determines it in all others",
    severity=Severity.HIGH,
    sees="whole numbers and classes beside what a time of the same row says (hour, day, month), and beside other "
         "fields of few values, by file, split and group",
    matters="The same value means something else in this part, and the model takes it for what it means in all others.",
    alike=(
        "Hours that are local in one part and the zone's in the others, by daylight saving: an hour off is a remark.",
        "A rule that was changed with a release, where another field names it.",
    ),
    confirm=("Print the named field beside the one that determines it for ten rows of the named part and of another.",
             "Compute the field anew from the one that determines it, and compare."),
    thresholds={
        "exact": Threshold(EXACT, "share of the rows", "of all other parts in which one value determines the other"),
        "broken": Threshold(BROKEN, "share of the rows", "of the part that say something else, at least"),
        "rows": Threshold(FEWEST, "rows", "of a part"),
        "usual": Threshold(USUAL, "share of the rows", "of the most frequent value: above it anything determines it"),
        "per_key": Threshold(PER_KEY, "rows", "of a value of what determines, on average"),
    },
)


@dataclass(frozen=True, eq=False)
class _Key:
    """What may determine a field: int64 codes of each row looked at."""

    name: str
    of: str
    """The field that it is read from."""
    codes: Array
    calendar: bool


@dataclass(frozen=True, eq=False)
class _Broken:
    part: int
    share: float
    others: float
    shift: int | None
    own: float
    """Share of the part's rows that a rule of its own determines."""
    known: Array
    """Places of its rows of which the others say something."""


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each field: by a time first."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if not group:
            continue
        every = sum(s.rows for s in group)
        step = max(1, math.ceil(every / MOST_ROWS))
        chosen = [np.arange(i % step, s.rows, step) for i, s in enumerate(group)]
        targets = {n: t for n in _shared(group) if (t := _target(group, n, chosen)) is not None}
        cuts = list(cuts_of(group, data.labels))
        if not targets or not cuts:
            continue
        found = list(_keys(group, chosen, targets))
        dates = [n for n, v in targets.items() if any(k.calendar and _determined(k.codes, v) >= EXACT for k in found)]
        broken: set[str] = set()  # a field that a time contradicts breaks its relations with other fields as well
        for calendar in (True, False):
            for name in [n for n in targets if calendar or n not in dates][: None if calendar else MOST_FIELDS]:
                keys_of = [k for k in found if k.calendar is calendar and k.of != name and k.of not in broken]
                told = next(_of_field(group, name, targets[name], keys_of, cuts, chosen, dates), None) if (
                    name not in broken) else None
                if told is not None:
                    broken |= {name} if calendar else {name, str(told.measured["told_by"])}
                    yield told


def _shared(group: Sequence[Shard]) -> list[str]:
    named = [n for n in group[0].columns if all(n in s.columns and s.columns[n].rows == s.rows for s in group)]
    return named[:MOST_COLUMNS]


def _is_plain(column: Column) -> bool:
    return not column.row_shape and column.missing is None and (
        (column.is_integer and column.kind == "number")
        or (column.kind == "text" and column.digests is not None and len(column.digests) == column.rows))


def _target(group: Sequence[Shard], name: str, chosen: Sequence[Array]) -> Array | None:
    """The values of a field of few, None of any other."""
    columns = [s.columns[name] for s in group]
    if not all(_is_plain(c) for c in columns) or len({c.kind for c in columns}) > 1:
        return None
    values = np.concatenate([keys(c)[r] for c, r in zip(columns, chosen, strict=True)])
    if len(np.unique(values[:2000])) > MOST_KINDS:
        return None
    kinds, counts = np.unique(values, return_counts=True)
    if not KINDS <= len(kinds) <= MOST_KINDS or counts.max() > USUAL * len(values):
        return None
    return values.astype(np.int64) if columns[0].kind == "number" else np.searchsorted(kinds, values) + 2**40


def _keys(group: Sequence[Shard], chosen: Sequence[Array], targets: dict[str, Array]) -> Iterator[_Key]:
    for name in _shared(group):
        if name in targets or (not group[0].columns[name].is_float and is_id_name(name)):
            continue
        seconds = [seconds_of(s.columns[name], r) for s, r in zip(group, chosen, strict=True)]
        if all(x is not None for x in seconds):
            for said, codes in parts_of(np.concatenate([x for x in seconds if x is not None])):
                yield _Key(f"{said} of {name}", name, codes, True)
    for name, values in list(targets.items())[:MOST_FIELDS]:
        if not is_id_name(name):
            yield _Key(name, name, values, False)


def _of_field(group: Sequence[Shard], name: str, values: Array, found: Sequence[_Key], cuts: Sequence[Cut],
              chosen: Sequence[Array], dates: Sequence[str]) -> Iterator[Finding]:
    """`dates`: fields that a time says, which tell a part of months and no other way of counting."""
    some = slice(None, None, max(1, len(values) // 3000))
    for key in found:
        if _determined(key.codes[some], values[some]) < 0.5:
            continue
        for cut in (c for c in cuts if c.by not in (name, key.of)):
            member = np.concatenate([m[r] for m, r in zip(cut.member, chosen, strict=True)])
            broken = _part(key, values, member, len(cut.names))
            if broken is not None:
                declared = told_by_another_field(group, cut, broken.part, [name, key.of, *dates])
                yield _finding(group, name, key, cut, broken, declared)


def _determined(key: Array, values: Array) -> float:
    """Share of the rows that have the most frequent value of their key."""
    _, table = _table(key, values)
    return float(table.max(axis=1).sum() / max(1, table.sum()))


def _table(key: Array, values: Array) -> tuple[tuple[Array, Array], Array]:
    kinds, at = np.unique(key, return_inverse=True)
    said, of = np.unique(values, return_inverse=True)
    counts = np.bincount(at.reshape(-1) * len(said) + of.reshape(-1), minlength=len(kinds) * len(said))
    return (kinds, said), counts.reshape(len(kinds), len(said))


def _part(key: _Key, values: Array, member: Array, parts: int) -> _Broken | None:
    """The one part that breaks a rule which all rows of the others keep."""
    found = [_of_part(key, values, member, p) for p in range(parts)]
    odd = [f for f in found if f is not None]
    return odd[0] if len(odd) == 1 else None


def _of_part(key: _Key, values: Array, member: Array, part: int) -> _Broken | None:
    inside, outside = np.flatnonzero(member == part), np.flatnonzero((member >= 0) & (member != part))
    if len(inside) < FEWEST or len(outside) < 2 * FEWEST:
        return None
    (kinds, said), table = _table(key.codes[outside], values[outside])
    others = float(table.max(axis=1).sum() / table.sum())
    usual = float(table.sum(axis=0).max() / table.sum())
    if others < EXACT or usual > USUAL or table.sum() < PER_KEY * len(kinds) or len(kinds) < 2:
        return None
    rule = said[table.argmax(axis=1)]
    mine = key.codes[inside]
    at = np.minimum(np.searchsorted(kinds, mine), len(kinds) - 1)
    expected, known = rule[at], kinds[at] == mine
    offsets = np.unique(rule - kinds)
    if len(offsets) == 1 and len(kinds) >= 3:
        expected, known = mine + offsets[0], np.ones(len(mine), bool)  # it is the key and a number: for all keys
    if known.sum() < FEWEST:
        return None
    got = values[inside][known]
    if not key.calendar and (got == got[0]).all():
        return None  # one value for all rows is none: labels that are not given out
    wrong = got != expected[known]
    if float(wrong.mean()) < BROKEN:
        return None
    apart, counts = np.unique((got - expected[known]), return_counts=True)
    shift = int(apart[counts.argmax()]) if counts.max() >= EXACT * len(got) else None
    own = _determined(mine[known], got)
    return _Broken(part, float(wrong.mean()), others, shift, own, inside[known])


def _severity(key: _Key, cut: Cut, broken: _Broken) -> Severity | None:
    """None: as the rule says. A group may have a rule of its own, and so may fields that no time determines."""
    whole = cut.by in ("", "split", "name", "folder")
    if key.calendar:
        return None if whole else Severity.MEDIUM
    return Severity.MEDIUM if whole and broken.own >= EXACT else Severity.LOW


def _finding(group: Sequence[Shard], name: str, key: _Key, cut: Cut, broken: _Broken, declared: str
             ) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == broken.part).any())
    shard = group[at]
    if broken.shift is not None and abs(broken.shift) < 2**39:
        how = f"it is {abs(broken.shift)} {'more' if broken.shift > 0 else 'less'} in all of them"
    elif broken.own >= EXACT:
        how = "it follows it there by a rule of its own"
    else:
        how = "it follows it by no rule there"
    dst = key.name.startswith("the hour") and broken.shift in (1, -1, 23, -23)
    return RULE.finding(
        f"{name} of {cut.told(broken.part)} disagrees with {key.name} in {percent(broken.share)} of its rows, while in "
        f"all other parts {key.name} determines {name} ({percent(broken.others)} of the rows): {how}"
        + (f"; {declared}" if declared else ""),
        place(shard, name),
        shard.name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared or dst else _severity(key, cut, broken),
        measured={"field": name, "by": cut.by or "file", "part": cut.names[broken.part], "told_by": key.of,
                  "share": broken.share, "shift": broken.shift,
                  "kind": "declared" if declared else "calendar" if key.calendar else "field", "rows": (),
                  "shard": short(shard)},
    )
