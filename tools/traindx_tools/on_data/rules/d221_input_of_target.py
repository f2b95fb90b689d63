"""Training rows compute an input from their own target, and held-out rows compute it from other columns.

Means over the last days, sums of a group, ranks: made with the row itself in the warehouse, and without it where the
outcome is not known yet. Both equations hold to rounding, so the column is one and the same in name only.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.exact_relations import EXACT
from traindx_tools.on_data.places import number, place, short
from traindx_tools.on_data.target_equations import FEWEST, NEEDED, SEEN, MadeOfTarget, made_of_target
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule, Threshold

SHOWN = 8

RULE = Rule(
    id="D221",
    name="input-of-target",
    title="An input contains the target in training, and not in held-out rows",
    severity=Severity.HIGH,
    sees="linear equations of each column that hold to rounding, by file of training and of each other split",
    matters="The model reads the target off the input in training, and finds nothing there where it counts.",
    alike=("An equation with the target in all files: the target in other words, and no other fault of held-out rows.",
           "Held-out rows whose target is wrong: their input obeys no other equation.",
           "Means of earlier rows in all files."),
    confirm=("Compute the named equation for ten rows of the training file, with the target and without.",),
    thresholds={
        "exact": Threshold(EXACT, "of a spread", "that may be left of both equations: rounding"),
        "needed": Threshold(NEEDED, "times", "what is left, at least, once the target is taken out of training's"),
        "seen": Threshold(SEEN, "of a spread", "the same, and what training's equation leaves in held-out rows"),
        "rows": Threshold(FEWEST, "rows", "of each file"),
    },
)


def check(view: View) -> Iterator[Finding]:
    """A finding for each equation, of the column that is most likely made by it, by the first held-out file."""
    for data in view.sets:
        by_terms: dict[frozenset[str], list[MadeOfTarget]] = {}
        for found in made_of_target(data):
            by_terms.setdefault(frozenset({found.column, *(n for n, _ in found.equation)}), []).append(found)
        yield from (_finding(min(same, key=_unlikely)) for same in by_terms.values())


def _unlikely(found: MadeOfTarget) -> tuple[bool, float]:
    """Sums and means add up what they are made of; solved for one of their terms the equation takes others away."""
    weights = [a for _, a in found.equation]
    return min(weights) < 0, sum(map(abs, weights))


def _finding(found: MadeOfTarget) -> Finding:
    return RULE.finding(
        f"{found.column} of {short(found.train)} contains the target {found.target}: it is {_sum(found.equation)} "
        f"there, and {_sum(found.other)} in {short(found.held_out)} (both to {number(max(found.left[:2]))} of a "
        f"spread; without {found.target} {number(found.left[2])} is left of the first, and {number(found.broken)} of "
        f"it in {short(found.held_out)}): the target leaks into an input of all rows of training",
        place(found.train, found.column),
        found.train.name,
        bearing=Bearing.CAUSE,
        measured={"field": found.column, "fields": (found.column,), "target": found.target,
                  "terms": tuple(n for n, _ in found.equation), "others": tuple(n for n, _ in found.other),
                  "held_out": found.held_out.name, "left": found.left[0], "shard": short(found.train),
                  "kind": "input-of-target"},
    )


def _sum(terms: tuple[tuple[str, float], ...]) -> str:
    """`0.1429 times (sold + lag_1 + lag_2)`, or each with its factor; without the constant."""
    first = terms[0][1]
    if len(terms) > 1 and all(abs(a / first - 1) < 2 * EXACT for _, a in terms):
        return f"{number(first)} times the sum of " + ", ".join(n for n, _ in terms[:SHOWN])
    said = [f"{number(a)} times {n}" if abs(a - 1) > EXACT else n for n, a in terms[:SHOWN]]
    return " plus ".join(said) + (" and more" if len(terms) > SHOWN else "")
