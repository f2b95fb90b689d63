"""In one shard, or in one stretch of a file's rows, a field is otherwise than everywhere else.

What is compared are plain numbers of each row: the value, the level, spread, roughness, colour and orientation of
signals and pictures, the letters, spaces and ends of texts, how usual tokens are, and how well a value fits what the
other fields of its row say. A part is named only among parts that agree: shards that differ by nature name none, rows
that follow a season, a source or a class name no stretch. Where a field or a manifest tells the part from the others
it is made so on purpose, and that is a remark.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import told_by_another_field
from traindx_tools.on_data.declared import tells_shard, tells_stretch
from traindx_tools.on_data.entities import are_entities, are_recordings
from traindx_tools.on_data.odd_groups import DESIGN, TELLING, OddGroup, factor_of, odd_groups
from traindx_tools.on_data.odd_parts import (
    APART,
    SHARDS,
    SHORTEST,
    OddPart,
    differ_by_nature,
    lost,
    odd_shard,
    odd_stretch,
)
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.recordings import in_groups
from traindx_tools.on_data.repairs import Repair, is_alike, repaired
from traindx_tools.on_data.roles import is_label, keys
from traindx_tools.on_data.row_statistics import Statistic, statistics_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.token_profiles import renumbered
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

BY_NATURE = 0.1
"""Share of the statistics in which the other shards may differ among each other."""
MOST_TOLD = 3
"""Fields of one part that are named."""
AGREE = 0.9
"""Share of the values of a field that must be as everywhere, as they are or after the operation that is named. Where
features were reordered, some operation fits the oddest of them by chance."""
MOST_VALUES = 64
OTHER_CLASSES = 0.5
"""Share of the rows that would have to be of another class for two files to have the same mix."""
FEWEST_OTHER = 16
"""Rows of another file from which on its own change says something."""
AS_LARGE, SOME_OTHERS, MOST_OTHERS = 0.7, 0.1, 200
"""Of a stretch's change, what other files have in a window of theirs; the share of them, and how many are asked."""
EACH_ITS_WAY = 6
"""Other files from which on a change of half of them counts in whatever direction it goes."""
ALIKE = 0.25
"""Share of a stretch's change that another file has at the same place, from which the change is the order's."""

RULE = Rule(
    id="D142",
    name="odd-part",
    title="A part of the rows is otherwise than all others",
    severity=Severity.MEDIUM,
    sees="level, spread, form, letters, colours and fit of each row, by shard and along the rows of each file",
    matters="It was made in another way: another unit, another preprocessing, another source. A model learns that.",
    alike=(
        "Shards by source, class or month: they differ all, and none is named.",
        "Seasons, drift and sorted rows: neighbours are alike outside of the stretch too.",
        "A part that a field or a manifest names: a remark.",
        "A running index, a step or an epoch: a counter has no usual value.",
    ),
    confirm=("Look at ten rows of the part beside ten others.", "Ask how this part was made."),
    thresholds={
        "apart": Threshold(APART, "distance of distribution functions", "that the part has at least to all others"),
        "shards": Threshold(SHARDS, "shards", "fewer tell no odd one"),
        "rows": Threshold(SHORTEST, "rows of a stretch", "fewer may be chance"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all parts, fields and statistics"),
    },
)


@dataclass(frozen=True)
class _Seen:
    """A statistic and the part in which it is odd."""

    statistic: Statistic
    part: OddPart


def check(view: View) -> Iterator[Finding]:
    """One finding for each odd shard and for the oddest stretch of each file."""
    for data in view.sets:
        for group in data.splits.values():
            group = tuple(s for s in group if s.columns and s.rows and not in_groups(s))
            if group:
                yield from _of_group(view, data, group)


def _of_group(view: View, data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    made = list(statistics_of(group, data.fields, data.labels))
    comparisons = max(1, len(made) * len(group))
    shards = [_Seen(s, p) for s in made if (p := odd_shard(s.parts, comparisons)) is not None]
    shards = [s for s in shards if _counts(s)]
    for index in {s.part.index for s in shards}:
        if sum(differ_by_nature(s.parts, index) for s in made) > BY_NATURE * len(made):
            shards = [s for s in shards if s.part.index != index]
    for index, shard in enumerate(group):
        whole = [s for s in shards if s.part.index == index]
        found = [] if shard.numbers is not None else [
            seen for s in made if (p := odd_stretch(index, s.parts[index], comparisons)) is not None
            and _counts(seen := _Seen(s, p)) and not _recurs(seen)]
        if found or whole:  # a shard that is odd for a stretch of it alone is told by the stretch
            yield _finding(view, group, made, _together(found) if found else whole)
    yield from _groups(group, made, data.labels)


def _groups(group: Sequence[Shard], made: Sequence[Statistic], labels: Sequence[str]) -> Iterator[Finding]:
    """A finding for each group that is otherwise, with the statistic that tells most of it."""
    by_part: dict[tuple[str, int], list[OddGroup]] = {}
    for odd in odd_groups(group, made, labels):
        by_part.setdefault((odd.cut.by, odd.part), []).append(odd)
    seen: set[tuple[str, str]] = set()
    for found in by_part.values():
        best = min(found, key=lambda o: (not o.repair, not o.statistic.measured))
        if (best.statistic.field, best.repair) not in seen:  # a device stands at one site: it is told once
            seen.add((best.statistic.field, best.repair))
            yield _group_finding(group, best, found)


def _group_finding(group: Sequence[Shard], odd: OddGroup, found: Sequence[OddGroup]) -> Finding:
    fields = tuple(dict.fromkeys(o.statistic.field for o in found if bool(o.repair) == bool(odd.repair)))
    declared = told_by_another_field(group, odd.cut, odd.part, fields)
    at = next(i for i, m in enumerate(odd.cut.member) if (m == odd.part).any())
    said = (
        f"{odd.cut.told(odd.part)} differ from the {len(odd.cut.names) - 1} other groups in {odd.statistic.field}: "
        f"{odd.statistic.told} (median {number(float(np.nanmedian(odd.mine)))} against "
        f"{number(float(np.nanmedian(odd.others)))})"
    )
    said += f"; {odd.told}" if odd.told else "; a group may have a level of its own"
    said += f"; {declared}" if declared else ""
    remark = declared or not odd.repair or not odd.cut.origin
    small = odd.repair.startswith("divide") and factor_of(odd.repair) < DESIGN
    return RULE.finding(
        said,
        place(group[at], odd.statistic.field),
        group[at].name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if remark else Severity.LOW if small else None,
        measured={
            "field": odd.statistic.field, "fields": fields[:20], "statistic": odd.statistic.told, "by": odd.cut.by,
            "part": odd.cut.names[odd.part], "repair": odd.repair, "kind": "declared" if declared else "group",
        },
    )


def _counts(seen: _Seen) -> bool:
    """Whether a value that does not fit its row has nothing to do with it; any other statistic but a counter counts."""
    if seen.statistic.measured and _is_counter(*_sides(seen)):
        return False
    return not seen.statistic.pairs or lost(*_split(seen, seen.statistic.pairs))


def _of_other_classes(group: Sequence[Shard], seen: _Seen) -> str:
    """A clause where a whole file holds other classes than its siblings: rows that are written in the order of them."""
    if seen.part.stretch is not None:
        return ""
    for name, column in group[seen.part.index].columns.items():
        if is_label(column) and all(name in s.columns for s in group):
            mine = keys(column)
            rest = np.concatenate([keys(s.columns[name]) for i, s in enumerate(group) if i != seen.part.index])
            kinds = np.unique(np.concatenate([mine, rest]))
            shares = [np.bincount(np.searchsorted(kinds, v), minlength=len(kinds)) / len(v) for v in (mine, rest)]
            if 0.5 * float(np.abs(shares[0] - shares[1]).sum()) >= OTHER_CLASSES:
                return f"its rows are of other classes by {name}"
    return ""


def _another_topic(seen: _Seen) -> bool:
    """Whether a stretch of rows has other words and nothing else: texts are of their own topics, in whatever order."""
    return seen.part.stretch is not None and seen.statistic.told.startswith("how usual its tokens are")


def _is_counter(*sides: Array) -> bool:
    """Whether a field counts: whole numbers everywhere that go on by one step within the part or outside of it.

    So does an index over rows, a step or an epoch, also where it starts over.
    """
    whole = all(np.isfinite(v).all() and (v == np.rint(v)).all() for v in sides)
    return whole and any(map(_goes_on, sides))


def _goes_on(values: Array) -> bool:
    steps, counts = np.unique(np.diff(values), return_counts=True)
    often = int(np.argmax(counts)) if len(values) > FEWEST_OTHER else 0
    return len(values) > FEWEST_OTHER and steps[often] != 0 and bool(counts[often] >= AGREE * (len(values) - 1))


def _recurs(seen: _Seen) -> bool:
    """Whether half of the other files change alike at the same place: rows are sorted, a regime comes last.

    Of several files each may go its own way there, as demonstrations that move at first and then rest do.
    """
    index, stretch = seen.part.index, seen.part.stretch
    assert stretch is not None
    whole = len(seen.statistic.parts[index])
    mine = _change(seen.statistic.parts[index], stretch.start / whole, stretch.end / whole)
    others = [p for i, p in enumerate(seen.statistic.parts) if i != index and len(p) >= FEWEST_OTHER]
    changes = [_change(p, stretch.start / whole, stretch.end / whole) for p in others]
    any_way = len(changes) >= EACH_ITS_WAY
    alike = [(any_way or c * mine > 0) and abs(c) >= ALIKE * abs(mine) for c in changes]
    if any(alike) and 2 * sum(alike) >= len(changes):
        return True
    share = (stretch.end - stretch.start) / whole
    return any_way and _anywhere(seen.statistic.parts[index], others, share)


def _anywhere(mine: Array, others: Sequence[Array], share: float) -> bool:
    """Whether some of the other files have as large a change in a window of that share of theirs, wherever it is."""
    size = _largest_change(mine, share)
    large = sum(_largest_change(p, share) >= AS_LARGE * size for p in others[:MOST_OTHERS])
    return size > 0 and large >= max(3, SOME_OTHERS * min(len(others), MOST_OTHERS))


def _largest_change(values: Array, share: float) -> float:
    """The largest difference between the mean of a window and that of the rest."""
    known = values[np.isfinite(values)]
    width = max(FEWEST_OTHER // 2, round(share * len(known)))
    if len(known) < 2 * width:
        width = len(known) // 2
    if width < 2:
        return 0.0
    sums = np.concatenate([[0.0], np.cumsum(known)])
    inner = sums[width:] - sums[:-width]
    return float(np.abs(inner / width - (sums[-1] - inner) / (len(known) - width)).max())


def _change(values: Array, start: float, end: float) -> float:
    """The median within a stretch less that of the rest; `start`, `end` as shares of the rows."""
    inside = np.zeros(len(values), bool)
    inside[int(start * len(values)):max(int(start * len(values)) + 1, int(end * len(values)))] = True
    inner, outer = values[inside], values[~inside]
    inner, outer = inner[np.isfinite(inner)], outer[np.isfinite(outer)]
    return float(np.median(inner) - np.median(outer)) if len(inner) and len(outer) else 0.0


def _together(found: Sequence[_Seen]) -> list[_Seen]:
    """The surest with those whose stretch is the same but for its edges."""
    first = min(found, key=lambda s: (s.part.log_chance, -s.part.apart))
    return [s for s in found if _overlap(s, first) >= 0.5]


def _overlap(a: _Seen, b: _Seen) -> float:
    (a0, a1), (b0, b1) = _rows(a), _rows(b)
    return max(0, min(a1, b1) - max(a0, b0)) / max(1, max(a1, b1) - min(a0, b0))


def _rows(seen: _Seen) -> tuple[int, int]:
    """The first row of the stretch and the row behind its last."""
    stretch, rows = seen.part.stretch, seen.statistic.rows[seen.part.index]
    assert stretch is not None
    return int(rows[stretch.start]), int(rows[stretch.end - 1]) + 1


def _order(seen: _Seen) -> tuple[bool, float]:
    return (not seen.statistic.measured, -seen.part.apart)


def _finding(view: View, group: Sequence[Shard], made: Sequence[Statistic], seen: Sequence[_Seen]) -> Finding:
    best = min(seen, key=lambda s: -s.part.apart)
    values = [s for s in seen if s.statistic.measured and s.part.apart >= 0.8 * best.part.apart]
    best = min(values, key=lambda s: -s.part.apart) if values else best
    index, stretch, statistic = best.part.index, best.part.stretch, best.statistic
    shard = group[index]
    mine, others = _sides(best)
    undone = _undone(best, made)
    declared = _declared(view, group, best) or _of_its_own(group, best, undone) or _of_other_classes(group, best)
    fields = list(dict.fromkeys(s.statistic.field for s in sorted(seen, key=lambda s: -s.part.apart)))
    more = [s.statistic.told for s in sorted(seen, key=lambda s: -s.part.apart)
            if s.statistic.field == statistic.field and s is not best]
    first, behind = _rows(best) if stretch is not None else (0, shard.rows)
    where = f"rows {first}..{behind - 1} of {short(shard)}" if stretch is not None else f"{short(shard)}"
    what = f"{statistic.field}: {statistic.told}"
    rest = "the other rows of the file" if stretch is not None else f"its {len(group) - 1} siblings"
    said = (
        f"{where} differs from {rest} in {what} (median {number(float(np.median(mine)))} against "
        f"{number(float(np.median(others)))}; {best.part.apart:.2f} apart)"
    )
    said += f"; also in {'; '.join(more[:MOST_TOLD])}" if more else ""
    said += f"; also its fields {', '.join(f for f in fields if f != statistic.field)}" if len(fields) > 1 else ""
    said += f"; {undone.told}" if undone is not None else ""
    phase = stretch is not None and undone is None and are_recordings(group)
    said += "; files are recordings, and may go through phases of their own" if phase else ""
    if statistic.told.startswith("how usual its") and stretch is None:
        said += f"; {renumbered(group, index, statistic.field)}".removesuffix("; ")
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(shard, statistic.field),
        shard.name,
        bearing=Bearing.SIGN,
        severity=Severity.INFO if declared else Severity.LOW if phase or _another_topic(best) else None,
        measured={
            "field": statistic.field, "fields": tuple(fields[:20]), "statistic": statistic.told,
            "apart": best.part.apart, "log_p": best.part.log_chance, "shard": short(shard),
            "rows": (first, behind - 1), "repair": undone.name if undone is not None else "",
            "kind": ("declared" if declared else "stretch" if stretch is not None else "shard"),
        },
    )


def _undone(best: _Seen, made: Sequence[Statistic]) -> Repair | None:
    """The operation that undoes it, where it leaves no other value of the field otherwise."""
    if not best.statistic.measured or (undone := repaired(*_sides(best))) is None:
        return None
    values = [s for s in made if s.measured and s.field == best.statistic.field and (
        best.part.stretch is None or len(s.parts[best.part.index]) == len(best.statistic.parts[best.part.index]))]
    values = values[:: max(1, -(-len(values) // MOST_VALUES))]
    sound = sum(is_alike(*_split(best, s.parts), undone.name) for s in values)
    return undone if sound >= AGREE * len(values) else None


def _sides(seen: _Seen) -> tuple[Array, Array]:
    """The values in the part, and all others that it was compared with."""
    return _split(seen, seen.statistic.parts)


def _split(seen: _Seen, parts: Sequence[Array]) -> tuple[Array, Array]:
    part = seen.part
    if part.stretch is None:
        return parts[part.index], np.concatenate([p for i, p in enumerate(parts) if i != part.index])
    inside = part.stretch.inside(len(parts[part.index]))
    return parts[part.index][inside], parts[part.index][~inside]


def _of_its_own(group: Sequence[Shard], seen: _Seen, undone: Repair | None) -> str:
    """Why a file that is an entity may be otherwise; "" where an operation that no level is undoes it."""
    if seen.part.stretch is not None or not are_entities(group):
        return ""
    return "" if undone is not None and undone.name.startswith(TELLING) else (
        "each file has a level of its own, as stocks, sensors and customers have")


def _declared(view: View, group: Sequence[Shard], seen: _Seen) -> str:
    index = seen.part.index
    if seen.part.stretch is None:
        return tells_shard(view, group, index, seen.statistic.field)
    inside = np.zeros(group[index].rows, bool)
    first, behind = _rows(seen)
    inside[first:behind] = True
    return tells_stretch(group[index], inside, seen.statistic.field)

