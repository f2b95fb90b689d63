"""The values of a debugging session: what is said, shown, approved, tried and kept.

All are frozen pydantic models that refuse unknown fields, so that a journal written by one version is either read
exactly or refused. Text that came from logs, code or the web is held as data; nothing here interprets it.
"""

from __future__ import annotations

import hashlib
import json
from datetime import datetime
from typing import Any, Literal

from pydantic import Field, JsonValue, model_validator

from traindx.fixes import Fix as Fix
from traindx.fixes import Instruction as Instruction
from traindx.fixes import OptionName as OptionName
from traindx.fixes import ProposedEdit as ProposedEdit
from traindx.values import SHOWN_AT_MOST as SHOWN_AT_MOST
from traindx.values import Model as Model
from traindx.values import Quoted as Quoted
from traindx.values import Texts as Texts
from traindx.values import now as now
from traindx.values import quoted as quoted
from traindx.verification import UNDECIDED as UNDECIDED
from traindx.verification import MetricChange as MetricChange
from traindx.verification import Verification as Verification
from traindx.verification import VerificationResult as VerificationResult
from traindx_tools.errors import BadUsage
from traindx_tools.finding import BEFORE, Bearing, Strength
from traindx_tools.short import in_short


class Symptom(Model):
    """What went wrong, as characterized before anything is investigated."""

    observed: Quoted
    expected: Quoted = ""
    since_when: Quoted = ""
    what_changed: Quoted = ""
    reproducible: Literal["always", "sometimes", "unknown"] = "unknown"
    told_by: Literal["person", "instruments"] = "person"
    """Whose words `observed` holds: what the instruments filled in is no symptom that has to be explained."""


class Artifacts(Model):
    """What the user handed over, by role. An entry is a path, or the text itself where no such path exists."""

    training_logs: Texts = ()
    loss_curves: Texts = ()
    model_code: Texts = ()
    error_messages: Texts = ()
    config: Texts = ()
    paths: Texts = ()
    """Files and folders whose role is found by content."""

    @property
    def missing(self) -> tuple[str, ...]:
        """Names of the roles that nothing was handed over for; none where `paths` may hold them."""
        roles = ("training_logs", "loss_curves", "model_code", "error_messages", "config")
        return () if self.paths else tuple(r for r in roles if not getattr(self, r))

    def joined(self, more: Artifacts) -> Artifacts:
        """These artifacts and more of them, each once."""
        return Artifacts(**{role: tuple(dict.fromkeys((*getattr(self, role), *getattr(more, role))))
                            for role in Artifacts.model_fields})

    @property
    def everything(self) -> tuple[str, ...]:
        """All entries in the order of the roles."""
        return (*self.training_logs, *self.loss_curves, *self.model_code, *self.error_messages, *self.config,
                *self.paths)


class Evidence(Model):
    """One thing that was seen: a statement, the concrete value in it and the place where it stands."""

    id: str = Field(pattern=r"^[A-Za-z][A-Za-z0-9_.-]{0,63}$")
    statement: Quoted
    value: Quoted = ""
    """The concrete value, shape or quoted text: "1.2 -> 310", "(32, 1) against (32,)"."""
    place: Quoted = ""
    """`file.py:LINE`, "log.txt:812, step 400", a module path or a rank."""
    strength: Literal["ran", "derived", "guessed"] = "guessed"
    """How it was seen: measured in a run, derived from a text, or guessed from names and defaults."""
    bearing: Literal["cause", "sign", "companion"] = "companion"
    """How near it is to the cause."""
    rule: str = ""
    source: Quoted = ""
    finding: dict[str, JsonValue] | None = None
    """`Finding.to_json()` where an instrument saw it."""

    @model_validator(mode="before")
    @classmethod
    def _of_an_earlier_version(cls, data: Any) -> Any:
        """Records of earlier versions called nearness strength, and knew nothing of how a thing was seen."""
        if isinstance(data, dict) and data.get("strength") in BEFORE:
            ran = not str(data.get("rule", "C")).startswith("C")
            return {**data, "strength": "ran" if ran else "derived", "bearing": BEFORE[data["strength"]].value}
        return data

    @property
    def cap(self) -> float:
        """The most that a diagnosis may claim on it."""
        return min(Strength(self.strength).cap, Bearing(self.bearing).cap)


class Hypothesis(Model):
    """A possible cause, with what would settle it and what was found for and against it."""

    id: str
    failure_mode: str
    issue: Quoted
    mechanism: Quoted = ""
    location: str | None = None
    confidence: float = Field(default=0.0, ge=0.0, le=1.0)
    confirm: tuple[str, ...] = ()
    rule_out: tuple[str, ...] = ()
    for_: tuple[str, ...] = Field(default=(), alias="for")
    against: tuple[str, ...] = ()
    status: Literal["open", "confirmed", "ruled_out"] = "open"

    def __repr__(self) -> str:
        where = f" at {self.location}" if self.location else ""
        return f"<Hypothesis {self.confidence:.0%} {self.failure_mode}{where}, {self.status}>"

    __str__ = __repr__


SURE = 0.80
"""Below, one more observation is asked for before a fix (over 80 % confidence or ask for more data)."""


class Approach(Model):
    """What a strike is counted against: a failure mode in a component."""

    failure_mode: str
    component: str

    def __str__(self) -> str:
        return f"{self.failure_mode} in {self.component}"


class Diagnosis(Model):
    """A Gate 4 diagnosis: its six sections, the evidence it cites and the options it offers."""

    symptom: Quoted
    claim: Quoted = ""
    """The root cause in one clause, for the question at the gate; `root_cause` stands in where it is empty."""
    root_cause: Quoted
    why_this_happens: Quoted
    proposed_fix: Quoted
    will_change: tuple[Quoted, ...]
    will_not_fix: tuple[Quoted, ...]
    failure_mode: str
    component: str
    """What the fault sits in: a file ("model.py"), a function or a module path. Strikes are counted by it."""
    confidence: float = Field(ge=0.0, le=1.0)
    location: str | None = None
    severity: Literal["critical", "high", "medium", "low", "info"] = "high"
    cites: tuple[str, ...]
    """Ids of the evidence that the root cause rests on."""
    evidence: tuple[Evidence, ...]
    """The cited evidence itself, so that a diagnosis can be read alone and its digest covers the values."""
    options: tuple[Fix, ...]
    first_check: Quoted = ""
    """The observation that would raise the confidence most, asked for below `SURE`."""
    dissent: tuple[Quoted, ...] = ()
    """Who holds something else, with what stands for it: shown at the gate."""
    investigators: tuple[str, ...] = ()
    """Who worked on it: the engine, the lead, specialists, the adversary."""
    degraded: tuple[Quoted, ...] = ()
    """Who should have worked on it and did not, and why: first at the gate."""

    @property
    def approach(self) -> Approach:
        """What a failed fix of this diagnosis counts against."""
        return Approach(failure_mode=self.failure_mode, component=self.component)

    def option(self, name: OptionName) -> Fix | None:
        """The fix with this name, or None."""
        return next((f for f in self.options if f.option == name), None)

    def digest(self) -> str:
        """sha256 (hex) of the canonical JSON: any change to the diagnosis changes it."""
        later = {n for n in ("dissent", "investigators", "degraded") if not getattr(self, n)}  # earlier ones have none
        told = {k: v for k, v in self.to_json().items() if k not in later}
        text = json.dumps(told, sort_keys=True, separators=(",", ":"), ensure_ascii=True, allow_nan=False)
        return hashlib.sha256(text.encode("ascii")).hexdigest()

    @property
    def questions(self) -> tuple[str, str, str]:
        """The three questions that are asked with it."""
        first, more = self.evidence[:1], len(self.evidence) - 1
        because = first[0].statement.rstrip(".") if first else "no evidence was cited"
        because += f" (and {more} more under the evidence)" if more > 0 else ""
        a, b = self.option("A"), self.option("B")
        fragile = f" A leaves fragile: {a.fragile}" if a and a.fragile else ""
        choice = (f"A: targeted fix ({a.summary.rstrip('.')}) or B: broader refactor ({b.summary.rstrip('.')})?"
                  if a and b else f"Only one option is offered ({self.options[0].summary.rstrip('.')}): apply it?"
                  if self.options else "No option is offered.")
        known = [f"{f.option}: {f.change.rstrip('.')}." for f in self.options if f.edits and f.change]
        choice = " ".join((choice, *known))
        return (
            f"I believe the root cause is: {(self.claim or self.root_cause).rstrip('.')}, because {because}. "
            f"Does this match what you see?{self._doubt}",
            choice + fragile,
            f"This also changes: {'; '.join(c.rstrip('.') for c in self.will_change)}. Is that acceptable?",
        )

    @property
    def questions_below(self) -> tuple[str, str, str]:
        """The same, where cause and evidence stand right above them."""
        _, choice, changes = self.questions
        return (f"I believe the root cause is the one above. Does this match what you see?{self._doubt}", choice,
                changes)

    @property
    def _doubt(self) -> str:
        """What is said with the first question below `SURE`: look first, then fix."""
        if self.confidence >= SURE:
            return ""
        check = self.first_check.rstrip(".") or "add logging that shows the cause itself"
        return (f" It is {self.confidence:.0%} sure, below {SURE:.0%}: before a fix, add one more observation "
                f"({check}).")


class NeedsData(Model):
    """The honest answer when the evidence does not reach: what is missing, and what was seen so far."""

    reason: str
    artifacts: tuple[str, ...] = ()
    """What to hand over, named."""
    next_checks: tuple[str, ...] = ()
    """Exact commands to run next."""
    questions: tuple[str, ...] = ()
    """What only the user can answer."""
    investigators: tuple[str, ...] = ()
    degraded: tuple[Quoted, ...] = ()
    """As of a diagnosis."""


class Healthy(Model):
    """The honest answer when nothing is wrong."""

    reason: str
    investigators: tuple[str, ...] = ()
    degraded: tuple[Quoted, ...] = ()
    """As of a diagnosis."""


def _diagnosis(given: object) -> Diagnosis:
    """What a decision is about. Raises BadUsage for anything but a diagnosis."""
    if isinstance(given, Diagnosis):
        return given
    raise BadUsage(f"a decision is about a Diagnosis, as `result.diagnosis` or what `approve` is called with; got "
                   f"{in_short(given)} ({type(given).__name__})")


class Decision(Model):
    """What a person decided at the gate. An approval names the diagnosis by digest and one option of it."""

    verdict: Literal["approve", "reject", "revise"]
    diagnosis_digest: str
    option: OptionName | None = None
    by: Quoted = "user"
    at: datetime = Field(default_factory=now)
    comment: str = ""

    @classmethod
    def approve(cls, diagnosis: Diagnosis, option: OptionName = "A", *, by: str = "user",
                comment: str = "") -> Decision:
        """Approve one option of exactly this diagnosis. Raises BadUsage for what is the name of none."""
        offered = tuple(f.option for f in _diagnosis(diagnosis).options)
        if option not in ("A", "B"):
            raise BadUsage(f"option is {in_short(option)}, expected one of this diagnosis: {', '.join(offered)}")
        return cls(verdict="approve", diagnosis_digest=diagnosis.digest(), option=option, by=by, comment=comment)

    @classmethod
    def reject(cls, diagnosis: Diagnosis, comment: str, *, by: str = "user") -> Decision:
        """The root cause is wrong: stop."""
        return cls(verdict="reject", diagnosis_digest=_diagnosis(diagnosis).digest(), by=by, comment=comment)

    @classmethod
    def revise(cls, diagnosis: Diagnosis, comment: str, *, by: str = "user") -> Decision:
        """Look again, with what the person knows."""
        return cls(verdict="revise", diagnosis_digest=_diagnosis(diagnosis).digest(), by=by, comment=comment)

    @model_validator(mode="after")
    def _names_an_option(self) -> Decision:
        if self.verdict == "approve" and self.option is None:
            raise ValueError("an approval names one option: A or B")
        return self


class Direction(Model):
    """What a person decided after the third strike: try something fundamentally different, or stop."""

    choice: Literal["different", "stop"]
    by: str = "user"
    at: datetime = Field(default_factory=now)
    comment: str = ""


class Verify(Model):
    """How a fix is checked: a command, the artifacts of a new run, or both."""

    command: str | tuple[str, ...] | None = None
    """Run in the workspace: a text by the shell, a sequence as it is. Needs the user's consent to run."""
    new_run: Texts = ()
    """Files or folders, relative to the workspace, where the new run writes its metrics; its output is read anyway."""
    timeout: float = Field(default=1800.0, gt=0, allow_inf_nan=False)
    """Seconds for one run of the command."""
    memory_mib: int | None = Field(default=None, gt=0)
    """Resident memory of the command and its children; by default most of the machine's."""
    steps: int | None = Field(default=None, gt=0)
    """How far the new run must get; by default 100 steps past the old failure, or ten times as far."""
    runs: int | None = Field(default=None, ge=1)
    """How often the command is run; by default once, three times for an intermittent symptom."""
    keep_env: tuple[str, ...] = ()
    """Environment variables that the command needs although they look like secrets."""
    sandbox: bool = True
    """Run in the sandbox of this machine where there is one; False: the person does not want it."""
    writable: Texts = ()
    """Folders outside of the workspace that the command writes to, for the sandbox."""
    baseline: bool = True
    """Run the command on the unfixed code first, in a copy; False: the person does not want that."""
    baseline_run: Texts = ()
    """Logs or metrics that this same command wrote on the unfixed code: they are the baseline, nothing is run for it.
    Relative to the workspace."""


class Attempt(Model):
    """One fix that was tried."""

    number: int = Field(ge=1)
    diagnosis_digest: str
    option: OptionName
    approach: Approach
    summary: str
    places: tuple[tuple[str, int, int], ...]
    originals: tuple[str, ...] = ()
    """What the edited lines held before, so that the same lines are recognized after they moved."""
    verification: Verification | None = None
    reverted: bool = False
    undone: bool = False
    """Taken back by a person before it was judged: nothing speaks against it."""

    @property
    def where(self) -> tuple[str, ...]:
        """`path:line` of everything that it changed, each once."""
        return tuple(dict.fromkeys(f"{path}:{first}" for path, first, _ in self.places))


class Budget(Model):
    """How long and how often a session may try before it waits for a person."""

    seconds: float = Field(default=1800.0, gt=0, allow_inf_nan=False)
    attempts: int = Field(default=6, ge=1)
