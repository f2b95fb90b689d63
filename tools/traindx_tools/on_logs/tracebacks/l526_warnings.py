"""Warnings that matter: the few that imply a fault, told apart from the many that healthy runs print.

Everything else that a library warns of (deprecations, defaults, configuration remarks) is silent here. A warning whose
consequence depends on the rest of the run is a remark until the rest of the run agrees.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity, Value
from traindx_tools.on_logs.configs.names import lookup
from traindx_tools.on_logs.curves.outcomes import improved, main_loss
from traindx_tools.on_logs.curves.shapes import track
from traindx_tools.on_logs.run import ErrorEvent, Run
from traindx_tools.on_logs.tracebacks.incidents import Incident, incidents
from traindx_tools.on_logs.tracebacks.numpy_order import KIND, MET, met, no_origins
from traindx_tools.on_logs.tracebacks.report import report, short
from traindx_tools.rules import Rule

PRIORITY = 95
LEARNED, LEARNED_RECORDS = 0.2, 10
"""A fall of the training loss by a fifth over ten records is learning."""

RULE = Rule(
    id="L526",
    name="warnings-that-matter",
    title="A warning that matters",
    severity=Severity.INFO,
    sees="A table of warnings by torch, transformers, NumPy, JAX and launchers; see warning_lines.py.",
    matters="Some warnings state the fault that a person then searches for days.",
    alike=("The same warning in a healthy run: a skipped first AMP step, a tokenizer used for counting.",),
    confirm=("python -W error train.py turns the warning into a traceback at its line.",),
)


@dataclass(frozen=True)
class _Meaning:
    words: str
    severity: Severity = Severity.INFO
    bearing: Bearing = Bearing.COMPANION


_MEANINGS = {
    "scheduler-before-optimizer": _Meaning(
        "lr_scheduler.step() was called before the first optimizer.step(), so the first value of the schedule is "
        "skipped",
        Severity.MEDIUM, Bearing.SIGN),
    "target-size-broadcast": _Meaning(
        "the loss broadcasts a target of size {target} against an input of size "
        "{input}", Severity.HIGH, Bearing.CAUSE),
    "no-input-requires-grad": _Meaning(
        "gradient checkpointing got no input that requires a gradient: parameters inside get none",
        Severity.MEDIUM, Bearing.SIGN),
    "sequence-longer-than-limit": _Meaning("a sequence of {length} tokens is longer than the model's {limit}"),
    "weights-newly-initialized": _Meaning("some weights were not in the checkpoint and start at random"),
    "weights-not-used": _Meaning("some weights of the checkpoint were not used"),
    "implicit-softmax-dimension": _Meaning("softmax was given no dimension and chose one by itself"),
    "gradient-size-mismatch": _Meaning("a gradient's layout differs from its parameter's: slower, not wrong"),
    "gradient-stride-mismatch": _Meaning("a gradient's layout differs from its bucket's: slower, not wrong"),
    "scalar-gather": _Meaning("DataParallel gathered scalar losses into a vector: it needs a mean"),
    "non-full-backward-hook": _Meaning("an old kind of backward hook may see only a part of the gradients"),
    "leaked-semaphores": _Meaning("semaphores were left behind by processes that ended without cleaning up"),
    "loss-type-unrecognised": _Meaning("the configuration's loss type is not known; a default is used"),
    "find-unused-without-need": _Meaning("find_unused_parameters=True costs time and found nothing unused"),
    "mean-of-empty": _Meaning("the mean of nothing was taken, which is nan"),
    KIND: _Meaning("NumPy met a non-finite value ({what})", bearing=Bearing.CAUSE),
    "gradient-overflow": _Meaning("steps were skipped because scaled gradients overflowed"),
    "nonfinite-gradients-skipped": _Meaning("steps were skipped because gradients were not finite"),
    "dataloader-workers-excess": _Meaning("the loader has more workers than the host has cores"),
    "no-grad-access": _Meaning(".grad of a tensor that is no leaf was read: it is None"),
    "undefined-metric": _Meaning("a metric is undefined because a class was never predicted or never present"),
    "int64-truncated": _Meaning("JAX truncated a 64-bit dtype to 32 bit"),
    "scatter-dtype": _Meaning("a scatter loses precision because its dtypes differ"),
    "donated-unusable": _Meaning("donated buffers could not be reused: more memory than planned"),
    "recompile-limit": _Meaning("torch.compile gave up recompiling: a part runs uncompiled"),
}
_NUMBERS = (
    re.compile(r"\((?P<length>\d+) > (?P<limit>\d+)\)"),
    re.compile(r"target size \((?P<target>torch\.Size\([^)]*\))\).{0,60}input size "
               r"\((?P<input>torch\.Size\([^)]*\))\)"),
    MET,
)


def claims(event: ErrorEvent) -> bool:
    """Every warning that the reader kept."""
    return event.kind == "warning"


def sort_of(event: ErrorEvent) -> str:
    """What keeps two of NumPy's warnings at one line apart."""
    return met(event)


def check(run: Run) -> Iterator[Finding]:
    """One finding a kind and place, in the order of the log."""
    found = incidents(run, RULE.id)
    others = no_origins(run, [i for i in found if i.error.type == KIND])
    for incident in found:
        yield _judged(run, incident, others.get(incident.printed.line, "") if incident.error.type == KIND else "")


def _judged(run: Run, incident: Incident, no_origin: str) -> Finding:
    kind = incident.error.type
    meaning = _MEANINGS.get(kind, _Meaning(short(incident.text)))
    bearing = Bearing.COMPANION if no_origin else meaning.bearing
    matches = [m for m in (p.search(incident.text) for p in _NUMBERS) if m is not None]
    numbers: dict[str, Value] = {k: v for m in matches for k, v in m.groupdict().items()}
    try:
        words = meaning.words.format(**numbers)
    except KeyError:
        words = f"{kind.replace('-', ' ')}: {short(incident.text)}"
    if kind == KIND:
        numbers["origin"] = not no_origin
    found = report(RULE, incident, words, bearing=bearing, measured={"kind": kind, **numbers})
    statement = f"{found.statement}; {no_origin}" if no_origin else found.statement
    return RULE.finding(statement, found.where, found.source, bearing=bearing,
                        severity=_severity(run, kind, meaning), measured=found.measured)


def _severity(run: Run, kind: str, meaning: _Meaning) -> Severity:
    """A run that goes on does not make a warning harmless: most are printed once, at the start."""
    if kind == "scheduler-before-optimizer" and _half_precision(run):
        return Severity.INFO
    if kind in _TOLD_BY_THE_LOSS and _learns(run):
        return _TOLD_BY_THE_LOSS[kind]
    if kind in (KIND, "mean-of-empty") and _nonfinite(run):
        return Severity.MEDIUM
    return meaning.severity


_TOLD_BY_THE_LOSS = {"scheduler-before-optimizer": Severity.LOW, "no-input-requires-grad": Severity.INFO}
"""Warnings of what a loss would show, with what is left of them where it falls: one step of a schedule is lost all the
same; gradients that do not reach the weights are also warned of by an evaluation without gradients."""


def _learns(run: Run) -> bool:
    """Whether the training loss has fallen clearly, so that whatever was warned of did not keep the run from it."""
    loss = track(main_loss(run))
    return loss is not None and len(loss) >= LEARNED_RECORDS and improved(loss) >= LEARNED


def _half_precision(run: Run) -> bool:
    """With a loss scaler the first optimizer step may be skipped, and the warning then means nothing."""
    precision = str(lookup(run.config, "precision", ""))
    scaled = any(True for _ in run.find("loss_scale", "skipped_steps"))
    told = any(n.kind == "precision" and re.search(r"16|half|amp|mixed", n.text) for n in run.notes)
    skipped = any(e.type == "gradient-overflow" for e in run.errors)
    return scaled or told or skipped or "16" in precision or "half" in precision


def _nonfinite(run: Run) -> bool:
    return any(not bool(np.all(s.finite)) for s in run.series)
