"""What could be decided by experiments on a run: the changes of the catalog that have something to take hold of."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from traindx.offered import typed
from traindx_tools.catalog.catalog import load_catalog
from traindx_tools.catalog.decisions import load_decisions
from traindx_tools.catalog.fitting import Circumstances
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.interventions import intervention
from traindx_tools.experiments.interventions.intervention import ANY
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.plan import LEAST_BITS, Choice, Decision, beliefs_of, weighed, with_seen
from traindx_tools.experiments.preparing import preparing
from traindx_tools.experiments.screening.arms import KINDS, Arm, arms_of
from traindx_tools.experiments.trace import LOOKED_FOR_BY_ITSELF, Trace

if TYPE_CHECKING:
    from traindx.examined import Examined

_ENDS_A_RUN = frozenset({"crash", "memory"})
"""Symptoms of failure modes that can raise an error: what only makes a loss worse explains none, and an error that is
gone with a change says nothing for it."""


def fitting_decisions(report: Examined, outcome: Outcome | None = None,
                      parts: Mapping[str, str] | None = None) -> Iterator[Decision]:
    """The decisions of the catalog whose change has something to take hold of in this run and can decide.

    `outcome`: what is measured; by default what the symptom and the record say. `parts`: what a run was seen to have
    (`Trace.parts`); without it the code says what there is.
    """
    measured = outcome or choose(report.seen.symptom, report.seen.run, report.seen.findings)
    here = Circumstances.of(report.seen.code, report.seen.findings)
    known = load_catalog()
    for each in load_decisions() if here.code else ():
        decision = each
        if measured.kind in ("error", "exit"):
            decision = replace(each, removes=frozenset(m for m in each.removes if _ENDS_A_RUN & {*known[m].symptoms}))
        if each.removes and not decision.removes:
            continue
        held = any(f == ANY or here.has(f) for f in intervention(decision.change.name).frameworks)
        if held and decision.decides(measured) and decision.fits(here.code, parts or {}):
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


def stages_in(code: str) -> Iterator[Decision]:
    """Those that take something away from the training; rates and other values are settings."""
    for decision in load_decisions():
        stage = not decision.change.options or decision.change.name == "env"
        if decision.needs and stage and decision.fits(code, {}):
            yield decision


def can_be_screened(training: str, workspace: Path, code: str) -> bool:
    """Whether a screen of this command would find a setting, one of several like files or a stage to change.

    `code`: the text of the run's code. Nothing is run. Files are looked for last: a folder may hold very many.
    """
    try:
        return any(_can_be_made((a.change for a in arms_of(training, workspace, (kind,), stages_in(code))), training,
                                workspace) for kind in sorted(KINDS, key=lambda kind: kind == "files"))
    except BadUsage:
        return False


def beliefs_about(report: Examined) -> dict[str, float]:
    """How likely each failure mode is: those that something speaks for, and those of the same symptoms."""
    hypotheses = [(h.mode.id, h.confidence) for h in report.seen.verdict.hypotheses if h.speaks_for]
    shown = {s for h in report.seen.verdict.hypotheses for s in h.mode.symptoms}
    shown |= {s for a in report.seen.symptom_answers for s in a.symptom.kinds}
    alike = [m.id for m in load_catalog().values() if shown & set(m.symptoms) and not m.effect]
    return beliefs_of(hypotheses, alike)


def why_chosen(choice: Choice, parts: Mapping[str, str]) -> str:
    """What it would decide, and what of this program it takes hold of."""
    suspects = ", ".join(choice.suspects[:3]) or "what is not named yet"
    seen = choice.decision.seen(parts)
    return f"would decide {suspects}{f' ({seen})' if seen else ''}; {choice.bits:.2f} bits for {choice.seconds:.0f} s"


def arranged(arms: Sequence[Arm], report: Examined | None, control: Trace, outcome: Outcome) -> list[Arm]:
    """The arms of a screen as they are tried once the run as it is is known: what tells most of the suspects first.

    Changes of the catalog that have nothing to take hold of in the run are left out, those that would tell something
    come first, and each says why. The order of the others stays. `report`: None where nothing could be read.
    """
    beliefs = with_seen(beliefs_about(report) if report is not None else {}, load_decisions(), control.parts)
    told: dict[str, Choice] = {}
    sought = not control.parts.keys() <= LOOKED_FOR_BY_ITSELF
    for decision in load_decisions():
        if decision.decides(outcome) and (decision.fits("", control.parts) if decision.has and sought else True):
            told[str(decision.change)] = weighed(decision, beliefs, control.seconds)
    gone = {str(d.change) for d in load_decisions() if d.has and sought and not d.fits("", control.parts)}
    kept = [a for a in arms if a.own or str(a.change) not in gone]
    kept = [replace(a, why=a.why or why_chosen(told[str(a.change)], control.parts)) if str(a.change) in told else a
            for a in kept]

    def bits(arm: Arm) -> float:
        choice = told.get(str(arm.change))
        return choice.bits if choice is not None and choice.bits >= LEAST_BITS else 0.0

    return sorted(kept, key=lambda a: (not a.own, -bits(a)))


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
