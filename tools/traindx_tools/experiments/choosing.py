"""From what a person saw, or from what the instruments found in the log, to the outcome that an experiment measures."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path

from traindx_tools.catalog.observations import shows
from traindx_tools.errors import UnreadableInput
from traindx_tools.experiments.outcome import FELL, TRENDS, Kind, Outcome, better_high, usual_name
from traindx_tools.experiments.reading import GROUPS, event, is_well, number
from traindx_tools.experiments.trace import Curve, Trace
from traindx_tools.experiments.watch import curves_of
from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.symptom.parse import parse
from traindx_tools.symptom.stated import StatedSymptom, Subject
from traindx_tools.symptom.subjects import BY_KEY

_BY_DIRECTION: Mapping[str, Kind] = {
    "nonfinite": "nonfinite", "overflow": "nonfinite", "crash": "error", "ends-early": "error", "oom": "error",
    "hang": "hang", "slow": "step-time", "gap": "gap", "inverted": "gap", "explodes": "rise", "spikes": "spike",
    "jumps": "spike", "unsettled": "spike", "rises": "rise", "falls": "rise", "still": "fall", "stays": "fall",
    "slow-learning": "fall", "poor": "fall", "high": "fall", "low": "fall", "is": "fall", "unstarted": "fall",
}  # fmt: skip
"""What a subject does, as something that is measured; of what is not here: where its curve ends."""
_BY_FAMILY: Mapping[str, Kind] = {"memory": "memory-growth", "time": "step-time", "speed": "step-time"}
_BY_SYMPTOM: Mapping[str, Kind] = {
    "nonfinite": "nonfinite", "crash": "error", "hang": "hang", "memory": "memory-growth", "slow": "step-time",
    "divergence": "rise", "resume": "rise", "not-learning": "fall", "generalization": "gap", "collapse": "level",
    "wrong-output": "level", "schedule": "level",
}  # fmt: skip
_LEARNS_NOTHING = ("chance", "others")
"""What a curve is compared with that ends where it would without having learned anything of use."""
_ERRORS = frozenset({"mse", "rmse", "mae", "nll", "perplexity", "error_rate"})
_EMPTY = frozenset({"value", "values", "the", "mean", "loss", "of", "term", "average"})
"""Words of names that many series have."""
_OUT_OF_MEMORY = "out of memory"
MOST_OF_THE_WAY = 0.8
"""From where a curve ends to the value that a person expected: what a person expects is a round number."""


def choose(symptom: str, run: Run, findings: Sequence[Finding] = (), control: Trace | None = None) -> Outcome:
    """The outcome that is meant: by the person's words first, by the gravest finding in the log without any.

    Of several statements the first one is taken that can be measured: in the `control` (the program's own run as it was
    made again) where there is one, else in the record. Words whose outcome has no value there, and words that are not
    understood, say nothing of what a change does; then it is where a held-out metric ends, or the training loss. What
    the log or the control shows to be otherwise (a loss that "does not learn" but falls) is measured by where it ends.
    """
    stated = [s for s in parse(symptom, [s.original for s in run.series]) if s.understood] if symptom else []
    meant = [_level_beaten(_of_statement(s, run), s, run) for s in stated]
    meant = meant or ([*_ends(run)] if symptom.strip() else []) or [_of_findings(findings, run)]
    trace = control if control is not None else Trace(Path(), curves_of(run), ended=True, findings=tuple(findings))
    fitted = [(o, _fitting(o, run)) for o in meant]
    fitted.sort(key=lambda f: f[0] != f[1] and not f[1].metric.startswith(GROUPS))  # what the record denies comes last
    asked = [each for _, o in fitted for each in _with_end(o)]
    if control is None and not run.series:
        return asked[0]
    certain = control is not None
    further = (_of_findings(findings, run), *_ends(run), Outcome("level"))
    found = next((o for o in (*asked, *further) if _measured(o, trace, certain=certain)), asked[0])
    seen = number(found, control) if control is not None and found.kind in TRENDS else None
    return where_it_ends(found) if seen is not None and is_well(found, seen) else found


def _with_end(outcome: Outcome) -> tuple[Outcome, ...]:
    """A trend, and in its place the value where it ends: one value has no trend, and is what a person complains of."""
    return (outcome, where_it_ends(outcome)) if outcome.kind in TRENDS and outcome.metric else (outcome,)


def where_it_ends(outcome: Outcome) -> Outcome:
    """What is measured where a run made again does not show a chosen outcome by its bound.

    A loss that stands still from its first record on may have fallen before that: the instruments see each step, the
    log a mean of many. Where it ends needs no bound.
    """
    return Outcome("level", outcome.metric)


def _measured(outcome: Outcome, trace: Trace, *, certain: bool) -> bool:
    """Whether a run shows the outcome. `certain`: the run was made again, so that an event has to be in it."""
    if outcome.kind in ("step-time", "memory-growth", "hang"):
        return True
    if outcome.is_event:
        return not certain or event(outcome, trace).there
    return number(outcome, trace) is not None


def _ends(run: Run) -> Iterator[Outcome]:
    """Where held-out scores and losses end, of the metrics whose better side is known."""
    held = [s for s in run.series if len(s) and s.group in ("validation", "test")]
    yield from (Outcome("level", str(s)) for s in held if better_high(str(s)))
    yield from (Outcome("level", str(s)) for s in held if "loss" in s.name or s.name in _ERRORS)


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
    metric = _metric(stated, run)
    if stated.direction == "poor" and family == "run":
        metric = next((o.metric for o in _ends(run)), metric)  # "the model is no better than the mean"
    if stated.direction == "inverted":
        base = metric.removeprefix("validation ").removeprefix("test ") or "loss"
        return Outcome("gap", metric if base != metric else f"validation {base}", base)
    if stated.target is not None and kind in ("fall", "level"):
        return _towards(stated.target, metric, run)
    return _made(kind, metric, run)


def _towards(target: float, metric: str, run: Run) -> Outcome:
    """Where a curve ends, well once it has come most of the way to the value that was expected.

    Shares are stated as fractions; a curve in percent takes them times 100.
    """
    trace = Trace(Path(), curves_of(run))
    seen = number(Outcome("level", metric), trace)
    if seen is None or not math.isfinite(seen.value):
        return Outcome("level", metric)
    wanted = 100 * target if abs(target) <= 1 < abs(seen.value) <= 100 and better_high(metric) else target
    if wanted == seen.value or (_known_way(metric) and (wanted > seen.value) is not better_high(metric)):
        return Outcome("level", metric)  # a loss of 1.6 is not to become 2: the value is of another quantity
    return Outcome("level", metric, bound=seen.value + MOST_OF_THE_WAY * (wanted - seen.value),
                   higher=wanted > seen.value)


def _level_beaten(outcome: Outcome, stated: StatedSymptom, run: Run) -> Outcome:
    """Of a curve that came to the level which is complained of ("no better than the mean") from elsewhere: that level.

    Its own end is it: it is well where it ends beyond that by a tenth.
    """
    if outcome.kind != "fall" or stated.against.kind not in _LEARNS_NOTHING:
        return outcome
    trace = Trace(Path(), curves_of(run))
    seen = number(outcome, trace)
    ends = number(Outcome("level", outcome.metric), trace)
    if seen is None or ends is None or seen.value < FELL or not math.isfinite(ends.value):
        return outcome
    if better_high(outcome.metric) and stated.against.kind == "chance":
        return outcome  # a score that has come far is not at chance, whatever is said
    if better_high(outcome.metric):
        top = 1.0 if ends.value <= 1 else 100.0
        return Outcome("level", outcome.metric, bound=ends.value + FELL * max(top - ends.value, 0.0), higher=True)
    return Outcome("level", outcome.metric, bound=ends.value - FELL * abs(ends.value), higher=False)


def _known_way(metric: str) -> bool:
    """Whether it is known which way a metric is better: scores, losses and errors."""
    return better_high(metric) or not metric or "loss" in metric or usual_name(metric).rpartition(" ")[2] in _ERRORS


def _of_findings(findings: Sequence[Finding], run: Run) -> Outcome:
    grave = sorted((f for f in findings if f.rule[0] in "LTJ" and f.severity.rank >= Severity.MEDIUM.rank),
                   key=lambda f: -f.severity.rank)
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
    held_out = ("validation", "test", "train")  # a score that nobody says of which rows is that of those held out
    groups = (subject.group,) if subject.group else held_out if subject.family == "score" else (
        "train", "validation", "test")
    found = next((s for g in groups for s in run.find(*names, group=g)), None)
    if found is None and row is None:
        found = next((s for s in run.series if s.original.lower() == subject.words.lower()), None)
    if found is None and subject.family not in ("loss", "score"):
        found = _by_words(subject, run)
    if found is not None:
        return "" if str(found) == "loss" else str(found)
    if subject.family == "loss" and subject.group in (None, "train"):
        return ""
    first = next(iter(names), subject.words)
    return first if subject.group in (None, "train") else f"{subject.group} {first}"


def _by_words(subject: Subject, run: Run) -> Series | None:
    """A series whose name holds the words of a subject: `mean_q` for Q values."""
    said = {w for text in (subject.key, subject.words) for w in _words(text)}
    named = [(len(said & set(_words(s.original))), s) for s in run.series if len(s)]
    best = max(named, key=lambda n: n[0], default=(0, None))
    return best[1] if best[0] else None


def _words(text: str) -> list[str]:
    return [w.removesuffix("s") for w in re.split(r"[^a-z0-9]+", text.lower()) if w and w not in _EMPTY]


def _fitting(outcome: Outcome, run: Run) -> Outcome:
    """Where the log shows the curve: a fall that is there, or a rise that is not, is no symptom of that kind."""
    if outcome.kind not in TRENDS:
        return outcome
    curves: Mapping[str, Curve] = curves_of(run)
    seen = number(outcome, Trace(folder=Path(), curves=curves))
    if outcome.kind == "spike":
        return outcome if seen is None or not is_well(outcome, seen) else Outcome("level", outcome.metric)
    if seen is not None and (seen.value >= FELL) == (outcome.kind == "fall"):
        return Outcome("level", outcome.metric)
    return outcome
