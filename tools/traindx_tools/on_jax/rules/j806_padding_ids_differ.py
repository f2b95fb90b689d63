"""Rows are filled up with one id, and the compiled step compares its ids with another one.

The id of padding stands in the code that makes batches and again where masks are made (`ids != 0`). Nothing compares
the two. Told where no mask, no lengths and no negative label among the arguments say what is padding, and where the id
that the step knows is no end that stands before the fill. The twin of T725 and T727.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rows.filling import LENGTHS, ONE, ROWS, STRAY, Filling
from traindx_tools.rules import Rule, Threshold

END, OFTEN = 0.5, 0.05

RULE = Rule(
    id="J806",
    name="jax-padding-ids-differ",
    title="Rows are filled up with another id than the step masks",
    severity=Severity.HIGH,
    sees="what rows of ids are filled up with, and the numbers that a compiled step compares them with",
    matters="padding is trained on like text, and a real id is hidden",
    alike=("an end that is compared for a pooled value: it stands before the fill",
           "masks or lengths among the arguments: nothing is said",
           "a mask token: it stands in many places, a sign at most"),
    confirm=("print(batch[0][-5:]) beside the constant of the mask",),
    thresholds={
        "rows": Threshold(ROWS, "rows that are filled up", "a chance of one in twenty errs in three of them at most"),
        "one": Threshold(ONE, "of them by the same id", "ends of texts differ"),
        "stray": Threshold(STRAY, "of the places before the fill hold it", "padding stands nowhere else"),
        "lengths": Threshold(LENGTHS, "different lengths of the fill", "rows of one length may end in one symbol"),
        "often": Threshold(OFTEN, "of the places hold the masked id, at most, for a cause", "mask tokens are frequent"),
    },
)


@dataclass
class Rows:
    """One argument of a function: its rows, what it is compared with, ids before the fill."""

    argument: str
    compared: frozenset[int]
    filling: Filling = field(default_factory=Filling)
    before: Counter[int] = field(default_factory=Counter)


@dataclass
class Padded:
    """One function. `told`: another argument says what is padding."""

    function: str
    arguments: dict[int, Rows]
    told: bool = False
    place: tuple[str, int] | None = None


def check(seen: Sequence[Padded]) -> Iterator[Finding]:
    """At most one finding a function."""
    for s in seen:
        if s.told or any((r.filling.filler or 0) < 0 for r in s.arguments.values()):
            continue
        every = frozenset().union(*(r.compared for r in s.arguments.values()))
        for rows in s.arguments.values():
            filler = rows.filling.filler
            ended = sum(rows.before.values())
            known = [c for c in rows.compared if rows.before[c] < END * max(1, ended)]
            if filler is None or not known or filler in every:
                continue
            yield _finding(s, rows, filler, known)
            break


def _finding(s: Padded, rows: Rows, filler: int, known: list[int]) -> Finding:
    file, line = s.place or (None, None)
    total = max(1, rows.filling.before.total())
    share = max(rows.filling.before[c] / total for c in known)
    sure = share <= OFTEN
    return RULE.finding(
        f"{s.function}: rows of {rows.argument} are filled up with id {filler} "
        f"({sum(rows.filling.filled.values()):,} of {rows.filling.rows:,} rows that were looked at), and the step "
        f"compares its ids with {', '.join(map(str, sorted(known)[:4]))} alone, which stands in {share:.1%} of the "
        f"places before the fill: the fill is not masked",
        Location(file=file, line=line, module=s.function), "the running process",
        bearing=Bearing.CAUSE if sure else Bearing.SIGN, severity=None if sure else Severity.MEDIUM,
        measured={"kind": "constant" if sure else "often", "filler": filler, "told": min(known),
                  "share": round(share, 5), "function": s.function})
