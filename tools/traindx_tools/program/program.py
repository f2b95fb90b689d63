"""One training program: its parts and what happened, in the order in which it happened."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from traindx_tools.program.entities import Drop, Loss, Model, Optimizer, Scaler, Schedule, StateFile
from traindx_tools.program.moments import Section
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
    scalers: list[Scaler] = field(default_factory=list)
    drops: list[Drop] = field(default_factory=list)
    runs: list[Section] = field(default_factory=list)
    """What a text says will happen: one tree for each way into the program. Empty where the program ran."""
    unknown: list[str] = field(default_factory=list)
    """What is not known and why, one sentence each."""
    timeline: Timeline = field(default_factory=Timeline)
    ended: bool = False
    """It came to its own end: no error, no kill."""
    remarks: list[str] = field(default_factory=list)
    """Other facts, one sentence each, such as what a check on a captured step found to be in order."""
    memo: dict[str, Any] = field(default_factory=dict, repr=False, compare=False)
    """Answers to questions that several checks ask, by question."""
