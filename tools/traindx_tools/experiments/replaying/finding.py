"""A step's study as a finding, and the failure modes that it speaks for."""

from __future__ import annotations

import math

from traindx_tools.experiments.replaying.changes import CHANGES, NO_UPDATE, PLACING, ROWS
from traindx_tools.experiments.replaying.judging import SAID
from traindx_tools.experiments.replaying.study import PASS, Study
from traindx_tools.finding import Bearing, Finding, Location, Severity, Value
from traindx_tools.rules import Rule, rules_in

ROOM = "traindx_tools.experiments.replaying.rules"
SOURCE = "the step, run again with changes"
MOST_NAMED = 6


def finding_of(study: Study) -> Finding | None:
    """X301 or X302; None where nothing is to be said."""
    return next((f for module in rules_in(ROOM) for f in module.check(study)), None)


def found(rule: Rule, study: Study, *, severity: Severity, bearing: Bearing) -> Finding:
    """A finding of this rule about a step."""
    symptom = study.symptom
    measured: dict[str, Value] = {
        "symptom": symptom.kind, "value": symptom.value, "usual": symptom.usual, "at": study.at,
        "exact": study.exact, "recovered": study.recovered, "late": symptom.late,
        "removes": study.removing, "moves": tuple(t.change for t in study.of("moves")),
        "no_effect": tuple(t.change for t in study.of("no-effect")),
        "untried": tuple(t.change for t in study.of("untried")),
        "table": tuple((t.change, SAID[t.word], t.why[:160]) for t in study.tried), "decides": decides(study),
        "rows": study.rows.found if study.carries and study.rows is not None else (),
        "dataset_rows": study.row_numbers, "runs": study.runs, "seconds": round(study.seconds, 3)}
    return rule.finding(sentence(study), Location(step=symptom.step, rank=study.rank), SOURCE, bearing=bearing,
                        severity=severity, measured={k: v for k, v in measured.items() if v is not None and v != ()})


def decides(study: Study) -> str:
    """The modes that the telling changes undo, as `measured["decides"]` holds them; "" where none is.

    What only broad changes take away is laid to no mode whose own change has no part in the step. Otherwise nothing is
    ruled out by one step: what it leaves as it is may have been done by earlier steps.
    """
    from traindx_tools.catalog.decisions import load_decisions, load_step_decisions
    from traindx_tools.catalog.experiment_entries import decided

    if study.symptom.late:
        return ""
    known = {**{str(d.change): d.removes for d in load_decisions()},
             **{change: d.removes for change, d in load_step_decisions().items()}}
    modes = {m for c in study.telling for m in known.get(c, ())}
    return decided(modes if study.specific else modes - {m for c in study.absent for m in known.get(c, ())})


def sentence(study: Study) -> str:
    """What was seen and what it comes to, with the values."""
    symptom = study.symptom
    parts = [f"step {symptom.step}: {symptom.said}; run again on copies it is {study.same}"]
    if symptom.late:
        parts.append("the losses had left the usual steps before: it ends here and began earlier")
    parts.append(_place(study))
    if study.carries and study.rows is not None:
        rows, few = study.rows.found, len(study.rows.found)
        whose = f"rows {_few([str(r) for r in study.row_numbers])} of the dataset" if study.row_numbers else \
            f"rows {_few([str(r) for r in rows])} of what the step was given"
        parts.append(f"{few} of {study.rows.of} rows carr{'ies' if few == 1 else 'y'} it "
                     f"({whose if few > 1 else whose.replace('rows', 'row', 1)}): alone they show it, without them "
                     "it goes")
    others = [f"{c} ({CHANGES[c].about})" for c in study.removing if c != ROWS]
    if others:
        parts.append(f"it goes with {_few(others)}")
    elif not study.removing:
        parts.append("none of the changes takes it away")
    if study.of_the_batch:
        parts.append("inputs of zeros do not show it: the batch takes part")
    stays = [t.change for t in study.of("no-effect") if t.change not in PLACING]
    if stays:
        parts.append(f"it stays with {_few(stays)}")
    return "; ".join(p for p in parts if p)


def _place(study: Study) -> str:
    control, kind = study.control, study.symptom.kind
    if study.at == PASS:
        known = control.before is not None or any(t.change == NO_UPDATE and t.measured for t in study.tried)
        return "with the parameters before the last update it is there as well" if known else ""
    if kind == "parameters":
        return f"the update (norm {control.update_norm:.3g}) made them" if control.update_norm is not None and \
            math.isfinite(control.update_norm) else "the update made them"
    before = "" if control.before is None else f": the loss of this batch is {control.before:.4g} before it"
    norm = "" if control.update_norm is None else f" (norm {control.update_norm:.3g})"
    return f"the last update{norm} brought it{before}"


def _few(names: list[str]) -> str:
    return ", ".join(names[:MOST_NAMED]) + (f" and {len(names) - MOST_NAMED} more" if len(names) > MOST_NAMED else "")
