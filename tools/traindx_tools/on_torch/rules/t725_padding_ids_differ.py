"""Rows are filled up with one id, and the loss or the embedding takes another one for padding.

The id of padding stands in several settings: the value that the collate function fills with, `ignore_index` of the
loss, `padding_idx` of the embedding. Nothing compares them. `kind`: "loss": targets are filled up with an id that the
loss does not ignore, while it was told another one; "embedding": inputs are filled up with another id than the
embedding's padding; "not-told": embedding and data agree, and the loss was told nothing: it trains on padding.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.filling import LENGTHS, ONE, ROWS, STRAY, Filling
from traindx_tools.rules import Rule, Threshold

SOURCE = "ids, targets and settings of the running program"

RULE = Rule(
    id="T725",
    name="padding-ids-differ",
    title="Rows are filled up with another id than the loss or the embedding expects",
    severity=Severity.HIGH,
    sees="what rows of ids and targets are filled up with, ignore_index of the loss, padding_idx of the embedding",
    matters="padding is trained on like text, and a real id is ignored or held at zero",
    alike=("rows whose last symbol repeats by itself: its runs stand within rows too",
           "a loss without reduction or with weights: a mask may follow",),
    confirm=("print(batch[0][-5:], loss.ignore_index, embedding.padding_idx)",),
    thresholds={
        "rows": Threshold(ROWS, "rows that are filled up", "a chance of one in twenty errs in three of them at most"),
        "one": Threshold(ONE, "of them by the same id", "ends of texts differ"),
        "stray": Threshold(STRAY, "of the places before the fill hold it", "padding stands nowhere else"),
        "lengths": Threshold(LENGTHS, "different lengths of the fill", "rows of one length may end in one symbol"),
    },
)


@dataclass
class PaddingRoles:
    """One loss and the ids that went into its model. `ignored`: None where the loss was told nothing."""

    ids: Filling = field(default_factory=Filling)
    targets: Filling = field(default_factory=Filling)
    ignored: int | None = None
    embedding: int | None = None
    step: int = 0


def check(seen: Sequence[PaddingRoles], rank: int = 0) -> Iterator[Finding]:
    """At most one finding for each."""
    for s in seen:
        target, ids = s.targets.filler, s.ids.filler
        if target is not None and s.ignored is not None and target != s.ignored:
            yield _finding(s, "loss", target, s.ignored, rank, (
                f"targets are filled up with id {target} and the loss ignores {s.ignored} (ignore_index): the fill is "
                f"trained on, and {s.targets.before[s.ignored]:,} places with id {s.ignored} are not"))
        elif ids is not None and s.embedding is not None and ids != s.embedding:
            yield _finding(s, "embedding", ids, s.embedding, rank, (
                f"inputs are filled up with id {ids} and padding_idx of the embedding is {s.embedding}, which stands "
                f"in {s.ids.before[s.embedding]:,} other places of the inputs"))
        elif target is not None and s.ignored is None and ids == target == s.embedding:
            yield _finding(s, "not-told", target, target, rank, (
                f"inputs and targets are filled up with id {target}, which is padding for the embedding too, and the "
                f"loss was told no ignore_index: it counts the fill"))


def _finding(s: PaddingRoles, kind: str, filler: int, told: int, rank: int, statement: str) -> Finding:
    rows = s.targets if kind != "embedding" else s.ids
    real = rows.before[told] > 0 and kind != "not-told"
    return RULE.finding(statement + f" ({sum(rows.filled.values()):,} of {rows.rows:,} rows that were looked at)",
                        Location(step=s.step, rank=rank), SOURCE, bearing=Bearing.CAUSE if real else Bearing.SIGN,
                        severity=None if real else Severity.MEDIUM,
                        measured={"kind": kind, "filler": filler, "told": told, "rows": rows.rows})
