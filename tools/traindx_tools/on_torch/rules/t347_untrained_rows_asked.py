"""What is evaluated looks up rows of a table that training never changed.

A row of an embedding learns only where it is looked up. Ids of another vocabulary, positions beyond the lengths that
were trained, a task, a speaker or a step that training never had: the evaluation reads rows that still are what they
were before the first step. `kind`: "beyond": all of them lie behind the last trained row; "all": nothing that is
evaluated was trained; "part". A table of which no row moves, and one in which all do (it is tied to an output), say
nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

SOURCE = "torch probe: table rows"
SHARE, MOST, LOOKUPS, STEPS = 0.25, 0.5, 64, 20

RULE = Rule(
    id="T347",
    name="untrained-rows-asked",
    title="Evaluation looks up rows of a table that were never trained",
    severity=Severity.HIGH,
    sees="rows of embeddings before the first step and at the end, and ids that calls without gradients look up",
    matters="what these rows give is random, or what another training left there",
    alike=("users or items that were held out on purpose: a cold start",
           "rare words of a large vocabulary: a small share",
           "weights that were loaded: rows that stayed may be right (a sign)"),
    confirm=("compare the sets of ids in training and in evaluation: set(evaluated) - set(trained)",),
    thresholds={"share": Threshold(SHARE, "of the look-ups", "rare words stay below"),
                "most": Threshold(MOST, "of the look-ups for a cause", "more than half is no cold start by chance"),
                "steps": Threshold(STEPS, "optimizer steps", "fewer reach few rows")},
)


@dataclass(frozen=True)
class Asked:
    """One table. `untrained`, `of`: look-ups of rows that never changed, and all; `ids`: the lowest and the highest of
    those rows; `trained`: of all that changed; `rows`: how many of the table's `size` changed."""

    table: str
    untrained: int
    of: int
    ids: tuple[int, int]
    different: int
    trained: tuple[int, int]
    rows: int
    size: int
    loaded: bool = False


def check(seen: Sequence[Asked], steps: int, rank: int = 0) -> Iterator[Finding]:
    """At most one finding a table."""
    for a in seen:
        share = a.untrained / max(1, a.of)
        if steps < STEPS or a.of < LOOKUPS or share < SHARE:
            continue
        kind = "beyond" if a.ids[0] > a.trained[1] else "all" if a.untrained == a.of else "part"
        sure = (share >= MOST or kind == "beyond") and not a.loaded
        yield RULE.finding(
            f"{a.untrained:,} of {a.of:,} look-ups in {a.table} without gradients ask for {a.different:,} rows that "
            f"never changed in {steps} steps (ids {a.ids[0]} to {a.ids[1]}); training changed {a.rows:,} of "
            f"{a.size:,} rows (ids {a.trained[0]} to {a.trained[1]})",
            Location(module=a.table, step=float(steps), rank=rank), SOURCE,
            bearing=Bearing.CAUSE if sure else Bearing.SIGN, severity=None if sure else Severity.MEDIUM,
            measured={"kind": kind, "share": round(share, 4), "rows": a.rows, "size": a.size, "loaded": a.loaded,
                      "lowest": a.ids[0], "highest": a.ids[1], "last_trained": a.trained[1]})
