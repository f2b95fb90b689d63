"""A random key is used once.

JAX's random functions are pure: the same key gives the same numbers. A key that was split must not be used again itself
(its children are derived from it), two samplers need two keys, and whatever repeats needs a new one each time: a loop,
the rounds of `lax.scan` (a key in the carry that goes on as it came, or one from outside of the body), a function that
trains and is called with one key, a key in the training state that no step changes, and a mapped function that ignores
its argument and draws with one key from outside, so that all members of an ensemble are equal.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Severity
from traindx_tools.invariants.breach import Breach, Remedy, pages
from traindx_tools.program.known import Known
from traindx_tools.program.moments import Act
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment
from traindx_tools.program.traced import SharedKey

RULES = pages("jax", ("C501", "C563"))
_KINDS = {"reuse": "reuse", "loop": "constant key in a loop", "scan": "constant key in a scan",
          "call": "constant key in each call", "state": "constant key in each call", "map": "mapped",
          "list": "constant key in each row", "rows": "constant key in each row"}


def check(program: Program) -> Iterator[Breach]:
    """Look at every key that is shared, each place once."""
    told: set[str] = set()
    for one in program.shared_keys:
        if str(one.at) not in told:
            told.add(str(one.at))
            yield _breach(one)


def _breach(one: SharedKey) -> Breach:
    if one.kind == "reuse":
        said = f"The key used by {one.text} at {one.at} {one.why}"
    else:
        said = f"{one.text} at {one.at} draws the same numbers each time: {one.why}"
    severity = Severity.LOW if one.by_path else Severity.HIGH if one.trains and one.certain else Severity.MEDIUM
    remedy = Remedy("another key", Act(Moment.FORWARD, one.at, origin=one.origin)) if one.origin is not None else None
    return Breach("C563" if one.kind == "map" else "C501", said, one.at,
                  Known.GUESSED if one.by_path else Known.DERIVED, {"kind": _KINDS[one.kind]}, severity, remedy)
