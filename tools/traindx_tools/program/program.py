"""One training program: its parts and what happened, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.program.entities import Loss, Model, Optimizer, Schedule, StateFile
from traindx_tools.program.timeline import Timeline


@dataclass
class Program:
    """What is known of it. Filled while it runs (or is read); asked by checks and by whoever needs facts."""

    framework: str
    models: list[Model] = field(default_factory=list)
    optimizers: list[Optimizer] = field(default_factory=list)
    schedules: list[Schedule] = field(default_factory=list)
    losses: list[Loss] = field(default_factory=list)
    files: list[StateFile] = field(default_factory=list)
    timeline: Timeline = field(default_factory=Timeline)
    ended: bool = False
    """It came to its own end: no error, no kill."""
    remarks: list[str] = field(default_factory=list)
    """Other facts, one sentence each, such as what a check on a captured step found to be in order."""
