"""Ids reach beyond the rows of a table, and the compiled program takes the last row, or NaN, without a word.

XLA raises no error: `table[ids]` takes the last row for every id beyond it, `jnp.take` and flax's `Embed` give NaN,
which a mask may hide. `kind`: "clamped" or "filled" (a sign: ids beyond are a usual way to leave something out);
"counted" where positions count further than the table has rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule

RULE = Rule(
    id="J807",
    name="jax-ids-beyond-table",
    title="Ids beyond a table, which JAX does not report",
    severity=Severity.HIGH,
    sees="the indices of look-ups in compiled functions that are arguments as they came, against the rows looked up in",
    matters="all ids beyond the table share its last row, and never get one of their own",
    alike=("an id that is guarded by a `where`, a minimum or a modulus: not meant",
           "padding of graphs by an index beyond the nodes, with take in mode fill: a sign at most"),
    confirm=("print(int(ids.max()), table.shape[0])",),
)


@dataclass
class Beyond:
    """One look-up. `beyond`, `of`: ids that lie beyond the `rows`, and all that were looked at; `names`: whose."""

    function: str
    argument: str
    rows: int
    filled: bool
    beyond: int = 0
    of: int = 0
    highest: int = 0
    file: str | None = None
    line: int | None = None


def check(seen: Sequence[Beyond]) -> Iterator[Finding]:
    """One finding for each look-up that reaches beyond its table."""
    for s in seen:
        if not s.beyond:
            continue
        kind = "counted" if not s.argument else "filled" if s.filled else "clamped"
        what = (f"positions count up to {s.highest}" if kind == "counted" else
                f"{s.beyond:,} of {s.of:,} ids of {s.argument} that were looked at lie beyond (up to {s.highest})")
        then = "they become NaN or are left out" if s.filled else (
            "each is taken for the last row, and JAX does not say so")
        yield RULE.finding(
            f"{s.function} looks up in {s.rows} rows and {what}: {then}",
            Location(file=s.file, line=s.line, module=s.function), "the running process",
            bearing=Bearing.SIGN if s.filled else Bearing.CAUSE, severity=Severity.MEDIUM if s.filled else None,
            measured={"kind": kind, "rows": s.rows, "highest": s.highest, "beyond": s.beyond, "of": s.of,
                      "function": s.function})
