"""An equation between channels or columns, which holds to rounding in all other rows, is broken in some.

Lead III is lead II less lead I; a total is the sum of its parts. Rows that break such an equation, all of them, and
obey it once two columns are exchanged, one has its sign turned, or one is multiplied, were written so
(`exact_relations.py`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.channels import channel_axis
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.exact_relations import BREAK, BROKEN, EXACT, MOST, OBEY, Broken, Operation, broken_relations
from traindx_tools.on_data.padding import longest_run
from traindx_tools.on_data.places import number, place, rows, short
from traindx_tools.on_data.roles import is_identifier, is_time, keys
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_ROWS = 600
MOST_CELLS = 4_000_000
"""Numbers of a table that are looked at."""
SAMPLES = 128
KINDS = 6
ONE_KIND = 0.02
STRETCH = 0.9
ROOM = 0.1
FEW_KINDS = 20
"""Values of a field up to which it is one of categories: several of its values may be rows of another kind."""

RULE = Rule(
    id="D170",
    name="relation-broken",
    title="Some rows break an equation that all others obey",
    severity=Severity.HIGH,
    sees="linear equations between channels or columns, and between their logarithms, that hold to rounding",
    matters="The channels or columns of those rows are not what they are called, and the model reads them so.",
    alike=(
        "Rows of another kind, which a field of their own names: another tax, a refund.",
        "Equations that hold by and large: noise is no rounding.",
        "Two columns that are equal unless something is special.",
    ),
    confirm=("Compute the named equation in a row that breaks it, as it is and with the named change.",),
    thresholds={
        "exact": Threshold(EXACT, "of a spread", "that may be left of an equation: rounding"),
        "most": Threshold(MOST, "share of the rows", "that obey, at least"),
        "broken": Threshold(BROKEN, "times", "what is left elsewhere, at least"),
        "obey": Threshold(OBEY, "rows", "that obey, at least"),
        "rows": Threshold(BREAK, "rows", "that break it, at least"),
    },
)


@dataclass(frozen=True, eq=False)
class _Group:
    """Numbers of the same names: float64 shape (rows, samples, channels), and where each row stands."""

    names: tuple[str, ...]
    values: Array
    shard: Array
    row: Array
    logarithms: bool = False


def check(view: View) -> Iterator[Finding]:
    """A finding for each set of rows and what they break."""
    for data in view.sets:
        for group in _groups(data):
            best: dict[Operation, Broken] = {}
            for broken in broken_relations(group.values):
                found = replace(broken, operations=tuple(o for o in broken.operations if _plausible(group, broken, o)))
                if found.operations and _counts(found):
                    first = replace(found.operations[0], factor=1.0)
                    best[first] = max(found, best.get(first, found), key=lambda b: len(b.rows))
            if best:
                yield from (_finding(data, group, b) for b in best.values())
                break  # equations of logarithms say the same again


def _counts(found: Broken) -> bool:
    """Two columns in one proportion may stand in another where something is special; three that add up do not."""
    return len(found.terms) != 2 or any(o.kind == "exchanged" for o in found.operations)


def _plausible(group: _Group, found: Broken, operation: Operation) -> bool:
    """Whether the numbers that an operation makes are such as the other rows have: a price is not below 0."""
    kept = np.delete(group.values, found.rows, axis=0).reshape(-1, len(group.names))
    mine = group.values[found.rows].reshape(-1, len(group.names))
    made = mine[:, operation.channels[::-1]] / (1.0 if operation.kind == "exchanged" else operation.factor)
    low, high = kept[:, operation.channels].min(axis=0), kept[:, operation.channels].max(axis=0)
    room = ROOM * (high - low)
    return bool(((made >= low - room) & (made <= high + room)).mean(axis=0).min() >= STRETCH)


def _groups(data: DataSet) -> Iterator[_Group]:
    shards = [s for s in data.shards if s.columns and s.rows]
    for name in data.fields:
        having = [s for s in shards if name in s.columns]
        axes = {_axis(s, name) for s in having}
        widths = {s.columns[name].row_shape[a] for s in having if (a := _axis(s, name)) is not None}
        if None not in axes and len(axes) == 1 and len(widths) == 1:
            yield from _of_channels(shards, having, name)
    yield from _of_columns(data, shards)


def _axis(shard: Shard, name: str) -> int | None:
    column = shard.columns[name]
    if column.kind != "number" or column.values.dtype.kind not in "iuf" or len(column.row_shape) != 2:
        return None
    return channel_axis(column.row_shape)


def _of_channels(shards: Sequence[Shard], having: Sequence[Shard], name: str) -> Iterator[_Group]:
    values, shard, row = [], [], []
    step = max(1, -(-sum(s.rows for s in having) // MOST_ROWS))
    for s in having:
        at = np.arange(0, s.rows, step)
        axis = _axis(s, name)
        assert axis is not None, "only channels are asked for"
        some = np.moveaxis(np.asarray(s.columns[name].values[at], np.float64), axis + 1, 2)
        values.append(some[:, np.linspace(0, some.shape[1] - 1, min(SAMPLES, some.shape[1])).astype(np.int64)])
        shard.append(np.full(len(at), shards.index(s)))
        row.append(at)
    if len({v.shape[1] for v in values}) == 1:
        whole = np.concatenate(values)
        good = np.isfinite(whole).all(axis=(1, 2))
        names = tuple(f"channel {k} of {name}" for k in range(whole.shape[2]))
        yield _Group(names, whole[good], np.concatenate(shard)[good], np.concatenate(row)[good])


def _of_columns(data: DataSet, shards: Sequence[Shard]) -> Iterator[_Group]:
    """The single numbers of the rows, as they are, and the logarithms of those that are positive throughout."""
    names = [n for n in data.fields if all(_is_measure(s, n) for s in shards)]
    if len(names) < 2:
        return
    most = max(MOST_ROWS, MOST_CELLS // len(names))
    step = max(1, -(-sum(s.rows for s in shards) // most))
    at = [np.arange(0, s.rows, step) for s in shards]
    x = np.concatenate([np.stack([np.asarray(s.columns[n].values[a], np.float64).reshape(-1) for n in names], axis=1)
                        for s, a in zip(shards, at, strict=True)])
    shard = np.concatenate([np.full(len(a), i) for i, a in enumerate(at)])
    row = np.concatenate(at)
    good = np.isfinite(x).all(axis=1)
    if good.mean() < MOST:
        return
    yield _Group(tuple(names), x[good][:, None], shard[good], row[good])
    positive = np.flatnonzero((x[good] > 0).all(axis=0))
    if len(positive) >= 3:
        logs = np.log(x[good][:, None, positive])
        yield _Group(tuple(names[k] for k in positive), logs, shard[good], row[good], logarithms=True)


def _is_measure(shard: Shard, name: str) -> bool:
    column = shard.columns.get(name)
    if column is None or column.kind != "number" or int(np.prod(column.row_shape)) != 1 or is_time(name):
        return False
    if column.values.dtype.kind not in "iuf" or column.rows != shard.rows or is_identifier(column):
        return False
    return len(np.unique(column.values[:2000])) > KINDS


def _finding(data: DataSet, group: _Group, found: Broken) -> Finding:
    shards = [s for s in data.shards if s.columns and s.rows]
    at = int(np.bincount(group.shard[found.rows]).argmax())
    shard = shards[at]
    mine = group.row[found.rows[group.shard[found.rows] == at]]
    first, count = longest_run(np.flatnonzero(np.isin(group.row[group.shard == at], mine)))
    in_a_row = count >= STRETCH * len(found.rows)
    declared = _declared(shards, group, found)
    looked = group.row[group.shard == at]
    where = f"rows {looked[first]}..{looked[first + count - 1]}" if in_a_row and count > 1 else rows(shard, mine)
    said = (
        f"{len(found.rows):,} of {len(group.values):,} rows looked at break {_equation(group, found)}, which the other "
        f"{found.obeying:,} obey to {number(found.left)} of a spread: {where} of {short(shard)}; each of them obeys "
        f"{' or '.join(_said(group, o) for o in found.operations[:3])}"
    )
    severity = Severity.INFO if declared else None if in_a_row or len(group.values[0]) > 1 else Severity.MEDIUM
    return RULE.finding(
        said + (f"; {declared}" if declared else ""),
        place(shard, group.names[found.operations[0].channels[0]]),
        shard.name,
        bearing=Bearing.COMPANION if declared else Bearing.CAUSE,
        severity=severity,
        measured={"field": group.names[found.operations[0].channels[0]], "kind": found.operations[0].kind,
                  "count": len(found.rows), "obeying": found.obeying, "left": found.left,
                  "rows": tuple(int(i) for i in mine[:20]), "shard": short(shard)},
    )


def _equation(group: _Group, found: Broken) -> str:
    """`total = a + 2 b`, with a constant that is not told; of logarithms as powers."""
    if not found.terms:
        return "an equation of " + ", ".join(group.names[:4])
    target, *others = [(group.names[k], a) for k, a in found.terms]
    if group.logarithms:
        return f"{target[0]} ~ " + " * ".join(f"{n}^{a:.3g}" if abs(a - 1) > EXACT else n for n, a in others)
    terms = "".join(f" {'-' if a < 0 else '+'} {'' if abs(abs(a) - 1) < EXACT else f'{abs(a):.4g} '}{n}"
                    for n, a in others)
    return f"{target[0]} ={terms.removeprefix(' +')}"


def _said(group: _Group, operation: Operation) -> str:
    names = [group.names[k] for k in operation.channels]
    if operation.kind == "exchanged":
        return f"once {names[0]} and {names[1]} are exchanged"
    if operation.kind == "sign":
        return f"once the sign of {names[0]} is turned"
    power = "raised to" if group.logarithms else "divided by"
    return f"once {names[0]} is {power} {operation.factor if not group.logarithms else 1 / operation.factor:.4g}"


def _declared(shards: Sequence[Shard], group: _Group, found: Broken) -> str:
    """Where the values of a field in all rows that break it are hardly elsewhere: rows of another kind.

    Several values only of a field of categories, each with rows enough to tell, and only where a factor differs, as
    rates do: no category exchanges two columns.
    """
    inside = np.zeros(len(group.values), bool)
    inside[found.rows] = True
    several = all(o.kind == "factor" for o in found.operations)
    for name in shards[0].columns:
        if name in group.names or not all(_is_kind(s, name) for s in shards):
            continue
        values = np.empty(len(inside), object)
        for i, s in enumerate(shards):
            values[group.shard == i] = keys(s.columns[name])[group.row[group.shard == i]]
        kinds = set(values[inside].tolist())
        every = set(values.tolist()) if several else set()
        if len(kinds) > 1 and not (len(kinds) < len(every) <= FEW_KINDS and len(found.rows) >= OBEY * len(kinds)):
            continue
        if float(np.mean([v in kinds for v in values[~inside].tolist()])) < ONE_KIND:
            what = "has one value" if len(kinds) == 1 else f"has {len(kinds)} of its {len(every)} values"
            return f"{name} {what} in these rows and hardly any other row has {'it' if len(kinds) == 1 else 'them'}"
    return ""


def _is_kind(shard: Shard, name: str) -> bool:
    column = shard.columns.get(name)
    if column is None or column.rows != shard.rows or column.kind == "sequence":
        return False
    return column.digests is not None if column.kind == "text" else int(np.prod(column.row_shape)) == 1

