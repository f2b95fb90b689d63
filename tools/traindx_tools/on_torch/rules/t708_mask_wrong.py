"""A padding mask leaves rows with nothing to look at, or has its meaning the wrong way round.

`kind`: "empty-row" where a row of an `attention_mask` is 0 throughout, or of a `..._padding_mask` true throughout: a
softmax over such a row is 0/0. "inverted" where the token ids say so: every id that the mask keeps is one and the same
(the padding), and those that it hides differ.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.batches import SOURCE, at
from traindx_tools.rules import Rule

RULE = Rule(
    id="T708",
    name="mask-wrong",
    title="A padding mask hides everything, or the wrong part",
    severity=Severity.HIGH,
    sees="two-dimensional mask arguments of the model, with the token ids beside them",
    matters="attention over a row without tokens is NaN or uniform; an inverted mask trains on padding alone",
    alike=("padded rows that fill up a batch and are left out of the loss",),
    confirm=("print(attention_mask.sum(-1).min(), input_ids[attention_mask == 0].unique()[:5])",),
)


@dataclass(frozen=True)
class MaskSeen:
    """One mask of one measured step. `keeps_ones`: 1 marks what is kept; else 1 marks padding."""

    name: str
    keeps_ones: bool
    step: int
    rows: int
    rows_zero: int
    rows_one: int
    ids_where_one: tuple[float, float]
    """Lowest and highest token id where the mask is 1; the lower above the higher where there is none."""
    ids_where_zero: tuple[float, float]

    @property
    def empty(self) -> int:
        """Rows that keep nothing."""
        return self.rows_zero if self.keeps_ones else self.rows_one

    @property
    def inverted(self) -> bool:
        """What is kept is one id throughout, what is hidden differs."""
        kept, hidden = ((self.ids_where_one, self.ids_where_zero) if self.keeps_ones else
                        (self.ids_where_zero, self.ids_where_one))
        return kept[0] == kept[1] and hidden[0] < hidden[1]


def check(masks: Sequence[MaskSeen], rank: int = 0) -> Iterator[Finding]:
    """At most one finding for each mask."""
    for name in dict.fromkeys(m.name for m in masks):
        these = [m for m in masks if m.name == name]
        inverted, empty = [m for m in these if m.inverted], [m for m in these if m.empty]
        if len(inverted) >= 2 and len(inverted) >= 0.8 * len(these):
            yield RULE.finding(
                f"{_meaning(inverted[0])}: it is the wrong way round", at(these[0].step, rank), SOURCE,
                bearing=Bearing.CAUSE, measured={"kind": "inverted", "name": name, "steps": len(inverted)})
        elif empty:
            yield RULE.finding(
                f"{empty[0].empty} of {empty[0].rows} rows of {name} keep nothing at step {empty[0].step} (in "
                f"{len(empty)} of {len(these)} measured steps)", at(empty[0].step, rank), SOURCE,
                bearing=Bearing.CAUSE, severity=Severity.MEDIUM,
                measured={"kind": "empty-row", "name": name, "rows": empty[0].empty, "steps": len(empty)})


def _meaning(m: MaskSeen) -> str:
    if m.keeps_ones:
        return (f"{m.name} keeps nothing but the id {m.ids_where_one[0]:g} and hides ids from "
                f"{m.ids_where_zero[0]:g} to {m.ids_where_zero[1]:g}")
    return (f"{m.name} marks ids from {m.ids_where_one[0]:g} to {m.ids_where_one[1]:g} as padding and keeps nothing "
            f"but the id {m.ids_where_zero[0]:g}")
