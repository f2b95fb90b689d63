"""Where runs happen. The orchestrator's place is the protected copy of the workspace; tests have their own."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from traindx_tools.experiments.change import Change
from traindx_tools.experiments.trace import Trace


@dataclass(frozen=True)
class Prepared:
    """A run that is ready to be started: the command with what an intervention changed before the start."""

    command: str
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables set in addition to the run's own."""
    files: Mapping[str, bytes | None] = field(default_factory=dict)
    """Files of the copy that hold something else (None: are not there), by path in the workspace."""
    inside: tuple[Change, ...] = ()
    """Changes that take hold inside the process, by hooks."""
    probes: tuple[str, ...] = ()
    """Instruments that watch besides."""
    options: Mapping[str, Any] = field(default_factory=dict)
    """For the instruments."""


Enough = Callable[[Trace], bool]
"""Asked every fraction of a second with the run as far as it came: whether it has shown what it is run for."""


class Place(Protocol):
    """Runs a prepared command where it can do no harm."""

    @property
    def workspace(self) -> Path:
        """The user's folder: read, never written."""

    @property
    def fingerprint(self) -> str:
        """A digest of what runs depend on besides the command: the files of the workspace, the interpreter."""

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        """One run from its start to its end, to `enough`, or to the limit in seconds."""
