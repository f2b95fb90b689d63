"""The engine, as sure of its first guess as it can be: so that a model which knows better can be right against it."""

from __future__ import annotations

import dataclasses
import math
from pathlib import Path

from traindx.diagnose import Report, diagnose
from traindx.investigators.base import Case
from traindx.investigators.offline import OfflineInvestigator


@dataclasses.dataclass(frozen=True)
class SureEngine(OfflineInvestigator):
    """Everything as measured, and all that evidence can carry for the first cause that has a place in the code."""

    def _examined(self, case: Case, *, may_run: bool = False) -> Report:
        report = super()._examined(case, may_run=may_run)
        verdict = report.seen.verdict
        first = next(h for h in verdict.hypotheses if h.location is not None and h.speaks_for)
        cap = max(w.cap for w in first.speaks_for)
        score = math.log(cap / (1.0 - cap) * sum(first.rivals.values()))
        sure = dataclasses.replace(first, confidence=cap, score=score)
        others = tuple(h for h in verdict.hypotheses if h is not first)
        after = dataclasses.replace(verdict, hypotheses=(sure, *others), status="diagnosis_complete")
        return dataclasses.replace(report, seen=dataclasses.replace(report.seen, verdict=after))

    @staticmethod
    def first(work: Path, symptom: str = "accuracy stays at chance") -> str:
        """The failure mode that it is sure of."""
        hypotheses = diagnose([work], symptom=symptom, root=work).seen.verdict.hypotheses
        return next(h.mode.id for h in hypotheses if h.location is not None and h.speaks_for)
