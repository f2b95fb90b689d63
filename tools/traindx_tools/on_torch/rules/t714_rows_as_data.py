"""The rows that reached the model, judged as data files are: do labels belong to inputs, are evaluated rows copies.

What lies in files and what reaches a model can be two things: rows are sorted, joined, shifted, augmented on the way.
The captured rows are put in the order of their dataset, as blocks of it where there are enough, trained and evaluated
ones as two splits, and the checks of `on_data` are asked (the rule that spoke stands in `as`). `kind`: "shifted" and
"shuffled" (labels against inputs, D109; by other numbers of rows in other parts too), "evaluation-shuffled" (those of
evaluated rows), "evaluation-otherwise" (they follow otherwise from inputs that have the same statistics), "shard"
(labels of a block are numbered otherwise, D108), "split" (those of evaluated rows are), "changed-copies" (evaluated
rows are changed copies of trained ones, D114).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Column
from traindx_tools.on_data.rules import d108_label_map, d109_pairing, d114_near_copies
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.table import DataSet
from traindx_tools.on_data.tasks import tasks_of
from traindx_tools.on_data.view import View
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows.alignment import BLOCK as BLOCK_ROWS
from traindx_tools.rows.alignment import alignment
from traindx_tools.rows.book import RowsSeen
from traindx_tools.rows.profile import together
from traindx_tools.rows.relation import relation
from traindx_tools.rules import Rule

BLOCK, MOST_BLOCKS, MOST_ROWS, LEAST = 200, 12, 6000, 200

RULE = Rule(
    id="T714",
    name="rows-as-data",
    title="Labels do not belong to the inputs that reach the model, or evaluated rows are copies of trained ones",
    severity=Severity.HIGH,
    sees="rows as the model gets them, with the targets of its loss, in the order of the dataset",
    matters="such labels teach nothing, and scores on copies count what was memorised",
    alike=("a relation that no simple model sees: nothing is said of it",
           "frames of one video or smooth series: alike by nature, within training as well"),
    confirm=("Look at ten pairs of input and label as the training loop gets them.",),
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """The findings of the checks on files that are more than remarks, at most one of a kind."""
    rows, held_out = seen.trained_rows, seen.evaluated_rows
    if rows is None or rows.rows < LEAST:
        return
    told: set[str] = set()
    for view, rules in _views(rows, held_out):
        for rule in rules:
            with np.errstate(all="ignore"):
                for f in rule.check(view):
                    kind = str(f.measured["kind"])
                    if kind == "shuffled" and f.measured.get("shard") == "evaluated rows":
                        kind = "evaluation-shuffled"
                    if kind == "other-relation" and f.measured.get("shard") == "evaluated rows" and _alike(seen):
                        kind = "evaluation-otherwise"
                    if f.severity in (Severity.INFO, Severity.LOW) or kind in told or kind == "other-relation":
                        continue
                    told.add(kind)
                    yield _finding(seen, f, kind)
    if not told & {"shifted", "shuffled", "shard"}:
        yield from _in_pieces(seen, rows)


def _alike(seen: ModelRows) -> bool:
    """Whether evaluated inputs have the statistics of trained ones: then no other domain explains another relation."""
    for role, name in seen.profiles:
        trained, evaluated = (together(seen.profiles.get((r, name), ())) for r in ("trained", "evaluated"))
        if role == "trained" and (trained is None or evaluated is None or relation(trained, evaluated) is not None):
            return False
    return True


def _in_pieces(seen: ModelRows, rows: RowsSeen) -> Iterator[Finding]:
    """Labels that are off by other numbers of rows in other parts."""
    if not _labelled(rows):
        return
    chosen = np.flatnonzero(np.isfinite(rows.label))[:MOST_ROWS]
    for task in tasks_of(_view([_shard("training rows", "train", rows, chosen)]).sets[0])[:1]:
        found = alignment(task)
        if found is None:
            continue
        at = rows.order[chosen]
        parts = ", ".join(f"rows {at[p.first]} to {at[p.last]} when moved by {-p.shift:+d}" if p.shift else
                          f"rows {at[p.first]} to {at[p.last]} as they are" for p in found.pieces[:6])
        of = f" of {seen.dataset}" if seen.dataset else ""
        yield RULE.finding(
            f"labels{of} are off by other numbers of rows in other parts (they fit {parts}, within {BLOCK_ROWS} rows): "
            f"a simple model goes {max(0.0, found.before):.0%} of the way from guessing to perfect as they are, and "
            f"{found.after:.0%} after moving them back", seen.where, SOURCE, bearing=Bearing.CAUSE,
            measured={"kind": "shifted", "pieces": len(found.pieces), "skill": found.after, "before": found.before})


def _labelled(rows: RowsSeen) -> bool:
    return rows.kind in ("classes", "squared") and rows.numbered and float(np.isfinite(rows.label).mean()) > 0.9


def _views(rows: RowsSeen, held_out: RowsSeen | None) -> Iterator[tuple[View, tuple[Any, ...]]]:
    labelled = np.isfinite(rows.label)
    if _labelled(rows):
        chosen = np.flatnonzero(labelled)[:MOST_ROWS]
        yield _view([_shard("training rows", "train", rows, chosen)]), (d109_pairing,)
        blocks = min(MOST_BLOCKS, len(chosen) // BLOCK)
        if blocks >= 4:
            parts = np.array_split(chosen, blocks)
            yield _view([_shard(f"rows {rows.order[p[0]]} to {rows.order[p[-1]]}", "train", rows, p) for p in parts]), (
                d109_pairing, d108_label_map)
        if held_out is not None and np.isfinite(held_out.label).mean() > 0.9 and held_out.rows >= LEAST // 2:
            yield _view(_both(rows, held_out, chosen)), (d109_pairing, d108_label_map)
    if held_out is not None and held_out.rows >= 20 and held_out.x.shape[1] == rows.x.shape[1] >= 8 and not rows.ids:
        mine = _shard("trained rows", "train", rows, np.arange(min(rows.rows, MOST_ROWS)), labels=False)
        theirs = _shard("evaluated rows", "validation", held_out, np.arange(min(held_out.rows, 1000)), labels=False)
        yield _view([mine, theirs]), (d114_near_copies,)


def _both(rows: RowsSeen, held_out: RowsSeen, chosen: NDArray[np.int64]) -> list[Shard]:
    """Three blocks of trained rows, and the evaluated ones."""
    parts = np.array_split(chosen, 3)
    known = np.flatnonzero(np.isfinite(held_out.label))[:MOST_ROWS]
    return [*(_shard(f"trained rows, part {k + 1}", "train", rows, p) for k, p in enumerate(parts)),
            _shard("evaluated rows", "validation", held_out, known)]


def _view(shards: list[Shard]) -> View:
    return View((DataSet("rows", tuple(shards)),))


def _shard(name: str, split: str, rows: RowsSeen, which: NDArray[np.int64], *, labels: bool = True) -> Shard:
    columns = {"inputs": _inputs(name, rows, which)}
    if labels:
        values = rows.label[which].astype(np.int64 if rows.kind == "classes" else np.float64)
        columns["labels"] = Column("labels", "number", values, name)
    return Shard(name, "rows", columns, len(which), len(which), split)


def _inputs(name: str, rows: RowsSeen, which: NDArray[np.int64]) -> Column:
    if not rows.ids:
        return Column("inputs", "number", rows.x[which].astype(np.float32), name)
    tokens = rows.x[which].astype(np.int64)
    return Column("inputs", "sequence", tokens.reshape(-1), name, np.arange(len(tokens) + 1) * tokens.shape[1])


def _finding(seen: ModelRows, f: Finding, kind: str) -> Finding:
    of = f" of {seen.dataset}" if seen.dataset else ""
    made = RULE.finding(f"of the rows{of} as {seen.model} gets them: {f.statement}", seen.where, SOURCE,
                        bearing=f.bearing, severity=f.severity,
                        measured={**{k: v for k, v in f.measured.items() if k != "rows"}, "kind": kind, "as": f.rule})
    return replace(made, title=f.title)
