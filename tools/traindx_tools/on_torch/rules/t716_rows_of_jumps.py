"""The jumps of the training loss go along with a few rows.

In each step the row with the most loss is known. Where the loss jumps again and again, and the same few rows have more
than half of it there, they are what jumps. `kind`: "extreme-inputs" where their inputs are far beyond those of other
rows, "rows" where they are not: then their targets are to be looked at, which may be heavy-tailed by nature, and
it is reported as low.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.rows import SOURCE, ModelRows
from traindx_tools.rows import jumps
from traindx_tools.rules import Rule, Threshold

BEYOND = 20.0

RULE = Rule(
    id="T716",
    name="rows-of-jumps",
    title="The jumps of the loss come from a few rows",
    severity=Severity.MEDIUM,
    sees="the mean loss of each step, the row with the most of it, and what that row holds",
    matters="each such batch throws the model back, and the curve looks unstable",
    alike=("heavy-tailed targets: many different rows jump", "a learning rate that is too high: no row stands out"),
    confirm=("Look at the named rows.", "Train without them: the jumps are gone."),
    thresholds={
        "times": Threshold(jumps.TIMES, "times the steps around", "batches differ by less"),
        "share": Threshold(jumps.SHARE, "of the batch's loss in one row", "one row is what jumps"),
        "beyond": Threshold(BEYOND, "times the largest value of the middle row", "inputs that are out of all scale"),
    },
)


def check(seen: ModelRows) -> Iterator[Finding]:
    """At most one finding a model."""
    rows = seen.trained_rows
    if rows is None:
        return
    found = jumps.jumps(seen.steps, rows.rows)
    if found is None:
        return
    names, peaks = seen.trained.named(found.rows)
    usual = float(np.median(rows.sums[:, 2]))
    extreme = min(peaks) > BEYOND * usual if usual > 0 and peaks else False
    what = (f"; their inputs reach {min(peaks):.4g} where the middle row reaches {usual:.4g}" if extreme else
            "; their inputs are as large as those of other rows")
    shown = ", ".join(map(str, names[:5])) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
    steps = ", ".join(map(str, found.steps[:5])) + (", ..." if len(found.steps) > 5 else "")
    where = Location(module=seen.model, step=float(found.steps[0]), end_step=float(found.steps[-1]), rank=seen.rank)
    of = f" of {seen.dataset}" if seen.dataset and rows.numbered else ""
    yield RULE.finding(
        f"the {len(found.steps)} jumps of the loss (steps {steps}) come from {len(names)} of {rows.rows} rows "
        f"({'row' if len(names) == 1 else 'rows'} {shown}{of}): "
        f"such a row has a loss of {found.row_loss:.4g}, {found.share:.0%} of its batch, where the middle step has "
        f"{found.usual:.4g}{what}", where, SOURCE,
        severity=RULE.severity if extreme else Severity.LOW,
        bearing=Bearing.CAUSE if extreme else Bearing.SIGN,
        measured={"kind": "extreme-inputs" if extreme else "rows", "jumps": len(found.steps), "rows": len(names),
                  "row": names[0], "numbered": rows.numbered, "row_loss": found.row_loss, "usual": found.usual})
