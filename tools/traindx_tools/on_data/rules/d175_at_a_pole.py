"""The code takes a function of a field, or divides by it, and rows hold values there at which that is not finite.

`log` of 0 is -inf and of what is below 0 NaN, `log1p` of -1 is -inf, `sqrt` of what is below 0 and `arccos` of what is
above 1 are NaN, a division by 0 is infinite; so is what they make of `x + c`, `c - x` and `c * x`. The text of
the code says what is done with the field (`code_poles.py`), or with an expression of several (`a / (b - c)`,
`log(x * y - z)`, `expression_poles.py`), which is computed for each row; where it names the field in any comparison,
filter or bound, that is taken for heed, and nothing is said: of an expression also where it cannot be computed.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_data.column import Array
from traindx_tools.on_data.expression_poles import Several, fields_at, pair_of
from traindx_tools.on_data.places import listed, of, percent, place, rows, short
from traindx_tools.on_data.shard import Shard
from traindx_tools.on_data.view import View
from traindx_tools.rules import Rule

RULE = Rule(
    id="D175",
    name="at-a-pole",
    title="A field holds values where what the code does with it is not finite",
    severity=Severity.HIGH,
    sees="logarithms, roots, arcs and divisions by a field in the code, perhaps with a number, and its values",
    matters="One such row makes the loss of its batch infinite or NaN, and the next step every weight.",
    alike=("Rows that the code leaves out or bounds before: a text that compares the field is taken for that.",
           "A mark such as -1 that another line takes out without naming the field."),
    confirm=("Compute the named line for the named row.",),
)


def check(view: View) -> Iterator[Finding]:
    """Nothing: what is done with a field is the code's to say, and `code_poles.at_poles` asks it."""
    return iter(())


def finding_of(shard: Shard, field: str, bad: Array, what: str, kind: str, at: str, siblings: int) -> Finding:
    """`bad`: the rows at the pole. `what`: the operation as it stands at `at`. `siblings`: files without such rows."""
    values = shard.columns[field].values[bad]
    low, high = float(values.min()), float(values.max())
    said = f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    beside = f"; {siblings} other file{'s hold' if siblings > 1 else ' holds'} none" if siblings else ""
    return RULE.finding(
        f"{of(field, shard)} is {said} in {len(bad):,} of {shard.rows:,} rows ({percent(len(bad) / shard.rows)}: "
        f"{rows(shard, bad)}), and {at} takes {what}, which is not finite there{beside}",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        measured={"field": field, "kind": kind, "count": len(bad), "rows": tuple(int(i) for i in bad[:20]),
                  "shard": short(shard)},
    )


def finding_of_several(shard: Shard, use: Several, bad: Array, siblings: int) -> Finding:
    """The same of an expression of several fields. `bad`: the rows at the pole."""
    made = pair_of(use, shard)
    assert made is not None
    values = np.broadcast_to(made[0], shard.rows)[bad]
    low, high = float(values.min()), float(values.max())
    value = "0" if use.division else f"{low:.4g}" if low == high else f"{low:.4g} to {high:.4g}"
    first = ", ".join(f"{n} {v:.6g}" for n, v in fields_at(use, shard, int(bad[0])).items())
    beside = f"; {siblings} other file{'s hold' if siblings > 1 else ' holds'} none" if siblings else ""
    return RULE.finding(
        f"{use.told} is {value} in {len(bad):,} of {shard.rows:,} rows of {short(shard)} "
        f"({percent(len(bad) / shard.rows)}: {rows(shard, bad)}; the first has {first}), and {use.file}:{use.line} "
        f"takes {use.text}, which is not finite there{beside}",
        place(shard, use.names[0]),
        shard.name,
        bearing=Bearing.CAUSE,
        title=f"An expression of {listed(use.names, 3)} is where what the code does with it is not finite",
        measured={"field": use.names[0], "fields": use.names, "expression": use.told, "kind": use.kind,
                  "count": len(bad), "rows": tuple(int(i) for i in bad[:20]), "shard": short(shard)},
    )


def finding_of_total(shard: Shard, field: str, bad: Array, count: int, said: tuple[str, str, str]) -> Finding:
    """The same of the sum (the largest, the length) of a row of a matrix. `said`: it, what is made of it, and where."""
    total, use, at = said
    shown = ", ".join(str(int(i)) for i in bad[:5]) + (f" and {len(bad) - 5} more" if len(bad) > 5 else "")
    return RULE.finding(
        f"{total} is 0 in {len(bad):,} of {count:,} rows of {short(shard)} ({percent(len(bad) / count)}: rows {shown}"
        f"), and {at} divides by it ({use}): these rows become infinite or NaN",
        place(shard, field),
        shard.name,
        bearing=Bearing.CAUSE,
        title="What the code divides a row by is 0 in some rows",
        measured={"field": field, "expression": total, "kind": "division", "count": len(bad),
                  "rows": tuple(int(i) for i in bad[:20]), "shard": short(shard)},
    )
