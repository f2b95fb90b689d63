"""A number goes along with the rest of its row in all parts but one, where a plain operation brings that back.

What the other fields and channels of a row say of each number is learned from all other parts of the rows (files,
groups, months, ranges), and held against the numbers of the part. Where far more is left there than anywhere else, and
as little as elsewhere once the number is moved by some rows, turned, reversed, brought to another unit or exchanged
with another one, that is what happened to it. Where nothing brings it back, and the part's own rows tell nothing of it
either, the number does not belong to its row there.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field, by_file, by_folder, told_by_another_field
from traindx_tools.on_data.month_parts import by_month
from traindx_tools.on_data.places import listed, percent, place, short
from traindx_tools.on_data.relation_atoms import Records, design_of, interleaved, levelled, records_of
from traindx_tools.on_data.relation_fits import FEWEST, fits_of
from traindx_tools.on_data.relation_moves import AS_GOOD, BROKEN, CLEAR, LOST, REACH, TOLD, Undone, lost, undone
from traindx_tools.on_data.row_ranges import by_ranges
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.significance import LEVEL
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

MOST_TOTAL = 2_000_000
MOST_FIELD_CUTS = 3
SHOWN = 4

RULE = Rule(
    id="D194",
    name="relation-of-part",
    title="In one part a number is otherwise related to its row",
    severity=Severity.HIGH,
    sees="what the rest of a row says of each number, by a model of all other parts: files, groups, months and ranges",
    matters="Inputs and targets of that part contradict all others; a mean over all rows hides it.",
    alike=("A part with more noise: no operation makes it fit.",
           "A part with a relation of its own, such as another machine: its own rows tell the number.",
           "A unit that a field names: a remark."),
    confirm=("Plot the named number beside what the other fields say of it, in the named part and in another one.",
             "Undo the operation in a copy and compare the error of a linear model on that part."),
    thresholds={
        "told": Threshold(TOLD, "share of the variance", "that the rest of a row tells in the typical part"),
        "clear": Threshold(CLEAR, "share of the variance", "the same for another unit, which may be so by nature"),
        "broken": Threshold(BROKEN, "times the errors", "of the worst other part, at least"),
        "as_good": Threshold(AS_GOOD, "times those", "at most, once the operation is undone"),
        "reach": Threshold(REACH, "rows", "by which a number is moved at most"),
        "lost": Threshold(LOST, "share of the variance", "that is told at most where nothing brings it back"),
        "rows": Threshold(FEWEST, "rows", "of a part"),
        "level": Threshold(LEVEL, "probability", "of one false alarm over all numbers, parts and operations"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """At most one finding for each set: the surest, by what is undone before what is lost."""
    for data in (*view.sets, *view.unfolded):
        group = tuple(s for s in data.shards if s.columns and s.rows)
        if group and sum(s.rows for s in group) <= MOST_TOTAL and sum(s.rows for s in group) >= 3 * FEWEST:
            yield from _of_set(data, group)


def _of_set(data: DataSet, group: Sequence[Shard]) -> Iterator[Finding]:
    fields = list(by_field(group, data.labels))[:MOST_FIELD_CUTS]
    records = records_of(group, frozenset(c.by for c in fields if c.origin))
    if records is None:
        return
    found: list[tuple[Cut, list[Undone], str]] = []
    gone: list[tuple[Cut, list[Undone]]] = []
    for some, cuts in _ways(group, fields, records):
        design = design_of(some)
        for cut in cuts:
            fits = fits_of(design, _member(records, cut), len(cut.names))
            moved = undone(fits, 3.0 * len(cuts))
            if some.of:  # what is no matter of neighbours was looked for already
                moved = [u for u in moved if u.move.kind == "rows"]
            found += [(cut, [u for u in moved if u.atom == atom], some.of)
                      for atom in dict.fromkeys(u.atom for u in moved)]
            if some is records and cut.by in ("", "folder", "name"):  # groups, and each in its own spreads, may differ
                gone += [(cut, [u]) for u in lost(fits, moved)]
    if found:
        best = min(found, key=lambda f: (round((1.0 - f[1][0].after) / max(0.02, 1.0 - f[1][0].typical), 1),
                                         sum(u.log_chance for u in f[1])))
        yield _finding(group, records, *best)
    elif gone:
        yield _finding(group, records, *min(gone, key=lambda g: g[1][0].before - g[1][0].typical), "")


def _ways(group: Sequence[Shard], fields: Sequence[Cut], records: Records) -> Iterator[tuple[Records, list[Cut]]]:
    """Numbers as they are by files, groups, months and ranges, also with the rows of each group behind each other where
    groups take turns; and in each group's own spreads by what groups are.
    """
    files = list(by_file(group))
    origin = next((c for c in fields if c.origin), files[0] if files else None)
    ranges = list(by_ranges(group, origin)) or list(by_ranges(group))
    yield records, [*files, *by_folder(group), *fields, *by_month(group), *ranges]
    turns = (interleaved(records, _member(records, c), c.by) for c in fields) if files else ()
    yield from ((some, files) for some in [next((t for t in turns if t is not None), None)] if some is not None)
    if origin is not None:
        yield levelled(records, _member(records, origin)), [origin, *ranges]


def _member(records: Records, cut: Cut) -> Array:
    return np.concatenate([m[records.row[records.shard == i]] for i, m in enumerate(cut.member)])


def _finding(group: Sequence[Shard], records: Records, cut: Cut, found: Sequence[Undone], of: str) -> Finding:
    first = min(found, key=lambda u: u.part)
    atom = records.atoms[first.atom]
    at = next(i for i, m in enumerate(cut.member) if (m == first.part).any())
    fields = [atom.field] + ([records.atoms[first.move.other].field] if first.move.other >= 0 else [])
    declared = told_by_another_field(group, cut, first.part, fields)
    found = sorted(found, key=lambda u: u.part)
    where = listed([cut.told(u.part) for u in found], SHOWN)
    gone = first.move.kind == "lost"
    said = (f"{atom.name} in {where} {_what(records, first, of)}: the rest of a row tells "
            f"{percent(max(0.0, first.before))} of it there, and {percent(first.typical)} in the typical other part")
    said += ("; a model of its own rows tells as little" if gone
             else f"; once that is undone {percent(max(0.0, first.after))}")
    said += f"; {declared}" if declared else ""
    inside = np.flatnonzero(cut.member[at] == first.part)
    return RULE.finding(
        said,
        place(group[at], atom.field),
        group[at].name,
        bearing=Bearing.SIGN if gone else Bearing.CAUSE,
        severity=Severity.INFO if declared else _severity(cut, first),
        measured={"field": atom.field, "fields": tuple(dict.fromkeys(fields)), "by": cut.by or "file",
                  "part": cut.names[first.part], "parts": len(found), "kind": first.move.kind, "moved": first.move.by,
                  "before": first.before, "after": first.after, "typical": first.typical, "log_p": first.log_chance,
                  "rows": (int(inside[0]), int(inside[-1])), "shard": short(group[at])},
    )


def _severity(cut: Cut, found: Undone) -> Severity:
    """Groups may differ by nature, files and ranges of one making do not; a unit and a loss say least."""
    if found.move.kind in ("lost", "unit"):
        return Severity.LOW if found.move.kind == "unit" else Severity.MEDIUM
    return (Severity.MEDIUM if cut.by else Severity.HIGH) if cut.origin else Severity.LOW


def _what(records: Records, found: Undone, of: str) -> str:
    """What happened to the number; `of`: the field within whose groups rows are counted, "" for all rows."""
    move = found.move
    rows = f"{abs(move.by):.0f} row{'s' * (abs(move.by) != 1)}" + (f" of each {of}" if of else "")
    return {
        "rows": f"is shifted by {rows} (it stands too {'late' if move.by > 0 else 'early'} for the rest of its row)",
        "turned": "has the opposite sign",
        "reversed": "runs backwards against the rest of its rows",
        "unit": f"is {move.by:.4g} times what it is elsewhere (another unit or rate)",
        "exchanged": f"and {records.atoms[move.other].name} are exchanged (swapped)",
        "lost": "does not belong to the rest of its row",
    }[move.kind]


