"""What can happen to a session. Each event is one line of the journal; the session is the fold of its events."""

from __future__ import annotations

from typing import Annotated, Literal, Union

from pydantic import Field, TypeAdapter

from traindx.model import (
    Artifacts,
    Attempt,
    Decision,
    Diagnosis,
    Direction,
    Evidence,
    Healthy,
    Hypothesis,
    Model,
    NeedsData,
    Symptom,
    Verification,
)

HaltKind = Literal["workspace-changed", "rejected", "three-strikes", "revert-conflict"]


class Characterized(Model):
    """The symptom is written down."""

    kind: Literal["characterized"] = "characterized"
    symptom: Symptom
    evidence: tuple[Evidence, ...] = ()


class Hypothesized(Model):
    """Ranked hypotheses stand; `quick` asks for the quick path."""

    kind: Literal["hypothesized"] = "hypothesized"
    hypotheses: tuple[Hypothesis, ...]
    evidence: tuple[Evidence, ...] = ()
    quick: bool = False


class GatheredEvidence(Model):
    """New evidence came in and the hypotheses were weighed again."""

    kind: Literal["gathered"] = "gathered"
    evidence: tuple[Evidence, ...]
    hypotheses: tuple[Hypothesis, ...]


class Diagnosed(Model):
    """A complete diagnosis is ready for the gate."""

    kind: Literal["diagnosed"] = "diagnosed"
    diagnosis: Diagnosis


class SentBack(Model):
    """A diagnosis was not fit to be presented; `reasons` says why, exactly."""

    kind: Literal["sent-back"] = "sent-back"
    reasons: tuple[str, ...]


class QuickPathEnded(Model):
    """The cause was not so obvious: the full protocol takes over."""

    kind: Literal["quick-path-ended"] = "quick-path-ended"
    reason: str


class DataNeeded(Model):
    """The evidence does not reach."""

    kind: Literal["data-needed"] = "data-needed"
    needs: NeedsData


class DataGiven(Model):
    """The user handed over more."""

    kind: Literal["data-given"] = "data-given"
    artifacts: Artifacts
    comment: str = ""


class FoundHealthy(Model):
    """Nothing is wrong."""

    kind: Literal["found-healthy"] = "found-healthy"
    healthy: Healthy


class Decided(Model):
    """A person decided at the gate."""

    kind: Literal["decided"] = "decided"
    decision: Decision


class ApprovalStale(Model):
    """What was approved no longer fits the files: a new look, and a new approval, are needed."""

    kind: Literal["approval-stale"] = "approval-stale"
    reasons: tuple[str, ...]


class Applied(Model):
    """The approved change is in the workspace."""

    kind: Literal["applied"] = "applied"
    attempt: Attempt


class Verified(Model):
    """The verification ran."""

    kind: Literal["verified"] = "verified"
    verification: Verification


class Reverted(Model):
    """The failed fix is out of the workspace again."""

    kind: Literal["reverted"] = "reverted"
    note: str = ""


class Undone(Model):
    """The applied fix was taken back before anybody judged it: no strike; the diagnosis waits at the gate again."""

    kind: Literal["undone"] = "undone"
    by: str = "user"
    comment: str = ""


class Struck(Model):
    """A strike was counted; `level` is how many this approach has now in this workspace."""

    kind: Literal["struck"] = "struck"
    level: int = Field(ge=1)


class Directed(Model):
    """A person decided how to go on after the third strike."""

    kind: Literal["directed"] = "directed"
    direction: Direction


class Recorded(Model):
    """The root-cause analysis is written; `files` are the session's own."""

    kind: Literal["recorded"] = "recorded"
    files: tuple[str, ...]


class Halted(Model):
    """The session stops until a person looks."""

    kind: Literal["halted"] = "halted"
    halt: HaltKind
    reason: str
    files: tuple[str, ...] = ()


class Interrupted(Model):
    """The session was cut off (cancelled, out of time, an investigator failed); its phase stays."""

    kind: Literal["interrupted"] = "interrupted"
    reason: str


class Resumed(Model):
    """The session goes on. `accepted` are changed files that the user says are theirs; `put_back` are as before."""

    kind: Literal["resumed"] = "resumed"
    accepted: tuple[str, ...] = ()
    put_back: tuple[str, ...] = ()


Event = Annotated[
    Union[  # noqa: UP007 - a runtime expression, Python 3.10 reads it either way, pydantic documents this form
        Characterized, Hypothesized, GatheredEvidence, Diagnosed, SentBack, QuickPathEnded, DataNeeded, DataGiven,
        FoundHealthy, Decided, ApprovalStale, Applied, Verified, Reverted, Undone, Struck, Directed, Recorded, Halted,
        Interrupted, Resumed,
    ],
    Field(discriminator="kind"),
]

EVENTS: TypeAdapter[Event] = TypeAdapter(Event)
"""Reads an event from its JSON; raises pydantic.ValidationError on anything else."""
