"""Parameters for which a step computes an update do not change from call to call.

The sums of all arrays that a step gets back from its last call are compared between calls that lie far apart. An array
that the step returns as it came in is frozen on purpose and left out, and so is one that no gradient can reach (J301
says where it is cut). What a mask of the optimizer freezes is a remark, unless its matrices still are to the last digit
what an initialiser draws: then they were never loaded either ("frozen-fresh"). Where nothing changes at all the
learning rate is 0 or the update is lost; where only half precision arrays rest, updates are rounded away.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="J703",
    name="jax-parameters-unchanged",
    title="Updates do not change the parameters",
    severity=Severity.HIGH,
    sees="sums of the arrays that a step carries on, in two calls that lie far apart",
    matters="the loss may go down by the other parameters and hides it",
    alike=("layers frozen by a mask of the optimizer",
           "a warm-up from 0 in the first calls"),
    confirm=("print the norm of the update beside that of the parameter",),
)


def check(function: str, names: Sequence[str], calls: int, total: int, half: bool,
          place: tuple[str, int] | None, drawn: Sequence[str] = ()) -> Iterator[Finding]:
    """The finding for the named arrays of `total` that did not change in `calls` calls. `half`: all of them are.
    `drawn`: the matrices among them with their initialisers, where all still are what these draw."""
    everything = len(names) == total
    file, line = place or (None, None)
    where = Location(file=file, line=line) if file is not None else Location(module=function)
    first = ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "")
    what = f"none of {total} arrays of its state changed" if everything else (
        f"{len(names)} of {total} arrays of its state did not change ({first})")
    why = ": updates are smaller than half the spacing of the half-precision numbers" if half and not everything else ""
    if drawn and not everything:
        why += (f"; they still are what their initialisers draw ({', '.join(drawn[:2])}"
                f"{f' and {len(drawn) - 2} more' if len(drawn) > 2 else ''}): neither trained nor loaded")
    part = Severity.MEDIUM if half else Severity.LOW if drawn else Severity.INFO
    yield RULE.finding(
        f"{function}: {what} in {calls} calls although an update is computed for them{why}", where,
        "the running process", bearing=Bearing.SIGN,
        severity=None if everything else part,
        measured={"arrays": tuple(names[:50]), "count": len(names), "total": total, "calls": calls, "half": half,
                  "everything": everything, "function": function,
                  "kind": "everything" if everything else "frozen-fresh" if drawn else "part"})
