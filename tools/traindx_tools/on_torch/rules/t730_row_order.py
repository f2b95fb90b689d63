"""The loss, or a state that is carried on, needs the rows in an order, and the loader gives them in a random one.

The risk sets of a Cox loss are sums over all rows before a row: they mean something where the rows stand in the order
of their times. A penalty on neighbours wants them to be neighbours, a carried hidden state wants the next batch to hold
the continuation of the same sequences. Most losses do not care; whether one does is asked of it: the outputs and the
targets of a step are put in another order, all in the same, and the loss is computed again. `kind`: "cumulative" (a
row's part is made of all rows before it), "neighbours" (any other way: pairs may be random on purpose, it says little),
"carried" (what a model gave for row i is given back to it with row i of the next batch).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: order of rows"
FEWEST_STEPS, FEWEST_ROWS = 3, 8
APART = 1e-3
"""Share of the loss by which it has to differ in each other order: sums in another order differ by some 1e-6."""

RULE = Rule(
    id="T730",
    name="row-order",
    title="Rows are shuffled, and the loss or a carried state needs their order",
    severity=Severity.HIGH,
    sees="the loss of one step with its rows in three other orders; what a model is given again in the next step; and "
         "how the loader's sampler orders rows",
    matters="the loss holds no information about what the order stood for, and states belong to other sequences",
    alike=("a loss that sorts its rows itself, or a collate function that does: it stays",
           "rows that are joined in pairs at random, on purpose: neighbours, told as a remark",
           "a loader that keeps the order of the data set"),
    confirm=("traindx experiment . --run CMD --change no-shuffle (where the data set stands in the order)",
             "order = torch.randperm(len(out)); print(loss(out, y), loss(out[order], y[order]))"),
    thresholds={"apart": Threshold(APART, "of the loss, in each of three orders", "sums in another order: 1e-6"),
                "rows": Threshold(FEWEST_ROWS, "rows of a batch", "fewer may stand in an order by chance"),
                "steps": Threshold(FEWEST_STEPS, "steps into which a state is carried", "no slip of one")},
)


@dataclass(frozen=True)
class RowOrder:
    """A loss that is another one for the same rows in another order. `others`: what it is then."""

    loss: float
    others: tuple[float, ...]
    rows: int
    operation: str
    """The first one whose result does not follow the rows; "" where none is known."""
    cumulative: bool
    """It makes the result at a row of all rows before it: no pairing of rows by chance."""
    file: str | None = None
    line: int | None = None


@dataclass(frozen=True)
class Carried:
    """A state that a model gets back: the argument, and in how many steps it was seen."""

    model: str
    argument: str
    rows: int
    steps: int


def check(seen: RowOrder, loader: str, step: int, rank: int = 0) -> Iterator[Finding]:
    """`loader`: what draws the rows at random, in words."""
    others = " / ".join(f"{v:.4g}" for v in seen.others)
    by = f" ({seen.operation} reads them in their order)" if seen.operation else ""
    where = Location(file=seen.file, line=seen.line, step=float(step), rank=rank)
    yield RULE.finding(
        f"the loss of one batch is {seen.loss:.4g}, and {others} where the same {seen.rows} rows come in another "
        f"order{by}; {loader} draws them at random, and nothing sorts them", where, SOURCE,
        severity=Severity.HIGH if seen.cumulative else Severity.INFO,
        bearing=Bearing.CAUSE if seen.cumulative else Bearing.COMPANION,
        measured={"kind": "cumulative" if seen.cumulative else "neighbours", "operation": seen.operation,
                  "rows": seen.rows, "loss": seen.loss, "other": seen.others[0]})


def check_carried(seen: Carried, loader: str, step: int, rank: int = 0) -> Iterator[Finding]:
    """A state that goes along with rows that are drawn at random."""
    if seen.steps < FEWEST_STEPS:
        return
    yield RULE.finding(
        f"what {seen.model} gave for row i of a batch is given back to it as {seen.argument} with row i of the next "
        f"one ({seen.steps} steps, {seen.rows} rows), and {loader} draws the rows at random: the state belongs to "
        "another sequence", Location(module=seen.model, step=float(step), rank=rank), SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": "carried", "argument": seen.argument, "rows": seen.rows, "steps": seen.steps})
