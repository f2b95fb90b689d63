"""What the check of a fix came to: one of a closed set of results, why, and what was compared."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import model_validator

from traindx.values import Model, Quoted

Change = Literal["better", "worse", "unchanged", "changed", ""]
"""What became of a metric: "unchanged" within the spread of the runs, "changed" where nothing says which way is better,
"" where one side did not measure it."""


class MetricChange(Model):
    """One row of the before/after table: the levels at the end of the runs, as they are shown."""

    name: str
    before: str
    after: str
    unit: str = ""
    """"" for a number without one, or of which the log does not say it."""
    change: Change = ""
    asked: bool = False
    """Whether the symptom or the promise of the fix is about it."""


VerificationResult = Literal["fixed", "passed_effect_not_shown", "no_effect", "not_executed", "failed"]
"""What a verification came to; a closed set.

- fixed: what was promised was seen against the unfixed code: the error or NaN that it fails with is gone, the cited
  finding is gone, or the promised metric moved beyond the spread. Or a person said that it helped.
- passed_effect_not_shown: the command passed, and nothing that was promised was seen to move: no metric, or within the
  spread. A person decides; no strike and no success.
- no_effect: the fault is there as before, or the promised metric moved the other way, or is bit for bit the same under
  a command that shows the fault on the unfixed code. A strike; the change is reverted.
- not_executed: the command passed without executing a changed line: nothing is verified. A person decides.
- failed: the command failed in another way. A strike; the change is reverted.
"""

UNDECIDED: frozenset[str] = frozenset({"passed_effect_not_shown", "not_executed"})
"""Results that neither settle a fix nor count against it: a person decides, or another command is given."""


class Verification(Model):
    """What the check of a fix showed. `reasons` says why it did or did not pass; `notes` what a person should know."""

    passed: bool
    """True for the result "fixed" and for nothing else."""
    reasons: tuple[str, ...]
    result: VerificationResult = "failed"
    endings: tuple[str, ...] = ()
    """Those of the reasons that only say how the command ended: they decide nothing where the unfixed code ends so."""
    own_error: Quoted = ""
    """The error that the change brought with it and the unfixed code does not have: it speaks against the change and
    not against the cause."""
    compared: tuple[Quoted, ...] = ()
    """What became of each promised metric, with the spread."""
    notes: tuple[str, ...] = ()
    table: tuple[MetricChange, ...] = ()
    command: str | None = None
    exit_code: int | None = None
    timed_out: bool = False
    seconds: float = 0.0
    output: str | None = None
    """Path of the captured output, relative to the session's folder."""
    regressions: tuple[str, ...] = ()
    """What is worse than before: a finding of medium severity and above that is new, a metric that moved the wrong
    way."""
    steps_without_recurrence: float | None = None
    """Steps that the new run went beyond the step where the old one failed (beyond 0 where that is not known), the
    fewest of all runs; None where the fault came back or no steps are counted."""

    @model_validator(mode="before")
    @classmethod
    def _result_of_old_records(cls, data: Any) -> Any:
        """A record that was written before there were results says only whether it passed."""
        if isinstance(data, Mapping) and "result" not in data:
            return {**data, "result": "fixed" if data.get("passed") else "failed"}
        return data

    @model_validator(mode="after")
    def _passed_is_fixed(self) -> Verification:
        if self.passed != (self.result == "fixed"):
            raise ValueError(f"passed is {self.passed}, and the result is {self.result}")
        return self

    @property
    def decided(self) -> bool:
        """False while a person has to say what it means."""
        return self.result not in UNDECIDED

    @property
    def failed(self) -> bool:
        """True where it counts as a strike."""
        return self.decided and not self.passed

    @property
    def lesson(self) -> str:
        """What a failed verification teaches of the cause: no more than what was measured."""
        if self.own_error:
            return f"the change brought an error of its own ({self.own_error}): this says nothing of the cause"
        if self.result == "no_effect":
            return "the symptom was measured and stayed: the cause alone is not it, or the change did not reach it"
        return "the verification failed; whether the symptom stayed was not measured"
