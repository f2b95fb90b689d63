"""A training project, and an investigator that says what a test scripts, so that the protocol can be tested alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from traindx.investigators.base import Case, Conclusion, Gathered, Hypotheses
from traindx.model import Decision, Diagnosis, Evidence, Fix, Hypothesis, Instruction, ProposedEdit, Symptom
from traindx.verify import NewRun

TRAIN = """import numpy as np

seed = 0
learning_rate = 10.0
weight = 1.0
for step in range(200):
    weight -= learning_rate * 2 * weight
    print(f"step {step} loss {weight ** 2:.4g}")
"""
FAULT_LINE = 4
FIXED = TRAIN.replace("learning_rate = 10.0", "learning_rate = 0.1")

EVIDENCE = Evidence(id="E1", statement="learning_rate is 10.0 at train.py:4", value="10.0", place="train.py:4",
                    strength="ran", bearing="cause", rule="C199")


def make_workspace(root: Path, train: str = TRAIN) -> Path:
    """A folder with train.py and a file that no fix may touch."""
    root.mkdir(parents=True)
    (root / "train.py").write_text(train)
    (root / "other.py").write_text("value = 1\n")
    return root


def replace_line(new: str, line: int = FAULT_LINE, old: str = "learning_rate = 10.0",
                 path: str = "train.py") -> ProposedEdit:
    """An edit of one line."""
    return ProposedEdit(path=path, line=line, end_line=line, original=old, replacement=new)


def fix(*edits: ProposedEdit, option: str = "A", summary: str = "Set the learning rate to a stable value",
        instructions: Sequence[Instruction] = ()) -> Fix:
    """A complete option."""
    return Fix(option="A" if option == "A" else "B", summary=summary, edits=tuple(edits),
               instructions=tuple(instructions),
               metric="loss falls below 1 within 20 steps", verify="run train.py for 200 steps",
               otherwise="look at the initial weight", fragile="the value is still set by hand")


def diagnosis(*options: Fix, failure_mode: str = "lr.too-high", component: str = "train.py",
              **changes: Any) -> Diagnosis:
    """A complete Gate 4 diagnosis of the fault in `TRAIN`."""
    values: dict[str, Any] = {
        "symptom": "The loss grows without bound from the first step.",
        "root_cause": "The learning rate is 10.0 at train.py:4, far above the stable limit of 1.0.",
        "why_this_happens": "Each step multiplies the weight by 1 - 2 * 10, so that its size grows 19 times a step.",
        "proposed_fix": "Set learning_rate to 0.1 at train.py:4.",
        "will_change": ("Training takes smaller steps.",),
        "will_not_fix": ("A divergence that comes from the data.",),
        "failure_mode": failure_mode,
        "component": component,
        "confidence": 0.95,
        "location": "train.py:4",
        "cites": ("E1",),
        "evidence": (EVIDENCE,),
        "options": options or (fix(replace_line("learning_rate = 0.1")),),
    }
    return Diagnosis(**{**values, **changes})


def hypotheses(confidence: float = 0.6) -> tuple[Hypothesis, ...]:
    """Three ranked hypotheses."""
    return tuple(Hypothesis(id=f"H{n}", failure_mode=mode, issue=issue, location="train.py:4" if n == 1 else None,
                            confidence=c, confirm=("look at train.py:4",), rule_out=("run with 0.1",))
                 for n, mode, issue, c in ((1, "lr.too-high", "the learning rate is too high", confidence),
                                           (2, "init.too-large", "the first weight is too large", 0.2),
                                           (3, "data.outlier", "a sample is far out", 0.1)))


@dataclass
class Scripted:
    """Concludes with the next entry of `conclusions` that the session has not used up; the last one stays."""

    conclusions: Sequence[Conclusion | Callable[[Case], Conclusion]]
    name: str = "scripted"
    quick: bool = False
    during: dict[str, Callable[[Case], Any]] = field(default_factory=dict)
    """What happens inside a step: a test's way to misbehave."""
    seen: list[Case] = field(default_factory=list)

    def _enter(self, step: str, case: Case) -> None:
        self.seen.append(case)
        if step in self.during:
            self.during[step](case)

    async def characterize(self, case: Case) -> Symptom:
        self._enter("characterize", case)
        return case.symptom.model_copy(update={"expected": "the loss falls"})

    async def hypothesize(self, case: Case) -> Hypotheses:
        self._enter("hypothesize", case)
        new = () if any(e.id == "E1" for e in case.evidence) else (EVIDENCE,)
        return Hypotheses(hypotheses(0.95 if self.quick else 0.6), new, quick=self.quick)

    async def gather(self, case: Case) -> Gathered:
        self._enter("gather", case)
        number = len(case.evidence) + 1
        more = Evidence(id=f"E{number}x", statement="the loss is 361 times larger a step later", value="361",
                        place="log.txt:2", strength="ran", bearing="sign")
        return Gathered((more,), case.hypotheses)

    async def diagnose(self, case: Case) -> Conclusion:
        self._enter("diagnose", case)
        index = min(len(case.attempts), len(self.conclusions) - 1)
        chosen = self.conclusions[index]
        return chosen(case) if callable(chosen) else chosen


def approve(option: str = "A") -> Callable[[Diagnosis], Decision]:
    """A callback that approves whatever it is shown."""
    return lambda d: Decision(verdict="approve", diagnosis_digest=d.digest(), option="A" if option == "A" else "B",
                              by="tester")


def examined(paths: Sequence[Path]) -> NewRun:
    """No instruments: the verification is judged by its command alone."""
    return NewRun()
