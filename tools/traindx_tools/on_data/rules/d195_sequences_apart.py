"""In one part labels are the ids of their row moved by another number of places than in all others.

A model that shifts its labels itself wants them as they are; one that does not wants them moved by one. Where both do,
each token is paired with the one after the next: the loss is that of a harder task, and no error says so. Which move
makes both sequences of a row equal is told by the row alone; in one file, group or stretch it is another one.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.cuts import Cut, by_field, by_file, in_two, told_by_another_field
from traindx_tools.on_data.places import percent, place, short
from traindx_tools.on_data.sequence_shifts import AGREE, APART, NONE, REACH, REVERSED, UNTOLD, Moves, moves_of
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.stretches import heaviest
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

FEWEST = 20
"""Rows of a part that say something."""
USUAL, HERE = 0.9, 0.8
"""Share of the rows with the usual move in each other part, and with another one in the odd part."""

RULE = Rule(
    id="D195",
    name="sequences-apart",
    title="In one part labels are moved against their ids otherwise than elsewhere",
    severity=Severity.HIGH,
    sees="pairs of sequences of whole numbers of one length, row by row: by how many places one is the other moved",
    matters="Each id is paired with another one than the next: these rows teach another task.",
    alike=("Labels that are masked in part: places below zero say nothing.",
           "Tasks that are mixed row by row: no file, group or stretch stands out."),
    confirm=("Print ids and labels of one row of the named part and of another one, one below the other.",),
    thresholds={
        "agree": Threshold(AGREE, "share of the places", "of a row that agree after its move"),
        "apart": Threshold(APART, "share of the places", "that agree after any other move, at most"),
        "reach": Threshold(REACH, "places", "of a move at most"),
        "usual": Threshold(USUAL, "share of the rows", "of each other part that have the usual move"),
        "here": Threshold(HERE, "share of the rows", "of the part that have another one"),
        "rows": Threshold(FEWEST, "rows", "of the part"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """One finding for each pair of fields and part."""
    for data in view.sets:
        group = tuple(s for s in data.shards if s.columns and s.rows)
        told: set[frozenset[str]] = set()
        for moves in moves_of(group) if group else ():
            found = next(_odd(group, data.labels, moves), None) if frozenset(
                (moves.first, moves.second)) not in told else None
            if found is not None:
                told.add(frozenset((moves.first, moves.second)))
                yield found


def _odd(group: Sequence[Shard], labels: Sequence[str], moves: Moves) -> Iterator[Finding]:
    every = np.concatenate(moves.moves)
    clear = every[(every != UNTOLD) & (every != NONE)]
    if len(clear) < 2 * FEWEST or len(clear) < 0.5 * (every != UNTOLD).sum():
        return
    kinds, counts = np.unique(clear, return_counts=True)
    usual = int(kinds[counts.argmax()])
    for cut in (*by_file(group), *in_two(group), *by_field(group, labels)):
        member = np.concatenate([m[r] for m, r in zip(cut.member, moves.rows, strict=True)])
        for part, move, share in _parts(every, member, len(cut.names), usual):
            yield _finding(group, moves, cut, part, usual, move, share)
    yield from _stretch(group, moves, usual)


def _parts(every: Array, member: Array, parts: int, usual: int) -> Iterator[tuple[int, int, float]]:
    """The parts of another move, where all others have the usual one."""
    found = []
    for part in range(parts):
        own = every[(member == part) & (every != UNTOLD)]
        if len(own) < FEWEST:
            continue
        kinds, counts = np.unique(own, return_counts=True)
        move, share = int(kinds[counts.argmax()]), float(counts.max() / len(own))
        if move == usual and share >= USUAL:
            continue
        if move in (usual, NONE) or share < HERE:
            return
        found.append((part, move, share))
    if len(found) == 1:
        yield found[0]


def _stretch(group: Sequence[Shard], moves: Moves, usual: int) -> Iterator[Finding]:
    """The rows of another move of a file, where they follow each other and are all that there are."""
    for i, shard in enumerate(group):
        own = moves.moves[i]
        odd = (own != usual) & (own != UNTOLD) & (own != NONE)
        if odd.sum() < FEWEST or odd.mean() > 0.6:
            continue
        found = heaviest(np.where(odd, 1.0, np.where(own == usual, -2.0, -0.2)))
        inside = found.inside(len(own))
        kinds, counts = np.unique(own[inside & odd], return_counts=True)
        if odd[inside].sum() < 0.95 * odd.sum() or counts.max() < HERE * (own[inside] != UNTOLD).sum():
            continue
        rows = moves.rows[i][inside]
        cut = Cut("", (f"rows {rows[0]}..{rows[-1]} of {short(shard)}",), tuple(
            np.where((np.arange(s.rows) >= rows[0]) & (np.arange(s.rows) <= rows[-1]) & (s is shard), 0, -1)
            for s in group), True)
        yield _finding(group, moves, cut, 0, usual, int(kinds[counts.argmax()]),
                       float(counts.max() / (own[inside] != UNTOLD).sum()))


def _finding(group: Sequence[Shard], moves: Moves, cut: Cut, part: int, usual: int, move: int, share: float) -> Finding:
    at = next(i for i, m in enumerate(cut.member) if (m == part).any())
    declared = told_by_another_field(group, cut, part, (moves.first, moves.second))
    rows = np.flatnonzero(cut.member[at] == part)
    twice = usual != REVERSED and move == 2 * usual
    said = (
        f"{moves.second} of {cut.told(part)} {'are' if moves.second.endswith('s') else 'is'} {moves.first} "
        f"{_told(move)} in {percent(share)} of its rows, and {_told(usual)} everywhere else"
        + ("; moved once too often" if twice else f"; shifted by {abs(move - usual)}" if REVERSED not in (move, usual)
           else "")
    )
    said += f"; {declared}" if declared else ""
    return RULE.finding(
        said,
        place(group[at], moves.second),
        group[at].name,
        bearing=Bearing.CAUSE,
        severity=Severity.INFO if declared else None if cut.by == "" else Severity.MEDIUM if cut.origin
        else Severity.LOW,
        measured={"field": moves.second, "fields": (moves.second, moves.first), "by": cut.by or "file",
                  "part": cut.names[part], "usual": usual, "move": move, "share": share,
                  "kind": "reversed" if REVERSED in (move, usual) else "moved",
                  "rows": (int(rows[0]), int(rows[-1])), "shard": short(group[at])},
    )


def _told(move: int) -> str:
    if move == REVERSED:
        return "turned around"
    if move == 0:
        return "as it stands, place by place"
    return f"shifted {'left' if move > 0 else 'right'} by {abs(move)}"
