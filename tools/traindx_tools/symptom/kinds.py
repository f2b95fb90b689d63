"""Which symptoms of the catalog an observation is, and whether a failure mode can explain it.

The catalog has twelve kinds (`catalog.SYMPTOMS`). A person's observation is a subject with a direction; the first
table says what kinds that pair is. The second says what else each kind brings about, by what is known of training: a
loss that is NaN ends learning, slowness does not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from traindx_tools.symptom.stated import StatedSymptom

_BY_DIRECTION: Mapping[str, str] = {
    "nonfinite": "nonfinite", "explodes": "divergence", "spikes": "divergence", "crash": "crash", "hang": "hang",
    "oom": "memory", "slow": "slow", "slow-learning": "not-learning", "gap": "generalization",
    "collapse": "collapse", "unused": "collapse", "identical": "collapse", "garbled": "wrong-output",
    "missing": "wrong-output", "unstarted": "not-learning", "unsettled": "divergence not-learning",
    "overflow": "nonfinite", "ends-early": "schedule crash", "disagrees": "wrong-output generalization",
    "inverted": "generalization", "negative": "divergence",
    "too-good": "wrong-output generalization", "mismatch": "wrong-output generalization",
}  # fmt: skip
_BY_BOTH: Mapping[tuple[str, str], str] = {
    ("rises", "loss"): "divergence not-learning",
    ("rises", "memory"): "memory",
    ("rises", "gradient"): "divergence",
    ("rises", "lr"): "schedule",
    ("rises", "time"): "slow",
    ("rises", "term"): "divergence wrong-output",
    ("rises", "number"): "divergence",
    ("rises", "own"): "divergence",
    ("rises", "adversary"): "divergence",
    ("rises", "codes"): "",
    ("rises", "entropy"): "divergence",
    ("rises", "run"): "memory",
    ("falls", "score"): "divergence not-learning",
    ("falls", "lr"): "schedule",
    ("falls", "speed"): "slow",
    ("falls", "entropy"): "collapse",
    ("falls", "codes"): "collapse",
    ("falls", "gradient"): "not-learning",
    ("falls", "scale"): "nonfinite",
    ("falls", "adversary"): "collapse not-learning",
    ("falls", "own"): "not-learning",
    ("falls", "number"): "not-learning",
    ("still", "loss"): "not-learning",
    ("still", "score"): "not-learning",
    ("still", "run"): "not-learning",
    ("still", "lr"): "schedule",
    ("still", "weights"): "not-learning",
    ("still", "gradient"): "not-learning",
    ("still", "codes"): "collapse",
    ("still", "own"): "not-learning",
    ("still", "term"): "not-learning collapse",
    ("still", "entropy"): "collapse not-learning",
    ("still", "output"): "not-learning collapse",
    ("still", "adversary"): "not-learning",
    ("still", "number"): "not-learning",
    ("still", "speed"): "slow",
    ("jumps", "loss"): "divergence resume",
    ("jumps", "score"): "divergence",
    ("jumps", "lr"): "schedule resume",
    ("jumps", "run"): "resume",
    ("jumps", "gradient"): "divergence",
    ("jumps", "memory"): "memory",
    ("oscillates", "loss"): "divergence not-learning",
    ("oscillates", "score"): "divergence",
    ("oscillates", "run"): "divergence",
    ("oscillates", "gradient"): "divergence",
    ("poor", "score"): "not-learning",
    ("poor", "run"): "not-learning wrong-output",
    ("poor", "loss"): "not-learning",
    ("poor", "output"): "wrong-output",
    ("poor", "weights"): "wrong-output not-learning",
    ("poor", "speed"): "slow",
    ("poor", "codes"): "collapse",
    ("poor", "entropy"): "collapse",
    ("poor", "own"): "not-learning",
    ("poor", "lr"): "schedule",
    ("poor", "gradient"): "not-learning",
    ("poor", "ranks"): "not-learning",
    ("poor", "term"): "collapse",
    ("low", "score"): "not-learning",
    ("low", "speed"): "slow",
    ("low", "codes"): "collapse",
    ("low", "entropy"): "collapse",
    ("low", "lr"): "schedule",
    ("low", "reward"): "not-learning",
    ("low", "term"): "collapse",
    ("low", "own"): "not-learning",
    ("low", "number"): "not-learning",
    ("low", "scale"): "nonfinite",
    ("high", "loss"): "divergence not-learning",
    ("high", "gradient"): "divergence",
    ("high", "memory"): "memory",
    ("high", "lr"): "schedule",
    ("high", "time"): "slow",
    ("high", "term"): "divergence",
    ("high", "own"): "divergence",
    ("identical", "run"): "collapse",
}
_AT_VALUE: Mapping[str, str] = {
    "loss": "not-learning",
    "score": "not-learning",
    "run": "not-learning",
    "own": "not-learning",
    "lr": "schedule",
    "gradient": "not-learning",
    "entropy": "collapse",
    "codes": "collapse",
    "term": "not-learning collapse",
    "memory": "memory",
    "speed": "slow",
    "time": "slow",
    "scale": "nonfinite",
    "adversary": "not-learning",
    "number": "not-learning",
    "weights": "not-learning",
}
_FAILED = re.compile(r"\bfail(?:s|ed|ing|ure)?\b", re.IGNORECASE)
_HELD_OUT = frozenset({"validation", "test"})
_JUDGED = frozenset({"loss", "score", "own", "run", "output"})


def kinds_of(symptom: StatedSymptom) -> frozenset[str]:
    """The kinds of an observation; empty for one that is in order or not understood."""
    family = symptom.subject.family if symptom.subject is not None else "run"
    told = _BY_DIRECTION.get(symptom.direction)
    if told is None and symptom.direction in ("is", "stays"):
        told = _AT_VALUE.get(family)
    if told is None:
        told = _BY_BOTH.get((symptom.direction, family))
    kinds = set((told or "").split())
    if symptom.direction == "poor" and family == "run" and _FAILED.search(symptom.said):
        kinds |= {"crash"}  # "the run failed": badly, or with an error
    held_out = symptom.subject is not None and symptom.subject.group in _HELD_OUT
    if kinds and held_out and family in _JUDGED and symptom.direction not in ("crash", "hang", "oom", "slow"):
        kinds |= {"generalization"}
        kinds |= {"wrong-output"} if family in ("score", "run") and symptom.direction != "nonfinite" else set()
    if kinds and symptom.place.kind == "resume":
        kinds |= {"resume"}
    if symptom.direction == "slow" and symptom.subject is not None and symptom.subject.group == "train":
        kinds |= {"slow"}
    return frozenset(kinds)


_BRINGS_ABOUT: Mapping[str, str] = {
    "nonfinite": "crash divergence not-learning generalization wrong-output collapse",
    "divergence": "nonfinite not-learning generalization wrong-output collapse crash",
    "not-learning": "wrong-output collapse generalization divergence",
    "generalization": "wrong-output not-learning divergence collapse",
    "schedule": "not-learning divergence generalization nonfinite resume wrong-output",
    "collapse": "wrong-output generalization not-learning divergence",
    "resume": "divergence not-learning generalization wrong-output schedule crash",
    "wrong-output": "generalization not-learning divergence collapse",
    "memory": "crash slow hang",
    "crash": "hang",
    "hang": "crash slow",
    "slow": "hang",
}
"""What else a person sees where a kind is at work. Learning and machinery are apart: speed explains no accuracy."""

_LEARNING = frozenset(
    {"nonfinite", "divergence", "not-learning", "generalization", "schedule", "collapse", "resume", "wrong-output"}
)


def fits(mode_symptoms: Iterable[str], stated: Iterable[StatedSymptom]) -> str:
    """Whether a mode with these symptoms of the catalog "explains" what was stated, is "unrelated", or "unknown".

    One stated symptom that it explains is enough. It is unrelated where everything that was stated is of another part:
    the course of learning against speed, memory, hanging and crashes.
    """
    of_mode = frozenset(mode_symptoms)
    seen = [s for s in stated if s.understood and s.kinds and not s.asked]
    if not seen or not of_mode:
        return "unknown"
    reach = of_mode | {k for m in of_mode for k in _BRINGS_ABOUT.get(m, "").split()}
    if any(reach & s.kinds for s in seen):
        return "explains"
    apart = all(bool(s.kinds & _LEARNING) != bool(of_mode & _LEARNING) or not s.kinds & _LEARNING for s in seen)
    return "unrelated" if apart else "unknown"


UNRELATED_CAP = 0.69
"""The most that a mode may claim as the cause of a stated symptom that it cannot explain: below `triage.CONFIDENT`."""


def cap_for(mode_symptoms: Iterable[str], stated: Iterable[StatedSymptom]) -> float:
    """The highest confidence of a mode as the cause of what was stated: 1.0 where it explains any of it.

    Where nothing was stated, or nothing that is understood, no mode is held down.
    """
    seen = [s for s in stated if s.understood and s.kinds and not s.asked]
    return 1.0 if not seen or fits(mode_symptoms, seen) == "explains" else UNRELATED_CAP
