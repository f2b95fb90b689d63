"""From a verdict of triage to what a person reads and approves: evidence, hypotheses, options, a Gate 4 diagnosis."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from traindx.code_names import NO_NAMES, CodeNames
from traindx.in_this_run import ThisRun, at_the_line, this_run, with_levels
from traindx.model import Diagnosis, Evidence, Fix, Hypothesis, Instruction, ProposedEdit
from traindx.offers import FREE, Offer
from traindx.places import Places
from traindx.unlogged import with_how
from traindx_tools import triage
from traindx_tools.catalog.catalog import FixPlan, Step
from traindx_tools.examine import Examination
from traindx_tools.finding import Bearing, Finding, Patch, Severity
from traindx_tools.phrases import fill, show
from traindx_tools.symptom import SymptomAnswer
from traindx_tools.weighing import told_by

MOST_VALUES = 6
"""How many measured values of a finding are shown beside its statement."""


@dataclass(frozen=True)
class Exhibits:
    """Every finding under an id of its own: "L101-1" is the first finding of rule L101."""

    ids: dict[int, str]

    @classmethod
    def of(cls, findings: Iterable[Finding], taken: Iterable[str] = ()) -> Exhibits:
        """Ids in order of appearance; `taken` ids are not used again."""
        used, ids = set(taken), {}
        for finding in findings:
            number = 1
            while f"{finding.rule}-{number}" in used:
                number += 1
            ids[id(finding)] = f"{finding.rule}-{number}"
            used.add(ids[id(finding)])
        return cls(ids)

    def __getitem__(self, finding: Finding) -> str:
        return self.ids[id(finding)]


def evidence(finding: Finding, name: str, places: Places) -> Evidence:
    """A finding as evidence: its statement, its measured values and its place."""
    values = [f"{k} = {show(v)}" for k, v in finding.measured.items() if v is not None][:MOST_VALUES]
    return Evidence(
        id=name,
        statement=finding.statement,
        value="; ".join(values) or finding.statement,
        place=places.describe(finding),
        strength=finding.strength.value,
        bearing=finding.bearing.value,
        rule=finding.rule,
        source=places.name(finding.source),
        finding=finding.to_json(),
    )


Fill = Callable[[str, Mapping[str, Any]], str]
"""A command of the catalog and the measured values to the command as it fits here, "" where it does not."""


def in_words(command: str, measured: Mapping[str, Any]) -> str:
    """Offers no command: every check is told in its words alone."""
    return ""


def step_text(step: Step, measured: Mapping[str, Any], command: Fill) -> str:
    """A check in one line: what to do, the command where it fits this workspace, what to expect."""
    made = command(step.command, measured) if step.command else ""
    ran = f" (by hand, in a copy), then `{made}`" if made and step.edited else f": `{made}`" if made else ""
    expect = f" (expected: {fill(step.expect, measured).rstrip('.')})" if step.expect else ""
    return f"{fill(step.do, measured).rstrip('.')}{ran}{expect}"


def measured_of(found: triage.Hypothesis) -> dict[str, Any]:
    """What was measured for a hypothesis; of one value under the same name the strongest finding's."""
    return {k: v for w in reversed(found.speaks_for) for k, v in w.finding.measured.items()}


def code_place(found: triage.Hypothesis, places: Places) -> tuple[str, int] | None:
    """(path, line) of the code the hypothesis is about: the faulty line, else the line its kind of fault is written in.

    The user's frame of a traceback may be only where it surfaced: a line that the failure mode itself is about is
    better than that. Where the run says that the cause itself is at a line, a line of the usual kind is another one.
    """
    seen = _seen_place(found, places)
    if seen is not None:
        return seen
    anchor = places.anchor(found.mode.anchors)
    if anchor is not None:
        return places.name(anchor.file), anchor.line
    return places.code_place(found.location)


def _seen_place(found: triage.Hypothesis, places: Places) -> tuple[str, int] | None:
    """The line at which something was seen, in the code or of a data file in the code that made it."""
    seen = [places.code_place(w.finding.where) for w in found.speaks_for if _proves_a_line(w)]
    direct = next((p for p in seen if p is not None), None)
    if direct is not None:
        return direct
    held = next((w.finding.where for w in found.speaks_for if w.finding.rule[0] == "D"), None)
    if held is not None and (made := places.maker(held)) is not None:
        return made
    raised = (places.code_place(w.finding.where) for w in found.speaks_for if _raised_there(w))
    return next((p for p in raised if p is not None), None)


def _proves_a_line(weighed: triage.Weighed) -> bool:
    """Whether it was found in the code, or seen directly at that line of the running program, or is the line at which
    a change took hold that undoes this cause alone and took the symptom away."""
    finding = weighed.finding
    if finding.rule == "X101" and finding.measured.get("specific") is True and weighed.bearing is Bearing.CAUSE:
        return True
    return weighed.finding.rule[0] == "C" or (
        weighed.finding.rule[0] in "TJRSV" and weighed.bearing is Bearing.CAUSE)


def _raised_there(weighed: triage.Weighed) -> bool:
    """Whether a log names the line at which the cause itself came up, and not only where it surfaced."""
    finding = weighed.finding
    return (finding.rule[0] == "L" and weighed.bearing is Bearing.CAUSE
            and finding.measured.get("surfaced_only") is False)


def location_text(found: triage.Hypothesis, places: Places) -> str | None:
    """`file.py:LINE` of a hypothesis (`file.ipynb:cell 3:LINE`), the file alone where no line of it is known, None
    where no code file is."""
    place, frame = code_place(found, places), found.location
    if frame and frame.file and frame.cell is not None:
        return f"{places.name(frame.file)}{frame.numbers}"
    if place is not None:
        return places.told(*place)
    if not frame or not frame.file or not _is_code(frame.file):
        return None
    return places.name(frame.file) + (f":{frame.line}" if frame.line else "")


def _is_code(file: str) -> bool:
    return file.endswith((".py", ".ipynb", ".yaml", ".yml", ".toml"))


def _weighed(items: Sequence[triage.Weighed], exhibits: Exhibits) -> tuple[str, ...]:
    return tuple(f"[{exhibits[w.finding]}] {w.weight:+.1f} ({w.strength.value}, {w.bearing.value}): "
                 f"{w.finding.statement}" for w in items)


def hypothesis(found: triage.Hypothesis, exhibits: Exhibits, places: Places,
               command: Fill) -> Hypothesis:
    """A ranked hypothesis in the words of the session."""
    measured = measured_of(found)
    confirmed = found.confidence >= triage.CONFIDENT
    return Hypothesis(
        id=found.mode.id,
        failure_mode=found.mode.id,
        issue=_with_place(found, places),
        mechanism=found.mechanism,
        location=location_text(found, places),
        confidence=round(found.confidence, 3),
        confirm=tuple(step_text(s, measured, command) for s in found.mode.confirm),
        rule_out=(*([found.unshown] if found.unshown else []),
                  *(step_text(s, measured, command) for s in found.mode.rule_out)),
        for_=_weighed(found.speaks_for, exhibits),
        against=_weighed(found.speaks_against, exhibits),
        status="confirmed" if confirmed else "open",
    )


def _with_place(found: triage.Hypothesis, places: Places) -> str:
    """The issue, with the code line where the statement does not name it yet; one of the usual kind is said to be."""
    place = location_text(found, places)
    text = found.issue.rstrip(".")
    usual = _seen_place(found, places) is None and places.anchor(found.mode.anchors) is not None
    return f"{text}." if place is None or place in text else f"{text} ({'usually at ' * usual}{place})."


def patches(found: triage.Hypothesis, findings: Sequence[Finding]) -> tuple[Patch, ...]:
    """The certain changes that remove the fault: of the strongest finding that has one, at every place of its rule."""
    out: list[Patch] = []
    for finding in carriers(found, findings):
        out += [p for p in finding.patch if not out or not any(_overlap(p, q) for q in out)]
    return tuple(out)


def carriers(found: triage.Hypothesis, findings: Sequence[Finding]) -> tuple[Finding, ...]:
    """The findings whose changes are taken: the strongest that has one, and those of its rule and severity."""
    first = next((w.finding for w in found.speaks_for if w.finding.patch), None)
    if first is None:
        return ()
    return (first, *(f for f in findings if f.rule == first.rule and f is not first
                     and f.severity is first.severity and f.patch))


def _overlap(one: Patch, other: Patch) -> bool:
    return one.file == other.file and one.line <= max(other.end_line, other.line) and \
        other.line <= max(one.end_line, one.line)


def _edits(changes: Iterable[Patch], places: Places) -> tuple[ProposedEdit, ...]:
    return tuple(ProposedEdit(path=places.name(p.file), line=p.line, end_line=p.end_line, original=p.original,
                              replacement=p.replacement) for p in changes)


def _option(name: str, plan: FixPlan, found: triage.Hypothesis, places: Places, edits: tuple[ProposedEdit, ...],
            fragile: str, here: ThisRun) -> Fix:
    measured = measured_of(found)
    place = code_place(found, places)
    change = here.told(fill(plan.change, measured))
    told = (Instruction(path=place[0], line=place[1], end_line=places.last_line(*place), place=places.told(*place),
                        text=at_the_line(change, place, places)),) if place and not edits else ()  # fmt: skip
    return Fix(
        option="A" if name == "A" else "B",
        summary=fill(plan.summary, measured),
        edits=edits,
        instructions=told,
        metric=here.told(fill(plan.metric, measured)),
        verify=here.told(fill(plan.verify, measured)),
        otherwise=here.told(fill(plan.otherwise, measured)),
        fragile=fragile,
        change="" if edits or told else change,
    )


def edits_of(found: triage.Hypothesis, findings: Sequence[Finding], places: Places) -> tuple[ProposedEdit, ...]:
    """The certain changes of a hypothesis as edits of the workspace's files."""
    return _edits(patches(found, findings), places)


def options(found: triage.Hypothesis, findings: Sequence[Finding], places: Places, offer: Offer = FREE,
            names: CodeNames = NO_NAMES) -> tuple[Fix, ...]:
    """A, the targeted fix (as edits where place and change are certain), and B, the broader one; the preferred first.

    `offer`: what a trial of the edits showed. `names`: those of the code, for the words.
    """
    mode, here = found.mode, this_run(found, places, names)
    edits = () if offer.refused else edits_of(found, findings, places)
    targeted = _option("A", mode.targeted, found, places, edits, mode.will_not_fix[0], here)
    if offer.refused:
        targeted = _told(targeted, f"The diff for this was tried and is not offered: {offer.refused}")
    if offer.remark:
        targeted = targeted.model_copy(update={"change": f"{offer.remark[0].upper()}{offer.remark[1:]}."})
    broader = _option("B", mode.broader, found, places, (), "", here)
    return (broader, targeted) if offer.prefers_other else (targeted, broader)


def _told(fix: Fix, remark: str) -> Fix:
    """The fix in words, with the remark behind what is to be done."""
    if not fix.instructions:
        return fix.model_copy(update={"change": f"{fix.change.rstrip('.')}. {remark}"})
    first = fix.instructions[0]
    text = first.model_copy(update={"text": f"{first.text.rstrip('.')}. {remark}"})
    return fix.model_copy(update={"instructions": (text, *fix.instructions[1:])})


def fix_text(option: Fix) -> str:
    """A fix in words: the summary, then each change with its path and line."""
    lines = [option.summary.rstrip(".") + "."]
    lines += [f"{e.path}:{e.line}: {_change(e)}" for e in option.edits]
    lines += [f"{i.where}: {i.text}" for i in option.instructions]
    lines += [option.change] if option.change else []
    return "\n".join(lines)


def _change(edit: ProposedEdit) -> str:
    old, new = edit.original.strip(), edit.replacement.strip()
    if not old:
        return f"insert `{new}`"
    return f"replace `{old}` by `{new}`" if new else f"delete `{old}`"


def root_cause(found: triage.Hypothesis, exhibits: Exhibits, places: Places) -> str:
    """The cause in one paragraph, each statement with the id of its evidence."""
    first, *others = _distinct(found)
    own = f"{_with_place(found, places).rstrip('.')} [{exhibits[first]}]."
    more = [f"{f.statement.rstrip('.')} [{exhibits[f]}]." for f in others]
    return " ".join([own, *more])


def _distinct(found: triage.Hypothesis) -> tuple[Finding, ...]:
    """What speaks for it, what says the cause first; each finding once, also where two entries weigh it."""
    first = [told_by(found.speaks_for)] if found.speaks_for else []
    return tuple({id(w.finding): w.finding for w in (*first, *found.speaks_for)}.values())


def diagnosis(found: triage.Hypothesis, seen: Examination, exhibits: Exhibits, places: Places,
              command: Fill = in_words, offer: Offer = FREE, names: CodeNames = NO_NAMES) -> Diagnosis:
    """The Gate 4 diagnosis of a hypothesis that findings speak for. `command` fits a check's command to the user's."""
    offered = tuple(fix.model_copy(update={"metric": with_levels(fix.metric, seen.run),
                                           "verify": with_how(fix.verify, fix.metric, seen.run)})
                    for fix in options(found, seen.findings, places, offer, names))
    here = this_run(found, places, names)
    place = code_place(found, places)
    cited = _distinct(found)
    return Diagnosis(
        symptom=symptom_text(seen),
        claim=found.claim,
        root_cause=root_cause(found, exhibits, places),
        why_this_happens=found.mechanism,
        proposed_fix="\n".join(f"{o.option}: {fix_text(o)}" for o in offered),
        will_change=tuple(map(here.told, found.mode.will_change)),
        will_not_fix=tuple(map(here.told, found.mode.will_not_fix)),
        failure_mode=found.mode.id,
        component=place[0] if place else "training script",
        confidence=round(found.confidence, 3),
        location=location_text(found, places),
        severity=found.severity.value,
        cites=tuple(exhibits[f] for f in cited),
        evidence=tuple(evidence(f, exhibits[f], places) for f in cited),
        options=offered,
        first_check=step_text(found.mode.confirm[0], measured_of(found), command) if found.mode.confirm else "",
    )


def symptom_text(seen: Examination) -> str:
    """What was observed: the user's words, then the earliest serious anomaly with its values."""
    serious = [f for f in seen.verdict.anomalies if f.severity.rank >= Severity.MEDIUM.rank and f.rule[0] != "C"]
    told = seen.symptom.strip()
    worst = max(serious, key=lambda f: f.severity.rank, default=None)
    first = "" if worst is None or worst.statement in told else f"Seen: {worst.statement}"
    if told and first and told[-1] not in ".!?":
        told += "."
    answers = " ".join(answered(a) for a in seen.symptom_answers[:3] if a.statement.rstrip(".") not in first)
    if first and answers:
        first = f"{first.rstrip('.')}."
    return " ".join(x for x in (told, first, answers) if x) or seen.verdict.reason


def answered(answer: SymptomAnswer) -> str:
    """What became of a stated symptom, for the Symptom section: seen where and how, or not seen."""
    word = {"seen": "Looked up and seen", "not_seen": "Looked up and not seen"}.get(answer.answer, "Not understood")
    where = f" ({answer.where})" if answer.where else ""
    return f"{word}: {answer.statement.rstrip('.')}{where}."
