"""The two formats that other programs speak: the context package that comes in, the result JSON that goes out."""

from __future__ import annotations

import re
from typing import Any, Literal

from pydantic import Field, JsonValue, field_validator

from traindx.model import Artifacts, Hypothesis, Model

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(s|sec|second|m|min|minute|h|hour)?s?\s*", re.IGNORECASE)
_SECONDS = {"s": 1.0, "m": 60.0, "h": 3600.0}


class Constraints(Model):
    """Limits of the asker. `max_analysis_time` is in seconds; "5 minutes" and "300s" are read as well."""

    max_analysis_time: float | None = Field(default=None, gt=0)
    output_format: str = "structured_diagnosis"

    @field_validator("max_analysis_time", mode="before")
    @classmethod
    def _duration(cls, value: object) -> object:
        if not isinstance(value, str):
            return value
        found = _DURATION.fullmatch(value)
        if found is None:
            raise ValueError(f"max_analysis_time is a duration such as 300, '300s' or '5 minutes', got {value!r}")
        return float(found[1]) * _SECONDS[(found[2] or "s")[0].lower()]


class ContextPackage(Model):
    """What a calling agent or script hands over: the task, artifacts by role, symptoms and constraints."""

    task: str = ""
    artifacts: Artifacts = Artifacts()
    symptoms: tuple[str, ...] = ()
    constraints: Constraints = Constraints()


class RootCause(Model):
    """One cause in the result JSON."""

    issue: str
    severity: Literal["critical", "high", "medium", "low", "info"]
    evidence: tuple[str, ...]
    fix: str
    confidence: float
    failure_mode: str
    location: str | None
    mechanism: str
    will_change: tuple[str, ...]
    will_not_fix: tuple[str, ...]


class RankedHypothesis(Model):
    """One hypothesis in the result JSON."""

    issue: str
    mechanism: str
    location: str | None
    confidence: float
    confirm: tuple[str, ...]
    rule_out: tuple[str, ...]
    for_: tuple[str, ...] = Field(alias="for")
    against: tuple[str, ...]

    @classmethod
    def of(cls, hypothesis: Hypothesis) -> RankedHypothesis:
        """The part of a session's hypothesis that the result shows."""
        return cls(**{name: getattr(hypothesis, name) for name in cls.model_fields})


_WHERE_KNOWN = frozenset({"scope", "runs", "judged_run", "comparison", "symptom_answer", "set_aside"})


class DiagnosisResult(Model):
    """The result JSON of `traindx diagnose --json` and of the orchestrator."""

    status: Literal["diagnosis_complete", "needs_more_data", "healthy"]
    root_causes: tuple[RootCause, ...] = ()
    hypotheses: tuple[RankedHypothesis, ...] = ()
    findings: tuple[dict[str, JsonValue], ...] = ()
    quick_fixes: tuple[str, ...] = ()
    next_checks: tuple[str, ...] = ()
    analysis_artifacts: dict[str, str] = Field(default_factory=dict)
    scope: dict[str, JsonValue] | None = None
    """The files of the run: `entry`, `how` it is known, `judged`, and `beside`, which were not judged."""
    runs: tuple[dict[str, JsonValue], ...] | None = None
    """Where several runs were read: each with its lines, its status and the findings of its log."""
    judged_run: int | None = None
    """The number of the run that all else is said of, where several were read."""
    comparison: dict[str, JsonValue] | None = None
    """The run beside one that works (`--against`): see `traindx_tools.against`."""
    symptom_answer: tuple[dict[str, JsonValue], ...] = ()
    """What became of each symptom that a person stated: see `traindx_tools.symptom.SymptomAnswer.to_json`."""
    set_aside: tuple[dict[str, JsonValue], ...] = ()
    """Rules and failure modes that a person disagrees with: `name`, `because`, `path`, `source`, `findings`."""

    def to_json(self) -> dict[str, Any]:
        """Plain values; what is only sometimes there (a comparison, the scope, answers) only where it is."""
        return {k: v for k, v in super().to_json().items() if k not in _WHERE_KNOWN or v not in (None, (), [])}
