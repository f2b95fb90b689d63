"""The GPU is out of memory. The message's own numbers, and the run before it, tell four cases apart.

*total*: one allocation is larger than what the device could ever give. *fragmentation*: much is reserved by PyTorch
but unallocated, and the request would fit into it. *other-process*: another process holds the memory. *creeping*:
memory in the log grew up to the failure. Otherwise: *first-step* (it never fitted) or *late-peak* (it fitted for many
steps: a longer sample, an evaluation, a checkpoint).
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.run import ErrorEvent, Floats, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.memory_before import memory_before
from traindx_tools.on_logs.tracebacks.memory_numbers import Allocation, allocation, claims_memory, readable
from traindx_tools.on_logs.tracebacks.report import report
from traindx_tools.rules import Rule, Threshold

PRIORITY = 20
TOGETHER = True
FRAGMENTED = 0.10
FOREIGN = 0.25
GROWTH = 1.10
LATE_RECORDS = 10
FEW_RECORDS, STEADY = 3, 0.6

RULE = Rule(
    id="L508",
    name="cuda-oom",
    title="The GPU is out of memory",
    severity=Severity.CRITICAL,
    sees="The sizes in the allocator's message: tried, total, free, allocated, reserved, other processes; memory "
         "in the log.",
    matters="The run is over, or batches were skipped.",
    alike=("CUBLAS_STATUS_ALLOC_FAILED with free memory (L503): an index error.", "The host's memory (L509)."),
    confirm=("torch.cuda.memory_summary() and torch.cuda.max_memory_allocated() every 50 steps: flat or growing?",
             "torch.cuda.memory._record_memory_history(); _dump_snapshot('oom.pickle') on the failure.",
             "nvidia-smi: which other processes hold memory?"),
    thresholds={
        "fragmented": Threshold(FRAGMENTED, "of the device reserved but unallocated, and at least the request",
                                "PyTorch's advice in the message: reserved but unallocated memory is large"),
        "foreign": Threshold(FOREIGN, "of the device, and more than the request", "a CUDA context and a desktop "
                                                                                  "need less"),
        "growth": Threshold(GROWTH, "times the memory of the first quarter", "sagemaker-debugger: 10 % growth"),
        "steady": Threshold(STEADY, "of the largest rise, by the last of 3 to 7 records", "arithmetic: a line has 1"),
        "late": Threshold(LATE_RECORDS, "records before it", "a batch that fits ten times is not too large by itself"),
    },
)
_EVALUATES = re.compile(r"(^|_)(eval\w*|valid\w*|val|test|predict\w*|infer\w*)(_|$)", re.IGNORECASE)
"""Names of functions that evaluate, as the frames of a traceback give them."""
_TRAINS = re.compile(r"\bbackward\(|\b(?:opt\w*|scaler|engine)\.step\(")
_IS_TRAINING = re.compile(r"(^|_)(train|training|fit)(_|$)(?!.*eval)", re.IGNORECASE)

_MEANING = {
    "total": "one allocation asks for more than the device has",
    "fragmentation": "memory is fragmented: what is reserved but unallocated would hold the request",
    "other-process": "another process holds the memory",
    "creeping": "memory crept up until it ran out",
    "late-peak": "it fitted for many steps and then a larger batch, sample or phase did not",
    "evaluation": "training fitted and the evaluation did not",
    "first-step": "it did not fit in the first steps",
    "full": "the device is full",
}


def claims(event: ErrorEvent) -> bool:
    """Out of memory on a torch device."""
    return event.kind != "warning" and claims_memory(event.type, event.message)


def check(run: Run) -> Iterator[Finding]:
    """One finding a run."""
    for incident in incidents(run, RULE.id):
        yield _judged(run, incident)


def _judged(run: Run, incident: Incident) -> Finding:
    numbers = allocation(incident.text)
    kind = _kind(run, incident, numbers)
    told = [f"{name} {readable(value)}" for name, value in numbers.named() if value is not None]
    history = memory_before(run, incident.printed, numbers.total)
    after = f" after {incident.unit} {incident.step:,.10g}" if incident.step is not None else ""
    statement = (f"the GPU is out of memory{after}{f' ({history.text})' if history else ''}, {_MEANING[kind]}"
                 + (f" ({', '.join(told)})" if told else ""))
    measured: dict[str, Value] = {f"{k}_gib": round(v, 3) for k, v in numbers.named() if v is not None}
    measured |= {"kind": kind, **(history.measured if history else {})}
    if (phase := _phase(incident)) is not None:
        measured["phase"] = phase
    if numbers.device is not None:
        measured["device"] = numbers.device
    sure = kind in ("total", "fragmentation", "other-process")
    return report(RULE, incident, statement, bearing=Bearing.CAUSE if sure else Bearing.SIGN,
                  measured=measured,
                  surfaced="" if kind == "total" else "the allocation that found no room need not be the one that "
                                                      "fills it")


def _kind(run: Run, incident: Incident, n: Allocation) -> str:
    if n.tried is not None and n.total is not None and n.tried > n.total:
        return "total"
    if n.unallocated is not None and n.tried is not None and n.unallocated >= max(n.tried, FRAGMENTED * (n.total or 0)):
        return "fragmentation"
    others = n.others
    if others is not None and n.total is not None and others > max(n.tried or 0, FOREIGN * n.total):
        return "other-process"
    if _grew(run):
        return "creeping"
    before = _records_before(run, incident)
    if before and _phase(incident) == "evaluation":
        return "evaluation"
    if before is None:
        return "full"
    return "late-peak" if before >= LATE_RECORDS else "first-step"


def _phase(incident: Incident) -> str | None:
    """ "evaluation" or "training", by the user's own frames; None where they say neither."""
    own = [f for f in incident.printed.frames if not f.library]
    if any(_EVALUATES.search(f.function) for f in own):
        return "evaluation"
    return "training" if any(_TRAINS.search(f.code) or _IS_TRAINING.search(f.function) for f in own) else None


def _grew(run: Run) -> bool:
    for series in run.find("memory"):
        values = series.values[series.finite]
        if FEW_RECORDS <= len(values) < 8 and _climbs(values):
            return True
        if len(values) >= 8:
            quarter = max(len(values) // 4, 2)
            first, last = float(np.median(values[:quarter])), float(np.median(values[-quarter:]))
            steps = np.diff(values)
            if first > 0 and last >= GROWTH * first and float(np.mean(steps >= 0)) >= 0.7:
                return True
    return False


def _climbs(values: Floats) -> bool:
    """Whether few records rise by about as much each time: what is made once (optimizer state, caches) does not."""
    steps = np.diff(values)
    return bool(values[0] > 0 and values[-1] >= GROWTH * values[0] and steps.min() > 0
                and steps[-1] >= STEADY * steps.max())


def _records_before(run: Run, incident: Incident) -> int | None:
    series = [s for s in run.series if s.source == incident.printed.source and len(s)]
    if not series:
        series = [s for s in run.series if len(s) and s.group == "train"]
        return max((len(s) for s in series), default=None)
    return max(int((s.line <= incident.printed.line).sum()) for s in series)
