"""A diagnosis before anything is said of it: what was examined, where it lies and what is proposed."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

from traindx import offers, proposal
from traindx.code_names import NO_NAMES, CodeNames
from traindx.model import Diagnosis, Hypothesis
from traindx.offered import Ground
from traindx.offers import Offer
from traindx.places import Places
from traindx.trial_run import TrialRun
from traindx_tools import triage
from traindx_tools.against import Comparison
from traindx_tools.artifact import Artifact
from traindx_tools.examine import Examination
from traindx_tools.on_logs.run import Run
from traindx_tools.scope import NOTHING_ASKED, Asked

_RERUN = re.compile(r"traindx diagnose .* --run (?:'[^']*'|\S+)")
"""What was done where a report comes of a new run: it is not told to be done again."""

EXIT_CODES = {"healthy": 0, "diagnosis_complete": 1, "needs_more_data": 3}
"""Exit code of `traindx diagnose` by status; 2 is bad usage or unreadable input."""


@dataclass(frozen=True, eq=False)
class Examined:
    """What was examined, with its parts named as a person would: hypotheses, evidence, changes, diagnosis."""

    seen: Examination
    places: Places
    subject: str
    """The paths as a person would type them again in a shell: quoted where a name could mean something to it.
    "" for a history that a program held in memory."""
    missing: tuple[str, ...] = ()
    """Artifacts that the asker announced and that could not be read, or roles for which nothing was given."""
    extra_checks: tuple[str, ...] = ()
    remarks: tuple[str, ...] = ()
    """What a person should know of how this came about, such as whether a new run showed the same."""
    with_log: str = ""
    """The command that reads the log beside what was given, where that itself holds none."""
    comparison: Comparison | None = None
    """This run beside one that works, where one was given."""
    names: CodeNames = NO_NAMES
    """The names that the code which was read gives to things."""
    made: Path | None = None
    """The folder of a new run's output: it is gone when the command ends, and never shown."""
    asked: Asked = NOTHING_ASKED
    """What was said of the run's own files."""
    unnamed: Path | None = None
    """A folder of texts that were handed over without a file: it is nobody's, and never shown."""
    trial_run: TrialRun | None = None
    """How a change is run before it is offered, where a person agreed."""
    facts: str = ""
    """What the program is made of and does, a line each, as the instruments saw it in a new run."""
    drawn: tuple[Path, ...] = ()
    """Pictures of the experiments that were made, named after them: X001.png."""
    _offers: dict[str, Offer] = field(default_factory=dict, init=False)

    def __repr__(self) -> str:
        first = self.seen.verdict.hypotheses[:1]
        said = "".join(f", {h.mode.id} at {h.confidence:.2f}" for h in first)
        of = self.subject or "a history"
        return f"<{type(self).__name__} of {of}: {self.status}{said}, {len(self.seen.findings)} findings>"

    @cached_property
    def exhibits(self) -> proposal.Exhibits:
        """Ids of the findings, as evidence is cited."""
        return proposal.Exhibits.of(self.seen.findings)

    @property
    def status(self) -> str:
        """"diagnosis_complete", "needs_more_data" or "healthy"."""
        return self.seen.verdict.status

    @cached_property
    def run(self) -> Run:
        """What was read, with the code that lies beside a log and was read with it."""
        read = {os.path.realpath(base / a.path) for a in self.seen.run.artifacts for base in (Path(), self.places.root)}
        beside = [Artifact(self.places.name(str(c)), "python", note="found beside the log") for c in self.seen.code
                  if os.path.realpath(c) not in read]
        named = tuple(replace(a, path=self._shown(a.path)) for a in self.seen.run.artifacts)
        return replace(self.seen.run, artifacts=(*named, *beside))

    def _shown(self, text: str) -> str:
        """The text without the folders that are nobody's."""
        for folder in (self.unnamed, self.made):
            text = text if folder is None else text.replace(f"{folder}{os.sep}", "")
        return text

    @property
    def exit_code(self) -> int:
        """0 nothing wrong found, 1 a problem was diagnosed, 3 more data is needed."""
        return EXIT_CODES[self.status]

    @cached_property
    def hypotheses(self) -> tuple[Hypothesis, ...]:
        """The ranked hypotheses with what confirms and rules out each."""
        return tuple(proposal.hypothesis(h, self.exhibits, self.places, self.command)
                     for h in self.seen.verdict.hypotheses)

    def offer(self, found: triage.Hypothesis) -> Offer:
        """What a trial of a hypothesis's diff showed; tried once."""
        if found.mode.id not in self._offers:
            edits = proposal.edits_of(found, self.seen.findings, self.places)
            carriers = proposal.carriers(found, self.seen.findings)
            self._offers[found.mode.id] = offers.offer(
                edits, carriers, self.places, self.seen.code, self.trial_run) if edits else offers.FREE
        return self._offers[found.mode.id]

    @cached_property
    def diagnosis(self) -> Diagnosis | None:
        """The Gate 4 diagnosis of the first cause, or None where no cause is sure enough."""
        if self.status != "diagnosis_complete":
            return None
        first = self.seen.verdict.hypotheses[0]
        made = proposal.diagnosis(first, self.seen, self.exhibits, self.places, self.command, self.offer(first),
                                  self.names)
        if self.unnamed is None and self.made is None:
            return made
        return Diagnosis.model_validate_json(self._shown(made.model_dump_json()))

    @cached_property
    def ground(self) -> Ground:
        """What the catalog's checks are filled from."""
        told = " ".join((*(e.message for e in self.seen.run.errors), *(f.statement for f in self.seen.findings)))
        return Ground(self.subject, self.places, self.names, told)

    def command(self, command: str, measured: Mapping[str, Any]) -> str:
        """A command of the catalog with everything of the user's in it, "" where something of it is not known here."""
        made = self.ground.fill(command, measured)
        if made == f"traindx diagnose {self.subject}":
            return ""  # that is what was typed
        return "" if self.made is not None and _RERUN.fullmatch(made) else made
