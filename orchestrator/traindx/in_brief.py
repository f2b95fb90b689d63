"""What a brief page says of a diagnosis: sentences of this run before those of the catalog, each thing once.

Plain values out of a `View`; `terminal_brief` lays them out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from traindx.view import ANSWERS, View
from traindx.weights_told import Weight, weights_of
from traindx_tools.finding import Finding
from traindx_tools.on_logs.readers.unread import share
from traindx_tools.on_logs.run import Run
from traindx_tools.triage import SUSPECTED

WORTH_A_LINE = 0.05
"""Confidence from which a suspect or a rival is named."""

_LIST = re.compile(r" \((?!or\b)[^()\d]{20,}\)")
"""What a sentence of the catalog lists in brackets: the kinds of a cause, of which a run has one."""
_ONE_PLACE = re.compile(r"[^\s,]+(?::cell \d+(?: output)?)?:\d+")
_THEIRS = re.compile(r""" --(run|verify) (?:'[^']*'|"[^"]*"|\\.|[^\s'"\\])+""")
_RELATIVE_WORTH = ((" --budget ", 0), (" --line ", 0), (" --name ", 0), (" --screen", 2), ("traindx experiment ", 1),
                   ("traindx debug ", 0), (" --run ", 1), ("traindx diagnose ", 3), ("traindx plot ", 5),
                   ("traindx ", 4))  # fmt: skip
"""Of equal ones the first of the list is taken. A run with instruments makes the experiments that decide by itself, and
so stands before a single one; a screen comes behind both: that is many runs, and says less of each."""
_SHOWS = dict(_RELATIVE_WORTH)["traindx "]
"""The worth from which on commands show and decide nothing; the picture comes last, for the report holds it already."""
_WHAT_IT_DOES = (
    (" --line ", "reads these lines too; the names in braces are a guess: put the right ones"),
    (" --name ", "says what a name stands for; loss is a guess: put the right one"),
    ("traindx debug ", "shows the fix with its side effects, asks you, applies and verifies it"),
    (" --budget ", "makes the experiments that the budget left out"),
    (" --screen", "changes everything that can be changed, one at a time, and says what carries it"),
    ("traindx experiment ", "decides it: one change against a control, in protected copies"),
    ("traindx replay ", "runs what it failed on once more, with one change at a time"),
    (" --run ", "proves it: runs it again with instruments, then with one change at a time, in protected copies"),
    ("traindx run ", "runs it again with instruments attached"),
    ("traindx diagnose ", "reads the log together with the training code"),
    ("traindx hang ", "lays the logs of all ranks side by side: which one is odd, and where it left the others"),
    ("traindx data ", "looks into the data files: extremes, odd files, labels, what is in both splits"),
    ("traindx weights ", "looks into the checkpoint: what is wrong in it, and in which tensor"),
    ("traindx audit ", "reads the training code alone, without running it"),
    ("traindx try ", "shows what is known of the program from its text"),
    ("traindx isolate ", "finds the smallest difference between a good and a bad run that brings it"),
    ("traindx fingerprint ", "keeps or compares what a run was given"),
    ("traindx jaxpr ", "shows what the JAX function became, line by line"),
    ("traindx log ", "prints every metric, step by step"),
    ("traindx plot ", "draws the curves, with what was seen marked in them"),
    ("traindx explain ", "prints the page of the first suspect"),
)


@dataclass(frozen=True)
class Said:
    """A sentence and the place that belongs to it."""

    text: str
    place: str = ""


@dataclass(frozen=True)
class Answer:
    """What became of one quoted symptom: each thing that was looked up, in a sentence."""

    quote: str
    told: tuple[Said, ...]


def sentences(view: View, hypothesis: Mapping[str, Any]) -> list[Said]:
    """A hypothesis in one or two sentences: what this run or its code shows of the cause itself, then what that is."""
    claim, shown = view.split(str(hypothesis["issue"]))
    claim = without_lists(claim)
    first = next((f for f, w in _cited(view, hypothesis) if w.bearing == "cause" and shown.startswith(
        f.statement.rstrip("."))), None)
    if first is None:
        return [Said(view.named(claim), str(hypothesis.get("location") or ""))]
    said = view.named(first.statement)
    return [Said(said, str(hypothesis.get("location") or "")), Said(f"That is: {claim}")]


def evidence(view: View, hypothesis: Mapping[str, Any]) -> list[Said]:
    """What speaks for a hypothesis and was not said in its sentences."""
    told = " ".join(s.text for s in sentences(view, hypothesis))
    return [s for s in (_said(view, f, w.id) for f, w in _cited(view, hypothesis)) if s.text not in told]


def counter(view: View, hypothesis: Mapping[str, Any]) -> list[Said]:
    """What speaks against a hypothesis."""
    return [_said(view, f, w.id) for f, w in _cited(view, hypothesis, "against")]


def rivals(view: View) -> list[Mapping[str, Any]]:
    """The other hypotheses that evidence speaks for and that are worth a line."""
    return [h for h in view.supported[1:] if h["confidence"] >= WORTH_A_LINE]


def suspect(view: View) -> Mapping[str, Any] | None:
    """The first hypothesis where it is likelier than not to be looked at first; else None."""
    first = next(iter(view.supported), None)
    return first if first is not None and first.get("for") and first["confidence"] >= SUSPECTED else None


def observed(view: View, but: str = "") -> list[Said]:
    """What was seen to be wrong, the worst first and of equals the earliest; not what `but` says already.

    What carries the cause that is suspected stands in front: without it nobody sees why that one is.
    """
    findings = dict(view.findings)
    first = suspect(view)
    carries = {w.id for _, w in _cited(view, first)[:1]} if first is not None else set()
    worst = sorted(view.timeline, key=lambda m: (m.id not in carries, -findings[m.id].severity.rank))
    told = [_said(view, findings[m.id], m.id) for m in worst]
    return [s for s in dict.fromkeys(told) if s.text not in but]


def answers(view: View, above: str = "") -> list[Answer]:
    """What the person described, each of their sentences once, with all that was looked up for it.

    `above`: what was told before, and is not told again.
    """
    quoted: dict[str, list[Mapping[str, Any]]] = {}
    for told in view.described:
        quoted.setdefault(str(told["said"]), []).append(told)
    return [Answer(said, _merged(_told(view, of, above))) for said, of in quoted.items()]


def _merged(told: Iterable[Said]) -> tuple[Said, ...]:
    """Equal sentences once, with all their places."""
    places: dict[str, list[str]] = {}
    for said in told:
        places.setdefault(said.text, []).append(said.place)
    return tuple(Said(text, ", ".join(dict.fromkeys(p for p in at if p))) for text, at in places.items())


def _told(view: View, of: Sequence[Mapping[str, Any]], above: str) -> Iterator[Said]:
    by_cause = [t for t in of if view.explained_by_first(t)]
    if by_cause:
        places = ", ".join(dict.fromkeys(_place_of(view, t) for t in by_cause if t["where"]))
        yield Said("seen, and this cause would give it", places)
    for told in (t for t in of if t not in by_cause):
        yield _looked_up(view, told, above)


def _looked_up(view: View, told: Mapping[str, Any], above: str) -> Said:
    """One answer: seen with its values, to be expected and why, not seen and what is asked for."""
    statement = view.named(str(told["statement"])).rstrip(".")
    place = _place_of(view, told) if told["where"] else ""
    if told.get("refuted"):
        return Said(f"not so in what was recorded: {statement}", place)
    if told.get("expected"):
        return Said(f"{ANSWERS[told['answer']]}, and to be expected: {view.named(str(told['expected']))}", place)
    if told.get("explained_by"):
        return Said(f"{ANSWERS[told['answer']]}; it would come from another cause: {view.in_words(told)}")
    if told["answer"] == "seen" and statement in above:
        return Said("seen, as above; unexplained")
    if told["answer"] == "seen":
        return Said(f"seen, unexplained: {statement}", place)
    asked = f" {told['question']}" if told["question"] else ""
    seen = "" if statement.startswith("not in what was read") else f" ({statement})"
    return Said(f"{ANSWERS[told['answer']]}{seen}.{asked}")


def _place_of(view: View, told: Mapping[str, Any]) -> str:
    found = _ONE_PLACE.match(view.named(str(told["where"])))
    return found[0] if found else view.named(str(told["where"]))


def not_read(view: View) -> str:
    """The lines with numbers of which nothing was used, where they matter: their share and the first; else columns of
    tables that are no numbers; "" for none."""
    if view.lost is None:
        artifacts = view.run.artifacts if view.run is not None else ()
        return "; ".join(f"{view.named(a.path)}: {a.unread}" for a in artifacts if a.unread)
    path, lost = view.lost
    of = f" of {view.named(path)}" if view.run is not None and len(view.run.artifacts) > 1 else ""
    how = "" if lost.form else "; --line '{step} | {loss} | {lr}' says what the numbers of such a line are"
    return (f"{share(lost.count, lost.of)} of the lines{of} ({lost.count:,} of {lost.of:,}) hold numbers that were not "
            f'used, first line {lost.line}: "{lost.example}"{how}')


def next_command(view: View) -> str:
    """The one command to type next: a session where a cause is found, else what decides; "" where there is none.

    A picture is none where the report holds it already.
    """
    typed = [c for c in view.next_checks if not c.startswith("python -c")
             and not (c.startswith("traindx plot ") and view.pictured)]
    if view.status == "diagnosis_complete":
        return next(iter(typed), "")
    return min(typed, key=_worth, default="")


def _worth(command: str) -> int:
    own = _own(command)
    return next((worth for words, worth in _RELATIVE_WORTH if words in own), len(_RELATIVE_WORTH))


def _own(command: str) -> str:
    """A command without the ones of the person in it, whose options are theirs: `--run 'python train.py --name x'`."""
    return _THEIRS.sub(r" --\1 CMD", command) + " "


def what_it_does(command: str, *, by_hand: bool = False, lasts: str = "", proves: bool = True) -> str:
    """A command in few words, "" for one of the catalog. `by_hand`: no option of the fix is there as a diff; `lasts`:
    how long one run took; `proves`: whether there is a cause to prove."""
    if by_hand and command.startswith("traindx debug "):
        return "says what to change and asks you; you make the change, and it is verified"
    own = _own(command)
    words = next((words for part, words in _WHAT_IT_DOES if part in own), "")
    words = words if proves else words.removeprefix("proves it: ")
    return f"{words}; a run takes about {lasts}" if lasts and is_rerun(command) else words


def is_rerun(command: str) -> bool:
    """Whether a command is the diagnosis with the training run again."""
    return command.startswith("traindx diagnose ") and " --run " in command


def lasted(run: Run | None) -> str:
    """How long the run took by the clock of its log, in words; "" where the log tells no times."""
    spans = [float(s.time[-1] - s.time[0]) for s in run.series if len(s) > 1 and np.isfinite(s.time[[0, -1]]).all()
             ] if run is not None else []
    seconds = max(spans, default=0.0)
    if seconds < 1:
        return ""
    return (f"{seconds:.0f} s" if seconds < 90 else f"{seconds / 60:.0f} min" if seconds < 5400
            else f"{seconds / 3600:.1f} h")


def made_by_hand(view: View) -> bool:
    """Whether a person makes the change that is proposed: no option is there as a diff."""
    return view.diagnosis is not None and not any(fix.edits for fix in view.diagnosis.options)


def decides(command: str) -> bool:
    """Whether a command measures what is open, so that nothing has to be handed over first."""
    return command.startswith("traindx experiment ") or any(o in command for o in (" --run ", " --line ", " --name "))


def to_measure(view: View, command: str) -> str:
    """What a person can do by hand that decides the first suspect where no command does more than show; "" else."""
    first = next((h for h in view.in_order if h.get("for")), None)
    if view.status != "needs_more_data" or first is None or (command and _worth(command) < _SHOWS):
        return ""
    return next((str(check) for check in first.get("confirm", ())), "")


def gives_code(command: str, wanted: str) -> bool:
    """Whether a command hands over what is missing: the training script, where it is known where that lies."""
    return command.startswith("traindx diagnose ") and wanted.startswith("the training script")


def proven_place(view: View, hypothesis: Mapping[str, Any]) -> str:
    """The place of a hypothesis where a finding stands there; "" for a line that is only of the kind to look at."""
    place = str(hypothesis.get("location") or "")
    cited = _cited(view, hypothesis)
    seen = any(place in f.statement or place == view.named(f.where.code or "") for f, _ in cited)
    return place if place and seen else ""


def without_lists(claim: str) -> str:
    """A sentence of the catalog without the kinds that it lists in brackets."""
    return _LIST.sub("", claim)


def _cited(view: View, hypothesis: Mapping[str, Any], side: str = "for") -> list[tuple[Finding, Weight]]:
    """The findings that speak for (or against) a hypothesis, each once."""
    known = dict(view.findings)
    return [(known[w.id], w) for w in weights_of(hypothesis.get(side, ())) if w.id in known]


def _said(view: View, finding: Finding, name: str) -> Said:
    statement = view.named(finding.statement).rstrip(".")
    kept = next((e.place for e in view.diagnosis.evidence if e.id == name), "") if view.diagnosis is not None else ""
    place = _ONE_PLACE.search(view.named(kept or str(finding.where)))
    return Said(statement, place[0] if place else "")
