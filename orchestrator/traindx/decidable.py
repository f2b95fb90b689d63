"""What could be decided by experiments on a run: the changes of the catalog that have something to take hold of."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from traindx.offered import typed
from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.interventions import intervention
from traindx_tools.experiments.interventions.intervention import ANY
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.plan import Decision

if TYPE_CHECKING:
    from traindx.examined import Examined

def fitting_decisions(report: Examined, outcome: Outcome | None = None) -> Iterator[Decision]:
    """The decisions of the catalog whose change has something to take hold of in this run's code and can decide.

    `outcome`: what is measured; by default what the symptom and the record say.
    """
    measured = outcome or choose(report.seen.symptom, report.seen.run, report.seen.findings)
    here = Circumstances.of(report.seen.code, report.seen.findings)
    for decision in load_decisions() if here.code else ():
        held = any(f == ANY or here.has(f) for f in intervention(decision.change.name).frameworks)
        if held and decision.decides(measured) and (not decision.needs or re.search(decision.needs, here.code)):
            yield decision


def commands(report: Examined, modes: Sequence[str], training: str, target: str) -> Iterator[str]:
    """Commands of the experiments that decide these modes and were not made yet, those of the first mode first.

    `training`: the command that trains, quoted; `target`: the path that is diagnosed, quoted.
    """
    made = {str(f.measured.get("change")) for f in report.seen.findings if f.rule[0] == "X"}
    decisions = list(fitting_decisions(report))
    for mode in modes:
        for decision in decisions:
            if mode in decision.removes and str(decision.change) not in made:
                yield f"traindx experiment {target} --run {training} --change {typed([str(decision.change)])}"
