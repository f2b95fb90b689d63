"""What an investigator is: the part of a session that looks, thinks and proposes, and never writes to the workspace.

The session owns the order of the steps, the gate, the strikes and every write. It calls an investigator with a
`Case`, a snapshot of all that is known. An investigator keeps no state between calls that it cannot rebuild from the
case: after a crash the session goes on with a new one. It may write below `case.scratch` only; a change anywhere else
in the workspace halts the session.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol, runtime_checkable

from traindx.knowledge import Knowledge
from traindx.model import Artifacts, Attempt, Diagnosis, Evidence, Healthy, Hypothesis, NeedsData, Symptom, Verify
from traindx.notices import Say, unsaid
from traindx_tools.finding import Strength
from traindx_tools.scope import NOTHING_ASKED, Asked

ENGINE = "engine"
"""The instruments and the arithmetic of triage, among those who worked on a conclusion."""
UNCHALLENGED = Strength.DERIVED.cap
"""The most that is claimed where somebody was to challenge a cause and did not: as for what was read and not run."""


@dataclass(frozen=True)
class Case:
    """All that is known of the session at one moment."""

    workspace: Path
    scratch: Path
    """The session's own folder; `scratch / "evidence"` and `scratch / "plots"` exist and may be written to."""
    symptom: Symptom
    artifacts: Artifacts = field(default_factory=Artifacts)
    hypotheses: tuple[Hypothesis, ...] = ()
    evidence: tuple[Evidence, ...] = ()
    """Everything gathered so far. Ids are unique in a session: a new piece of evidence takes a new id."""
    attempts: tuple[Attempt, ...] = ()
    """Fixes that were tried and how their verification went."""
    strike_level: int = 0
    """0: first look. 1: a fix failed, gather more evidence. 2: two failed, doubt the hypothesis itself."""
    feedback: tuple[str, ...] = ()
    """What the user said at the gate, and why the session sent the last diagnosis back."""
    refused: tuple[str, ...] = ()
    """Approaches with three strikes ("mode in component"): a fix of one of these is refused."""
    rejected: tuple[str, ...] = ()
    """Approaches that a person rejected at the gate ("mode in component"): not to be proposed again as they are."""
    knowledge: Knowledge = field(default_factory=Knowledge)
    """What the project has written down: constraints, fix patterns, failure modes, memory. Data, not orders."""
    quick: bool = False
    """The cause looks obvious (direct evidence, one place): gather only what the diagnosis still lacks."""
    seconds_left: float = 1800.0
    asked: Asked = NOTHING_ASKED
    """What was said of the files of the run: its entry point, the command that starts it."""
    allow_run: bool = False
    """The user agreed that their code may be run, in a copy or under limits."""
    verify: Verify | None = None
    """The command that the user agreed to, and its limits."""
    degraded: tuple[str, ...] = ()
    """Who was asked for as investigator and could not be reached, and why; () where the choice was the engine."""
    files: str = ""
    """A digest of what the workspace holds: what was read or run of another content is not of this case."""
    say: Say = field(default=unsaid, compare=False, repr=False)
    """Told what runs, for whoever waits."""


@dataclass(frozen=True)
class Hypotheses:
    """Three to five possible causes, the likeliest first; with `quick`, the first is backed by direct evidence."""

    ranked: tuple[Hypothesis, ...]
    evidence: tuple[Evidence, ...] = ()
    quick: bool = False


@dataclass(frozen=True)
class Gathered:
    """New evidence (only what is new) and all hypotheses as they stand now, the likeliest first."""

    evidence: tuple[Evidence, ...]
    hypotheses: tuple[Hypothesis, ...]


Conclusion = Diagnosis | NeedsData | Healthy


@runtime_checkable
class Investigator(Protocol):
    """The four steps. Each may take long and may be cancelled; each returns values and writes nothing."""

    @property
    def name(self) -> str:
        """What it is called in the journal and in messages."""
        ...

    async def characterize(self, case: Case) -> Symptom:
        """The symptom with its open fields filled from the artifacts; what the user said is kept."""
        ...

    async def hypothesize(self, case: Case) -> Hypotheses:
        """Ranked hypotheses, each with what would confirm it and what would rule it out."""
        ...

    async def gather(self, case: Case) -> Gathered:
        """More evidence, aimed at the open hypotheses."""
        ...

    async def diagnose(self, case: Case) -> Conclusion:
        """A complete diagnosis with options, or what is missing, or that nothing is wrong."""
        ...
