"""Two tensors of a module that determine each other in all modules of a kind do not in one.

A permutation and its inverse, a matrix and its inverse, a scale and its reciprocal, a variance and its root, a mask and
its complement: one of them is stored to spare its computation. Where the relation holds to the last digits in at least
three modules and two thirds of them, the module in which it does not holds one of the two of something else: of another
module, of another step, or from before a change of the first.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights.bound_tensors import FEWEST, RELATIONS, SHARE, Bound, bound
from traindx_tools.on_weights.seen import Seen
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="W160",
    name="bound-tensors",
    title="Two tensors that determine each other do not fit in one module",
    severity=Severity.HIGH,
    sees="Every pair of small tensors of a module, in all modules of a kind: permutations and matrices and their "
         "inverses, reciprocals, roots, logarithms, complements, running sums.",
    matters="One direction of the module (sampling, decoding, the inverse) computes with another value than the other.",
    alike=("tensors that were drawn or learnt each by itself: they are bound in no module",
           "modules of another kind: they hold other tensors, or are too few"),
    confirm=("compute the one from the other, as the code does at the start, and compare",
             "run the module and its inverse one behind the other: the input comes back in all modules but this one"),
    thresholds={
        "modules": Threshold(FEWEST, "modules in which the relation holds, at least", "no chance makes three"),
        "share": Threshold(SHARE, "of the modules of the kind, in which it holds", "else it is a variant"),
    },
)


def check(seen: Seen) -> Iterator[Finding]:
    """Each relation of each kind of module."""
    if seen.main:
        for found in bound(seen.part.tensors):
            yield from (_finding(seen, found, at) for at in range(len(found.broken)))


def _finding(seen: Seen, found: Bound, at: int) -> Finding:
    module, (leaf, owner) = found.broken[at], found.taken[at]
    wrong = leaf or found.other
    beside = found.one if wrong == found.other else found.other
    whose = f"; it is that of {owner}" if owner else ""
    off = f"in {100 * found.distances[at]:.3g} % of the places not" if found.relation == "inverse-order" else (
        f"{found.distances[at]:.3g} away")
    return RULE.finding(
        f"{module}.{wrong} does not fit {module}.{beside}: in {len(found.holds)} other modules of its kind "
        f"{found.other} {RELATIONS[found.relation][0]} {found.one}, here it is {off}{whose} ({seen.path})",
        Location(file=seen.path, module=f"{module}.{wrong}"), seen.path, bearing=Bearing.CAUSE,
        measured={"kind": found.relation, "name": f"{module}.{wrong}", "other": f"{module}.{beside}",
                  "holds": len(found.holds), "taken": owner})
