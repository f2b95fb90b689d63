"""What keeps the best checkpoint, stops early or lowers the rate looks for the better value of its metric.

Told the wrong way, it takes the worst epoch for the best one: the checkpoint that is kept is the one to throw away, the
run stops as soon as it improves, the rate is lowered while the loss falls. Defaults differ: ReduceLROnPlateau and
Lightning's callbacks look for a minimum, the Trainer of transformers for a maximum unless the name of the metric ends
in "loss".
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.invariants.breach import Breach, pages
from traindx_tools.knowledge.metrics import better
from traindx_tools.program.program import Program

RULES = pages("metrics", ("C241",))
_WORD = {"min": "smaller", "max": "larger"}


def check(program: Program) -> Iterator[Breach]:
    """Look at everything that watches a metric by its name."""
    told: set[str] = set()
    for watch in program.watches:
        way = better(watch.metric)
        if not way or way == watch.looks_for or str(watch.at) in told:
            continue
        told.add(str(watch.at))
        given = f" (given at {watch.given_at})" if watch.given_at else ""
        how = "is told to look" if watch.said else "looks, where nothing is said,"
        why = f"and {watch.metric} is better when it is {_WORD[way]}"
        yield Breach("C241", f"{watch.kind} at {watch.at} {how} for the {_WORD[watch.looks_for]} {watch.metric}{given}"
                     f", {why}", watch.at, measured={"kind": "direction", "metric": watch.metric, "better": way})
