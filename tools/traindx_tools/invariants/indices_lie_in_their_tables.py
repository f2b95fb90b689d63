"""An index reaches no row that its table does not have.

JAX raises nothing where an index is out of bounds: a lookup is clamped to the last row (take and Embed give NaN), and
ids beyond the table share one row and never learn their own. one_hot makes an all-zero row of a label at or above the
number of classes: labels counted from 1 leave their last class without a target, and output 0 is never asked for.
The label that a cross entropy ignores (255, -100) is no class either: a second term that makes the same target one-hot
fails at the first batch that holds one.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Value
from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.program.constants import Indexing
from traindx_tools.program.program import Program

RULES = pages("constants", ("C260", "C528", "C529"))


def check(program: Program) -> Iterator[Breach]:
    """Compare how far every index reaches with how many rows there are."""
    for one in program.indexings:
        if one.kind == "ignored":
            yield Breach("C260", f"{one.text} at {one.at} makes the raw target one-hot, and the target holds the "
                         f"ignore label, which only the cross entropy at {one.made} skips: no channel of the one-hot",
                         one.at, measured={"kind": "ignored", "label": one.low})
            continue
        if one.high >= one.rows or one.low < -one.rows:
            yield _beyond(one)


def _beyond(one: Indexing) -> Breach:
    reach = f"reaches {one.high:g} (made at {one.made})"
    measured: dict[str, Value] = {"kind": "clamped", "rows": one.rows, "highest": one.high}
    if one.kind == "table":
        return Breach("C529", f"the index of {one.text} at {one.at} {reach}, and the table has {one.rows} rows (0 to "
                      f"{one.rows - 1}): beyond them JAX raises nothing, and all share the last row", one.at,
                      measured=measured)
    counted = "holds labels counted from 1 and " if one.low == 1 else ""
    return Breach("C528", f"{one.text} at {one.at} {counted}{reach}, and there are {one.rows} classes (0 to "
                  f"{one.rows - 1}): a label beyond them gets no target at all", one.at,
                  measured=measured | {"kind": "beyond"})
