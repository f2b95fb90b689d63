"""A stated symptom that no curve shows (crash, hang, memory, speed, ranks): errors, notes and findings are asked."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from traindx_tools.finding import Finding, Severity, Value
from traindx_tools.on_logs.curves.shapes import number
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.symptom import measure
from traindx_tools.symptom.answer import NOT_SEEN, SEEN, SymptomAnswer
from traindx_tools.symptom.stated import Place, StatedSymptom
from traindx_tools.symptom.window import window_of

_OOM = re.compile(r"out of memory|oom|alloc|cannot allocate|killed", re.IGNORECASE)
_HANG = re.compile(r"time(?:d)? ?out|watchdog|deadlock|barrier|stuck|gloo|nccl", re.IGNORECASE)
_STOPPED = re.compile(r"early.?stop|patience|stopp(?:ed|ing) (?:early|training)", re.IGNORECASE)

MOST_AFTER = 20
"""Lines that a program still prints after the error that ended it; more, and it went on."""

RULES: Mapping[str, tuple[str, ...]] = {
    "nonfinite": ("L101", "L523", "L520"), "explodes": ("L102", "L106", "L218"),
    "rises": ("L106", "L203", "L218", "L605"),
    "falls": ("L603", "L601", "L404", "L301", "L303", "L222"),
    "still": ("L201", "L202", "L217", "L215", "L216", "L211", "L222", "L604", "L301", "L308", "L210"),
    "stays": ("L201", "L202", "L217", "L215", "L216", "L211", "L604", "L210"),
    "is": ("L201", "L202", "L217", "L215", "L216", "L211", "L604", "L210"),
    "spikes": ("L107",), "jumps": ("L302", "L206", "L207", "L310", "L218"), "oscillates": ("L106", "L206"),
    "poor": ("L211", "L208", "L223", "L204", "L221", "L201"), "gap": ("L203", "L204", "L208", "L221"),
    "collapse": ("L213", "L601", "L603", "L607"), "identical": ("L213",), "unused": ("L601", "L220"),
    "unstarted": ("L104", "L103", "L514"), "overflow": ("L105",), "disagrees": ("R101", "R102", "L701"),
    "missing": ("L213", "L210"),
    "hang": ("L403", "L515", "L702"), "oom": ("L508", "L509", "L401", "L529"), "slow": ("L402", "L404"),
    "slow-learning": ("L201", "L303", "L309"), "high": ("L102", "L108"), "low": ("L103", "L211", "L301"),
}  # fmt: skip
"""Findings that show a direction, where a rule saw what a measurement of the words did not."""

_SHOWN_BY: Mapping[str, str] = {
    "crash": "the whole output up to the error, with its traceback",
    "hang": "the output of every rank up to where it stands, or a stack dump (`py-spy dump --pid PID`)",
    "oom": "the error message in full, and the memory that is allocated, logged every few steps",
    "slow": "the time of a step and the time spent waiting for data, logged every few steps",
    "garbled": "some generated samples beside what they should be",
    "identical": "some predictions beside their inputs, or their standard deviation, logged at each evaluation",
    "missing": "the predictions of a few inputs beside their targets",
    "disagrees": "the same number from every rank or from both runs, logged side by side",
    "mismatch": "both numbers, each with the code that computes it",
    "memory": "the memory of the process or of the device, logged every few steps",
    "overflow": "the loss scale, logged every few steps",
    "unstarted": "the gradient norm of each part, logged every few steps",
    "ends-early": "the output up to the end of the run",
    "unused": "how many entries are in use, logged at each evaluation",
    "collapse": "the entropy, the perplexity of the codes or the spread of the outputs, logged at each evaluation",
}  # fmt: skip


def in_events(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    """What errors, notes, speed and ranks say of it; None where it is a thing of curves."""
    look = _LOOKS.get(symptom.direction)
    return look(symptom, run, findings) if look is not None else None


def by_finding(symptom: StatedSymptom, findings: Sequence[Finding]) -> SymptomAnswer | None:
    """The gravest finding of a rule that shows what was said, above a remark."""
    rules = RULES.get(symptom.direction, ())
    if symptom.direction == "crash":
        rules = ("L5",)
    mine = [f for f in findings if f.rule.startswith(rules) and f.severity is not Severity.INFO] if rules else []
    if not mine:
        return None
    best = max(mine, key=lambda f: f.severity.rank)
    return SymptomAnswer(symptom, SEEN, best.statement.rstrip(".") + ".", "", str(best.where), {"rule": best.rule})


def not_recorded(symptom: StatedSymptom, run: Run) -> SymptomAnswer:
    """What was looked at, and which recording would show it."""
    subject = symptom.subject
    key = "memory" if subject is not None and subject.family == "memory" else symptom.direction
    named = subject.words if subject is not None and subject.family not in ("run", "setting") else ""
    wanted = _SHOWN_BY.get(key) or (
        f"{named}, logged every few steps" if named else "the metric that shows it, in the log"
    )
    names = list(dict.fromkeys(s.original for s in run.series))
    looked = (
        f"{len(names)} recorded metrics ({', '.join(names[:5])}{' ...' if len(names) > 5 else ''})"
        if names
        else ("no metric was recorded")
    )
    told = (
        f"not in what was read: {looked}, {len(run.errors) or 'no'} error{'' if len(run.errors) == 1 else 's'}. "
        f"It would show in {wanted}."
    )
    return SymptomAnswer(symptom, NOT_SEEN, told, named, question=f"Can you hand over {wanted}?")


def _errors(run: Run, pattern: re.Pattern[str] | None = None) -> list[ErrorEvent]:
    real = [e for e in run.errors if e.kind in ("exception", "fatal")]
    return [e for e in real if pattern is None or pattern.search(f"{e.type} {e.message}")]


def _of_error(symptom: StatedSymptom, error: ErrorEvent) -> SymptomAnswer:
    root = error.root
    frame = error.user_frame or root.user_frame
    at = f" at {frame.place}" if frame is not None else ""
    said = " ".join(root.message.split())[:160]
    return SymptomAnswer(
        symptom,
        SEEN,
        f'{root.type}{at}: "{said}".',
        "",
        f"{error.source}:{error.line}",
        {"type": root.type, "line": error.line, "count": error.count},
    )


def _last(run: Run) -> str:
    """Where the record ends: "step 400 of 400"."""
    ends = [s for s in run.series if len(s) and s.unit != "line"]
    if not ends:
        return ""
    s = max(ends, key=lambda x: (x.unit == "step", float(x.position.max())))
    planned = f" of {run.planned_steps:g}" if run.planned_steps is not None and run.planned_unit == s.unit else ""
    return f"{s.unit} {s.position.max():.10g}{planned}"


def _finished(run: Run) -> bool:
    """Whether the record reaches the end that was planned."""
    mine = [float(s.position.max()) for s in run.series if len(s) and s.unit == run.planned_unit]
    return (
        run.planned_steps is not None and bool(mine) and max(mine) >= run.planned_steps - 1 - 0.01 * run.planned_steps
    )


def _crash(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    found = _errors(run)
    if found:
        return _of_error(symptom, found[-1])
    seen = by_finding(symptom, findings)
    return seen or _without_error(symptom, run)


def _failed(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    """A run that "failed" is one that stopped with an error, where it did; else it did badly, which curves show."""
    found = [e for e in _errors(run) if e.lines_after < MOST_AFTER] if "crash" in symptom.kinds else []
    return _of_error(symptom, found[-1]) if found else None


def _without_error(symptom: StatedSymptom, run: Run) -> SymptomAnswer:
    base = not_recorded(symptom, run)
    end = _last(run)
    told = f"no error stands in what was read; the record ends at {end}." if end else base.statement
    return SymptomAnswer(symptom, NOT_SEEN, told, question=base.question, refuted=_finished(run) and bool(run.series))


def _hang(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    found = _errors(run, _HANG)
    return _of_error(symptom, found[0]) if found else by_finding(symptom, findings) or _without_error(symptom, run)


def _oom(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    found = _errors(run, _OOM)
    if found:
        return _of_error(symptom, found[-1])
    return by_finding(symptom, findings) or _without_error(symptom, run)


def _slow(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    """The speed over the run: the time of a step, what is done in a second, what the data take."""
    told: list[str] = []
    values: dict[str, Value] = {}
    where = ""
    for name in ("step_time", "throughput", "tokens_per_second", "data_time", "epoch_time", "mfu"):
        series = run.first(name)
        window = window_of(series, Place(), run) if series is not None else None
        if series is None or window is None:
            continue
        first, last, _ = measure.ends(window.whole.y)
        told.append(
            f"{series.original} {number(float(np.median(window.whole.y)))} (from {number(first)} to {number(last)})"
        )
        values |= {f"{name}_first": first, f"{name}_last": last, f"{name}_median": float(np.median(window.whole.y))}
        where = where or str(series.at(0, -1))
    if told:
        return SymptomAnswer(
            symptom, SEEN, f"median speed as recorded: {', '.join(told)}.", told[0].split()[0], where, values
        )
    return by_finding(symptom, findings)


def _early(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    end = _last(run)
    if not end:
        return None
    stopped = next((n for n in run.notes if _STOPPED.search(n.text)), None)
    why = f' The log says: "{stopped.text[:120]}" (line {stopped.line}).' if stopped is not None else ""
    planned = run.planned_steps is not None
    seen = planned and not _finished(run)
    return SymptomAnswer(
        symptom,
        SEEN if seen or stopped else NOT_SEEN,
        f"the record ends at {end}.{why}",
        "",
        end,
        {},
        refuted=planned and _finished(run),
        expected="the run ends by early stopping, as its log says" if stopped is not None else "",
    )


def _ranks(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    """The same metric of several ranks at the same steps."""
    found = by_finding(symptom, findings)
    if found is not None:
        return found
    by_name: dict[tuple[str, str], list[tuple[int, float, str]]] = {}
    for s in run.series:
        if s.rank is not None and len(s) and np.isfinite(s.values[-1]):
            by_name.setdefault((s.name, s.group), []).append((s.rank, float(s.values[-1]), str(s.at(-1))))
    for (name, _), values in by_name.items():
        low, high = min(v for _, v, _ in values), max(v for _, v, _ in values)
        if len({r for r, _, _ in values}) > 1 and high - low > 1e-3 * max(abs(high), abs(low)):
            told = ", ".join(f"{number(v)} on rank {r}" for r, v, _ in values[:4])
            return SymptomAnswer(
                symptom,
                SEEN,
                f"{name} at the end of the record: {told}.",
                name,
                values[0][2],
                {"lowest": low, "highest": high},
            )
    return None


def _overflow(symptom: StatedSymptom, run: Run, findings: Sequence[Finding]) -> SymptomAnswer | None:
    skipped = [n for n in run.notes if n.kind == "step_skipped"]
    scale = run.first("loss_scale")
    course = ""
    if scale is not None and scale.finite.any():
        kept = scale.values[scale.finite]
        course = f" The loss scale goes from {number(float(kept[0]))} to {number(float(kept[-1]))}."
    if not skipped:
        return by_finding(symptom, findings)
    return SymptomAnswer(
        symptom,
        SEEN,
        f"{len(skipped)} lines tell of a skipped step or an overflow, the first in line {skipped[0].line}.{course}",
        "loss_scale",
        f"{skipped[0].source}:{skipped[0].line}",
        {"lines": len(skipped)},
    )


_LOOKS: Mapping[str, Callable[[StatedSymptom, Run, Sequence[Finding]], SymptomAnswer | None]] = {
    "crash": _crash, "hang": _hang, "oom": _oom, "slow": _slow, "ends-early": _early, "disagrees": _ranks,
    "overflow": _overflow, "poor": _failed,
}  # fmt: skip
