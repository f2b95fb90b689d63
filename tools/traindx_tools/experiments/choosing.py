"""From what a person saw, or from what the instruments found in the log, to the outcome that an experiment measures."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from traindx_tools.catalog.observations import shows
from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.outcome import FELL, Kind, Outcome
from traindx_tools.experiments.reading import number
from traindx_tools.experiments.trace import Curve, Trace
from traindx_tools.experiments.watch import curves_of
from traindx_tools.finding import Finding
from traindx_tools.on_logs.run import Run
from traindx_tools.symptom.parse import parse
from traindx_tools.symptom.stated import StatedSymptom
from traindx_tools.symptom.subjects import BY_KEY

_BY_DIRECTION: Mapping[str, Kind] = {
    "nonfinite": "nonfinite", "overflow": "nonfinite", "crash": "error", "ends-early": "error", "oom": "error",
    "hang": "hang", "slow": "step-time", "gap": "gap", "inverted": "gap", "explodes": "rise", "spikes": "rise",
    "jumps": "rise", "unsettled": "rise", "rises": "rise", "falls": "rise", "still": "fall", "stays": "fall",
    "slow-learning": "fall", "poor": "fall", "high": "fall", "low": "fall", "is": "fall", "unstarted": "fall",
}  # fmt: skip
"""What a subject does, as something that is measured; of what is not here: where its curve ends."""
_BY_FAMILY: Mapping[str, Kind] = {"memory": "memory-growth", "time": "step-time", "speed": "step-time"}
_BY_SYMPTOM: Mapping[str, Kind] = {
    "nonfinite": "nonfinite", "crash": "error", "hang": "hang", "memory": "memory-growth", "slow": "step-time",
    "divergence": "rise", "resume": "rise", "not-learning": "fall", "generalization": "gap", "collapse": "level",
    "wrong-output": "level", "schedule": "level",
}  # fmt: skip
_LOSSES = frozenset({"loss", "run", ""})
_OUT_OF_MEMORY = "out of memory"


def choose(symptom: str, run: Run, findings: Sequence[Finding] = ()) -> Outcome:
    """The outcome that is meant: by the person's words first, by the gravest finding in the log without any.

    Without either it is where the training loss ends. What the log shows to be otherwise (a loss that "does not learn"
    but falls) is measured by where it ends.
    """
    stated = [s for s in parse(symptom, [s.original for s in run.series]) if s.understood] if symptom else []
    made = _of_statement(stated[0], run) if stated else _of_findings(findings, run)
    return _fitting(made, run)


def chosen_for(paths: Sequence[str | Path], symptom: str) -> Outcome:
    """`choose` for the artifacts of a run; where none of them can be read, by the words alone."""
    from traindx_tools.on_logs.each_run import read_last_run
    from traindx_tools.on_logs.judge import judge_run

    try:
        run = read_last_run([str(p) for p in paths])
    except UnreadableInput:
        return choose(symptom, Run())
    return choose(symptom, run, () if symptom else judge_run(run))


def _of_statement(stated: StatedSymptom, run: Run) -> Outcome:
    family = stated.subject.family if stated.subject is not None else "run"
    kind = _BY_DIRECTION.get(stated.direction, "level")
    if stated.direction == "oom":
        return Outcome("error", _OUT_OF_MEMORY)
    if kind not in ("nonfinite", "error", "hang", "gap"):
        kind = _BY_FAMILY.get(family, kind)
    if kind == "fall" and family not in ("loss", "score", "reward", "run"):
        kind = "level"
    return _made(kind, _metric(stated, run), run)


def _of_findings(findings: Sequence[Finding], run: Run) -> Outcome:
    grave = sorted((f for f in findings if f.rule[0] in "LTJ"), key=lambda f: -f.severity.rank)
    kinds: Iterator[Kind] = (_BY_SYMPTOM[s] for f in grave for s in sorted(shows(f)) if s in _BY_SYMPTOM)
    kind: Kind = next(kinds, "level")
    return _made(kind, "", run)


def _made(kind: Kind, metric: str, run: Run) -> Outcome:
    if kind == "error":
        last = run.errors[-1] if run.errors else None
        return Outcome("exit") if last is None else Outcome("error", last.type.rpartition(".")[2])
    if kind in ("nonfinite", "hang", "step-time", "memory-growth"):
        return Outcome(kind)
    if kind == "gap":
        base = metric.removeprefix("validation ").removeprefix("test ")
        return Outcome("gap", "" if base == "loss" else base)
    return Outcome(kind, metric, bound=FELL if kind == "fall" else None)


def _metric(stated: StatedSymptom, run: Run) -> str:
    """The curve that a statement is about, by the name under which runs show it; "" for the training loss."""
    subject = stated.subject
    row = BY_KEY.get(subject.key) if subject is not None else None
    if subject is None or subject.family in ("run", "output", "setting"):
        return ""
    names: Iterable[str] = row.names if row is not None else ()
    groups = (subject.group,) if subject.group else ("train", "validation", "test")
    found = next((s for g in groups for s in run.find(*names, group=g)), None)
    if found is None and row is None:
        found = next((s for s in run.series if s.original.lower() == subject.words.lower()), None)
    if found is not None:
        return "" if str(found) == "loss" else str(found)
    if subject.family == "loss" and subject.group in (None, "train"):
        return ""
    first = next(iter(names), subject.words)
    return first if subject.group in (None, "train") else f"{subject.group} {first}"


def _fitting(outcome: Outcome, run: Run) -> Outcome:
    """Where the log shows the curve: a fall that is there, or a rise that is not, is no symptom of that kind."""
    if outcome.kind not in ("fall", "rise"):
        return outcome
    curves: Mapping[str, Curve] = curves_of(run)
    seen = number(outcome, Trace(folder=Path(), curves=curves))
    if seen is not None and (seen.value >= FELL) == (outcome.kind == "fall"):
        return Outcome("level", outcome.metric)
    return outcome
