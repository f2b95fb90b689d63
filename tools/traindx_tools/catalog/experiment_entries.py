"""What the verdicts of experiments are for each failure mode: the same for all, whatever was changed.

An experiment names the modes that it decides (`measured["decides"]`). The symptom gone is a sign of each of them, and
the cause itself where the change undoes one mode alone (`measured["specific"]`: its patch, its shard left out). A
change that took hold and had no effect contradicts them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from traindx_tools.catalog.catalog import Speaks
from traindx_tools.catalog.condition import Condition
from traindx_tools.finding import Bearing

REMOVES, MOVES, NOTHING = "X101", "X102", "X103"
"""The rules of verdicts that say something of a cause; an inconclusive one says nothing."""
OF_MANY = "X105"
"""The rule of a change that stands out of many, in one run each: less than an experiment with other seeds."""
IN_A_STEP = "X301"
"""The rule of a single step that a change heals: it shows less than a run, and rules nothing out."""


@lru_cache(maxsize=1024)
def experiment_entries(mode: str) -> tuple[tuple[Speaks, ...], tuple[Speaks, ...]]:
    """What speaks for a mode, and what against it, of experiments that decide it."""
    named = Condition("decides", rf"~(?:^|,){re.escape(mode)}(?:,|$)")
    better, specific = Condition("better", True), Condition("specific", True)
    pro = (Speaks(REMOVES, "cause", (named, specific), note="undoing it takes the symptom away"),
           Speaks(REMOVES, "sign", (named,), Bearing.SIGN, "the symptom goes with a change that takes it away"),
           Speaks(MOVES, "companion", (named, better), Bearing.SIGN, "the symptom weakens with a change against it"),
           Speaks(OF_MANY, "companion", (named, Condition("kind", "stages")), Bearing.SIGN, "of everything that was "
                  "changed, what takes this away stands out"),
           Speaks(IN_A_STEP, "companion", (named,), note="the step that failed is sound with a change that takes it "
                                                         "away; one step shows less than a run"))
    con = (Speaks(NOTHING, "contradicts", (named,), note="the symptom stays with a change that takes it away"),)
    return pro, con


def decided(modes: Iterable[str]) -> str:
    """Modes as `measured["decides"]` holds them."""
    return ",".join(sorted(modes))
