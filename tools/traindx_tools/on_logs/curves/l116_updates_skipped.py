"""Lines that say of most updates that they are skipped.

A loop that guards its optimizer leaves out a step whose gradient is not finite or too large, and says so. Now and then
that is its purpose. Where it happens to most steps hardly anything is trained, whatever the loss does: the bound lies
below what gradients usually are, or they are never finite. Steps are told apart by the number that the line states;
where it states none, by the records of the loss, if there is one for each step. What is said of the loss scale is L105.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_logs.announced import reduced_scale
from traindx_tools.on_logs.curves.outcomes import main_loss
from traindx_tools.on_logs.run import Note, Run
from traindx_tools.rules import Rule, Threshold

FEWEST, MOST = 10, 0.5
STATED = 0.9
"""Share of the lines that state a step, from which on they are counted by it."""
_ON_PURPOSE = re.compile(r"resum|already|first \d+ (?:step|batch)|fast.?forward|warm.?up", re.IGNORECASE)
_LEVEL = re.compile(r"^.{0,80}\b(?:WARN(?:ING)?|ERROR|INFO|DEBUG|NOTE)\b[\s\]|:-]*")
_STEP = re.compile(r"\b(?:step|iter(?:ation)?|update|batch)\b\s*[:=#]?\s*(\d{1,12})\b", re.IGNORECASE)

RULE = Rule(
    id="L116",
    name="updates-skipped",
    title="Most updates are skipped",
    severity=Severity.MEDIUM,
    sees="lines that say a step or an update is skipped, and how many steps lie between the first and the last",
    matters="A skipped step trains nothing: the run costs its time and stands nearly still.",
    alike=("A loss scale that finds its range skips a few of the first steps (L105).",
           "Batches that are skipped on purpose: after a restart, up to where the run was."),
    confirm=("Print the number that decides beside its bound for a hundred steps: the bound lies below most of them, "
             "or they are not finite.",
             "Compare the weights before and after a hundred steps: hardly any of them has moved."),
    thresholds={
        "share": Threshold(MOST, "of the steps between the first and the last", "a guard is for exceptions"),
        "fewest": Threshold(FEWEST, "skipped steps", "fewer are the beginning of a run"),
    },
)


def check(run: Run) -> Iterator[Finding]:
    """At most one finding a log."""
    told: dict[str, list[Note]] = {}
    for note in run.notes:
        if note.kind == "step_skipped" and reduced_scale(note) is None and not _ON_PURPOSE.search(note.text):
            told.setdefault(note.source, []).append(note)
    for source, notes in told.items():
        counted = _by_step(notes) or _by_record(run, source, notes)
        if counted is not None and counted[0] >= FEWEST and counted[0] >= MOST * counted[1]:
            yield _finding(source, notes, *counted)


def _by_step(notes: Sequence[Note]) -> tuple[int, int] | None:
    """Distinct steps that are stated, and how many lie from the first to the last; None where they state none."""
    steps = {int(found[1]) for n in notes if (found := _STEP.search(n.text)) is not None}
    stated = sum(_STEP.search(n.text) is not None for n in notes)
    if stated < STATED * len(notes) or len(steps) < 2:
        return None
    return len(steps), max(steps) - min(steps) + 1


def _by_record(run: Run, source: str, notes: Sequence[Note]) -> tuple[int, int] | None:
    """Records of the loss ahead of which a step was skipped, of those in between; None unless each step has one."""
    loss = main_loss(run)
    if loss is None or loss.source != source or loss.unit != "step" or len(loss) < FEWEST:
        return None
    if float(np.median(np.diff(loss.position))) != 1.0:
        return None
    at = np.searchsorted(loss.line, [n.line for n in notes])
    return len(np.unique(at)), int(at.max() - at.min()) + 1


def _finding(source: str, notes: Sequence[Note], skipped: int, steps: int) -> Finding:
    first, last = notes[0], notes[-1]
    return RULE.finding(
        f'{skipped:,} of {steps:,} steps are said to be skipped, from line {first.line} to {last.line}: '
        f'"{_LEVEL.sub("", first.text).strip()[:140]}"', Location(file=source, line=first.line, end_line=last.line,
                                                   quote=first.text[:200]), source,
        bearing=Bearing.SIGN, measured={"skipped": skipped, "steps": steps, "share": round(skipped / steps, 3)})
