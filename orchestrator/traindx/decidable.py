"""What could be decided by experiments on a run: the changes of the catalog that have something to take hold of."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.offered import typed
from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.interventions import intervention
from traindx_tools.experiments.interventions.intervention import ANY
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.plan import Decision
from traindx_tools.experiments.preparing import preparing
from traindx_tools.experiments.screening.arms import KINDS, arms_of

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


def commands(report: Examined, modes: Sequence[str], training: str, target: str, workspace: Path) -> Iterator[str]:
    """Commands of the experiments that decide these modes and were not made yet, those of the first mode first.

    `training`: the command that trains; `target`: the path that is diagnosed, quoted; `workspace`: the folder that the
    command is run in. A change that cannot be made in that command is none of them.
    """
    made = {str(f.measured.get("change")) for f in report.seen.findings if f.rule[0] == "X"}
    decisions = [d for d in fitting_decisions(report) if str(d.change) not in made]
    for mode in modes:
        for decision in decisions:
            if mode in decision.removes and _can_be_made([decision.change], training, workspace):
                yield f"traindx experiment {target} --run {typed([training])} --change {typed([str(decision.change)])}"


def can_be_screened(training: str, workspace: Path, code: str) -> bool:
    """Whether a screen of this command would find a setting, one of several like files or a stage to change.

    `code`: the text of the run's code. Nothing is run. Files are looked for last: a folder may hold very many.
    """
    from traindx.screening import stages_in

    try:
        return any(_can_be_made((a.change for a in arms_of(training, workspace, (kind,), stages_in(code))), training,
                                workspace) for kind in sorted(KINDS, key=lambda kind: kind == "files"))
    except BadUsage:
        return False


def _can_be_made(changes: Iterable[Change], training: str, workspace: Path) -> bool:
    """Whether one of the changes can be prepared for the command."""
    prepare = preparing(training, workspace)
    for change in changes:
        try:
            prepare(change, 0)
        except (BadUsage, OSError):
            continue
        return True
    return False
