"""Different values of a column become one when it is converted, or where it is computed with: clocks, numbers of items.

Seconds since 1970 in float32 come in steps of 128: rows that are seconds apart are one moment afterwards. JAX keeps 32
bits unless it is told otherwise, and arithmetic of whole numbers with floats gives float32 in torch and in JAX. A
feature of its own (an age, a trend) loses nothing that matters; a phase, a difference or a lookup loses everything:
the same run in double precision tells which.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_variables.digits import OFFSET
from traindx_tools.on_variables.filling import line_that_makes
from traindx_tools.on_variables.look import Place
from traindx_tools.on_variables.narrowed import DISTINCT, LOST, Narrowed
from traindx_tools.rules import Rule, Threshold

SOURCE = "variables of the running program"

RULE = Rule(
    id="V107",
    name="values-merged",
    title="Different values of a column become one in fewer bits",
    severity=Severity.MEDIUM,
    sees="what is given to torch.tensor, torch.as_tensor, jnp.asarray, jnp.array and jax.device_put beside what they "
         "make of it, and columns of whole numbers that the program holds: how many different values are left",
    matters="phases, differences, lookups and orders that are computed from it are those of other rows",
    alike=("a time that is a feature of its own: rounding by seconds changes nothing", "measurements, which carry more "
           "digits than anybody needs: no offset and no whole numbers", "numbers that are only compared or hashed as "
           "whole numbers"),
    confirm=("traindx experiment . --run CMD --change float64",
             "print(len(np.unique(x)), len(np.unique(np.float32(x))))"),
    thresholds={"lost": Threshold(LOST, "of the different values", "fewer may be repeated measurements"),
                "distinct": Threshold(DISTINCT, "different values", "fewer are classes"),
                "offset": Threshold(OFFSET, "spread over magnitude of what is no whole number", "as of V102")},
)


def check(seen: Sequence[tuple[Place, int | None, Narrowed]], rank: int = 0) -> Iterator[Finding]:
    """One finding for each line or variable; at most three. What was converted comes before what might be."""
    told: set[tuple[str, str, int | None]] = set()
    for (file, function, path), line, n in sorted(seen, key=lambda s: s[2].computed):
        leaf = path.replace("[*]", "")
        if (file, leaf, line) in told or len(told) >= 3:
            continue
        told.add((file, leaf, line))
        what = f"`{leaf}{n.column}`" + (f" of {function}()" if function else "") if leaf else (
            f"column {n.column} that is converted here" if n.column else "what is converted here")
        how = (f"is held as {n.before}, and arithmetic with floats makes {n.after} of it" if n.computed else
               f"comes as {n.before} and becomes {n.after}")
        yield RULE.finding(
            f"{what} ({n.low:,.0f} to {n.high:,.0f}) {how}, in steps of {n.step:g} there: of {n.distinct:,} different "
            f"values in {n.rows:,} rows {n.left:,} are left",
            Location(file=file, line=line_that_makes(file, function, leaf) if leaf else line, rank=rank), SOURCE,
            bearing=Bearing.SIGN,
            measured={"kind": "computed" if n.computed else "converted", "variable": leaf + n.column or "a column",
                      "dtype": n.after, "step": n.step, "low": n.low, "high": n.high, "rows": n.rows,
                      "distinct": n.distinct, "left": n.left})
