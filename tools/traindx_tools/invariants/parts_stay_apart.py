"""What is reported as held out was neither trained on nor chosen by, and nothing went from it into what was.

A figure over held-out rows says what a model does with new rows only while nothing went from those rows into it. Rows
that are copied before the split lie on both sides of it, windows that overlap share their samples, statistics and a
choice of columns by labels carry the held-out rows into the inputs; two draws of an order overlap; a loader of the
whole data set, a loss over all nodes, trains on the part that is measured. The best of many epochs by the figure that
is then reported is the luckiest of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.moments import Spot
from traindx_tools.program.program import Program
from traindx_tools.program.rows import Rows, RowUse, Step

RULES = pages("data", ("C371", "C372"))
_SHARED = {
    "copied": "rows are given more than once, and are split afterwards ({cut}): copies of one row lie on both sides",
    "windows": "windows that overlap ({at}) are split at random: held-out windows share samples with those trained on",
    "fitted": "what is fitted sees all rows, and they are split afterwards ({cut}): held-out rows shape the inputs",
    "statistics": "the inputs are scaled by statistics of all rows, which are split afterwards ({cut}): a small leak",
    "labels": "columns are chosen by the labels of all rows, which are split afterwards ({cut}): the labels of the "
              "held-out rows choose their own inputs",
}
_Used = tuple[RowUse, Rows]


def check(program: Program) -> Iterator[Breach]:
    """Look at every pair of rows that are trained on and rows that are evaluated."""
    by_role: dict[str, list[_Used]] = {}
    for use in program.row_uses:
        by_role.setdefault(use.role, []).extend((use, r) for r in use.rows)
    trained = by_role.get("trained", [])
    asked = [u for role in ("evaluated", "told", "chosen") for u in by_role.get(role, [])]
    seen: set[tuple[object, ...]] = set()
    for found in (*(b for one in trained for other in asked for b in _pair(one, other, trained)),
                  *(b for u, r in by_role.get("parted", []) for b in _carried(r, len(r.steps), Step("cut", ("drawn",)),
                                                                              u.at)),
                  *(b for one in by_role.get("compared", []) for other in by_role.get("told", [])
                    for b in _all_nodes(one, other)), *_chosen(program, trained), *_told(program, trained)):
        key = found.id, found.measured["kind"], found.at
        if key not in seen:
            seen.add(key)
            yield found


def _pair(one: _Used, other: _Used, trained: list[_Used]) -> Iterator[Breach]:
    (train, t), (held, e) = one, other
    if t.source == e.source:
        shared = next((i for i, (a, b) in enumerate(zip(t.steps, e.steps, strict=False)) if a != b),
                      min(len(t.steps), len(e.steps)))
        left, right = t.steps[shared:], e.steps[shared:]
        if left and right and left[0].kind == right[0].kind == "cut" and left[0].by == right[0].by:
            yield from _carried(t, shared, left[0], left[0].at)
            yield from (b for step in left if step.kind == "fitted" and step in right
                        for b in _carried(replace(t, steps=(*t.steps[:shared], step)), shared + 1, left[0], left[0].at)
                        if b.at == (step.handed or step.at))
        elif left and right and right[0].by == ("slice",) and _is_draw(left[0]) and isinstance(
                left[0].by[-1], frozenset) and (t.source, t.steps[:shared]) in left[0].by[-1] and (
                    right[0].parted or held.says in ("val", "test")):
            yield _breach("C371", f"batches are drawn of all rows, also of those that are evaluated at {held.at}",
                          left[0].at, "whole")
        elif right and _is_draw(right[0]):
            if left and _is_draw(left[0]) and held.says in ("val", "test"):
                yield _breach("C371", f"the rows of the figure at {held.at} come of another draw than those that are "
                              f"trained on ({left[0].at}): most held-out rows are trained on", right[0].at, "two draws")
            elif not left and (right[0].parted or held.says in ("val", "test")) and not any(
                    right[0].by in (s.by for s in r.steps) for _, r in trained):
                yield _breach("C371", f"the rows that are evaluated at {held.at} are taken of all rows, on all of "
                              f"which the model is trained at {train.at}", right[0].at, "whole")


def _carried(rows: Rows, shared: int, cut: Step, split: Spot | None) -> Iterator[Breach]:
    """What was done to all rows before a split, and carries something over it."""
    for i, step in enumerate(rows.steps[:shared]):
        if step.kind in _SHARED and _reaches(step, rows, i, cut):
            at = split if step.kind == "windows" else step.handed or step.at
            kind = "statistics" if (step.kind, step.part) == ("fitted", "statistic") else step.kind
            yield _breach("C371", _SHARED[kind].format(at=step.at, cut=split), at, kind)


def _reaches(step: Step, rows: Rows, at: int, cut: Step) -> bool:
    if step.kind in ("windows", "copied"):
        return step.kind == "copied" or _is_draw(cut)
    masks = [s for s in rows.steps[:at] if s.kind == "cut" and s.by[0] == "mask"]
    return step.part != "numbering" and bool(step.by) and all(
        source == rows.source and all(s.kind != "cut" or s in masks for s in steps) for source, steps in step.by)


def _is_draw(step: Step) -> bool:
    return step.kind == "cut" and step.by[0] in ("order", "drawn")


def _all_nodes(one: _Used, other: _Used) -> Iterator[Breach]:
    """A loss over all rows of which a mask takes those that are reported."""
    (train, t), (held, e) = one, other
    masks = [s for s in e.steps if s not in t.steps]
    if (t.source, t.column) == (e.source, e.column) and t.whole and not t.cuts and held.says in ("val", "test") and (
            masks and all(s.kind == "cut" and s.by[0] == "mask" for s in masks)):
        yield _breach("C371", f"the loss compares all rows, also those of the mask at {masks[0].at} over which the "
                      f"figure at {held.at} is taken", train.at, "all nodes")


def _chosen(program: Program, trained: list[_Used]) -> Iterator[Breach]:
    """What decides which model is kept, and is then the only figure that is told behind the training."""
    fed = {_named(r) for _, r in trained}
    late = [(u, {_named(r) for r in u.rows} - fed) for u in program.row_uses if u.role == "told" and u.late]
    for choice in (u for u in program.row_uses if u.role == "chosen"):
        by = {_named(r) for r in choice.rows} - fed
        found = next((u for u, rows in late if u.says == "test" and rows == by), None)
        if by and found is not None and all(rows <= by for _, rows in late):
            yield _breach("C372", f"{choice.text} keeps the best model, or stops, by the rows over which "
                          f"{found.text[:60]} at {found.at} then reports: the best of many looks at the test part",
                          choice.at, "chosen")


def _told(program: Program, trained: list[_Used]) -> Iterator[Breach]:
    """A figure that is told as that of held-out rows, all of which are trained on; not where two paths meet in it."""
    fed = {_named(r): u for u, r in trained}
    asked = {_named(r) for u in program.row_uses if u.role == "evaluated" for r in u.rows}
    for use in (u for u in program.row_uses if u.role == "told" and u.says in ("val", "test")):
        named = {_named(r) for r in use.rows}
        if not use.meets and any(r.cuts for r in use.rows) and named <= fed.keys() and named & asked:
            yield _breach("C371", "the figure is told as that of held-out rows, and is taken of rows that are trained "
                          f"on at {fed[min(named, key=str)].at}", use.at, "same rows")


def _named(rows: Rows) -> object:
    return rows.bare, rows.column, rows.place


def _breach(rule: str, text: str, at: Spot | None, kind: str) -> Breach:
    assert at is not None
    return Breach(rule, f"At {at} {text}", at, measured={"kind": kind},
                  severity=Severity.LOW if kind == "statistics" else None)
