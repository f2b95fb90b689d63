"""What is reported as held out was neither trained on, nor chosen by, nor prepared together with what was trained on.

A figure over held-out rows says what a model does with new rows only while nothing went from those rows into it. Rows
that are copied before the split lie on both sides of it, windows that overlap share their samples, statistics and a
choice of columns by labels carry the held-out rows into the inputs; two draws of an order overlap; a loader of the
whole data set, a loss over all nodes, trains on the part that is measured. The best of many epochs by the figure that
is then reported is the luckiest of them. A statistic or a vocabulary that is taken anew from held-out rows puts them
into other units than those that were trained.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach
from traindx_tools.invariants.pages import pages
from traindx_tools.program.program import Program
from traindx_tools.program.rows import Rows, RowUse, Step

RULES = pages("data", ("C371", "C372", "C373"))
_LISTED = ("glob", "rglob", "iterdir", "listdir", "ImageFolder")
"""Folders of classes are the same in each part."""
_SHARED = {
    "copied": "rows are given more than once at {at}, before they are split at {cut}: copies of one row lie on both sides",
    "windows": "windows overlap ({at}) and are split at random at {cut}: held-out windows share samples with trained ones",
    "fitted": "what is fitted at {at} sees all rows, and they are split afterwards at {cut}: held-out rows shape the inputs",
    "labels": "columns are chosen at {at} by the labels of all rows, which are split afterwards at {cut}: the labels of "
              "the held-out rows choose their own inputs",
}


def check(program: Program) -> Iterator[Breach]:
    """Look at every pair of rows that are trained on and rows that are evaluated."""
    trained = [(u, r) for u in program.row_uses if u.role == "trained" for r in u.rows]
    compared = [(u, r) for u in program.row_uses if u.role == "compared" for r in u.rows]
    asked = [(u, r) for u in program.row_uses if u.role in ("evaluated", "told", "chosen") for r in u.rows]
    seen: set[tuple[object, ...]] = set()
    for found in (*(b for t in trained for a in asked for b in _pair(t, a, trained)),
                  *(b for t in compared for a in asked for b in _all_nodes(t, a)), *_chosen(program, trained)):
        key = found.id, found.measured["kind"], found.at
        if key not in seen:
            seen.add(key)
            yield found


def _pair(one: tuple[RowUse, Rows], other: tuple[RowUse, Rows], trained: list[tuple[RowUse, Rows]]) -> Iterator[Breach]:
    (train, t), (held, e) = one, other
    shared = 0
    while shared < min(len(t.steps), len(e.steps)) and t.steps[shared] == e.steps[shared]:
        shared += 1
    a = t.steps[shared] if shared < len(t.steps) else None
    b = e.steps[shared] if shared < len(e.steps) else None
    if t.source == e.source and a is not None and b is not None and a.kind == b.kind == "cut" and a.by == b.by:
        for i, step in enumerate(t.steps[:shared]):
            if step.kind in _SHARED and _reaches(step, t, i, a):
                at = a.at if step.kind == "windows" else step.at or a.at
                yield _breach("C371", _SHARED[step.kind].format(at=step.at, cut=a.at), at, step.kind)
    elif t.source == e.source and b is not None and _is_draw(b) and (a is None or a.kind != "cut" or _is_draw(a)):
        if a is not None and a.kind == "cut" and held.says in ("val", "test"):
            yield _breach("C371", f"the rows that are trained on (drawn at {a.at}) and those of the figure at {held.at} "
                          f"(drawn at {b.at}) come of two draws of an order: most held-out rows are trained on", b.at,
                          "two draws")
        elif a is None and b.parted and not any(b.by in (s.by for s in r.steps) for _, r in trained):
            yield _breach("C371", f"the model is trained at {train.at} on all rows, also on those that are cut from them "
                          f"at {b.at} and evaluated at {held.at}", b.at, "whole")
    yield from _otherwise(t, e)


def _reaches(step: Step, rows: Rows, at: int, cut: Step) -> bool:
    """Whether what was done before a split carries something over it."""
    if step.kind == "windows":
        return _is_draw(cut)
    if step.kind == "copied":
        return True
    masks = [s for s in rows.steps[:at] if s.kind == "cut" and isinstance(s.by, tuple) and s.by[0] == "mask"]
    return step.part != "numbering" and all(
        source == rows.source and all(s.kind != "cut" or s in masks for s in steps)
        for source, steps in step.by)  # type: ignore[attr-defined]


def _is_draw(step: Step) -> bool:
    return step.kind == "cut" and isinstance(step.by, tuple) and step.by[0] in ("order", "drawn")


def _otherwise(t: Rows, e: Rows) -> Iterator[Breach]:
    for i, one in enumerate(t.steps):
        for j, other in enumerate(e.steps):
            if one.kind == other.kind == "noise" and one.by == other.by and one.at != other.at:
                yield _breach("C373", f"the held-out rows are changed at random: {one.part} is on by default, for training "
                              f"({one.at}) and, as nothing turns it off, at {other.at}", other.at, "noise")
            if one.kind == other.kind == "fitted" and one.at == other.at and one != other and one.part == other.part:
                own = one.by == frozenset({(t.source, t.steps[:i])}), other.by == frozenset({(e.source, e.steps[:j])})
                listed = other.part == "numbering" and isinstance(e.source, tuple) and e.source[-1] in _LISTED
                if all(own) and not listed:
                    yield _breach("C373", f"the {other.part} at {other.at} is taken of the rows that it is given, of the "
                                  "training rows and anew of the held-out rows: the two come in different units",
                                  other.at, str(other.part))


def _all_nodes(one: tuple[RowUse, Rows], other: tuple[RowUse, Rows]) -> Iterator[Breach]:
    """A loss over all rows of which a mask takes those that are reported."""
    (train, t), (held, e) = one, other
    masks = [s for s in e.steps if s not in t.steps]
    if t.source == e.source and t.column == e.column and held.role == "told" and held.says in ("val", "test") and (
            t.whole and masks and all(s.kind == "cut" and isinstance(s.by, tuple) and s.by[0] == "mask" for s in masks)
            and not any(s.kind == "cut" for s in t.steps)):
        yield _breach("C371", f"the loss at {train.at} compares all rows, also those of the mask at {masks[0].at} over which "
                      f"the figure at {held.at} is taken", train.at, "all nodes")


def _chosen(program: Program, trained: list[tuple[RowUse, Rows]]) -> Iterator[Breach]:
    """What decides which model is kept, and is then the figure of the test."""
    fed = {r.bare for _, r in trained}
    for choice in (u for u in program.row_uses if u.role == "chosen"):
        by = {r.bare for r in choice.rows} - fed
        for late in (u for u in program.row_uses if u.role == "told" and u.late and u.says == "test"):
            if by and by == {r.bare for r in late.rows}:
                yield _breach("C372", f"{choice.text} at {choice.at} keeps the best model, or stops, by the rows over which "
                              f"{late.text[:60]} at {late.at} then reports: the best of many looks at the test part", choice.at,
                              "chosen")


def _breach(rule: str, text: str, at: object, kind: str) -> Breach:
    return Breach(rule, f"At {at} " + text, at, measured={"kind": kind})  # type: ignore[arg-type]
