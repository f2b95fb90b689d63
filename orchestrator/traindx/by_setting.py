"""Changes that a program's own settings make: what the instruments cannot reach inside it has a key of its own.

An optimizer that was written by hand has no hook, and neither has an augmentation of a few lines of tensor code; but
their rate and their strength stand on the command line, in a file of settings or at the head of the source. The table
of experiments names such keys (`settings`: names, `groups`: sections). A key by that name may mean something else: it
is what an experiment tries, never what a diagnosis rests on.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.interventions.writing.options import normalised
from traindx_tools.experiments.interventions.writing.program import Program
from traindx_tools.experiments.plan import Decision
from traindx_tools.experiments.screening.settings import Setting, settings_of

PART = "own-settings"
"""The part of a program (`Decision.has`) that such a change takes hold of."""
MOST = 12
"""Settings that one change sets: a longer section is more than one thing."""


def settings_in(command: str, workspace: Path) -> list[Setting]:
    """The settings of a program; none where its command starts no file that can be read."""
    try:
        return settings_of(Program(command, workspace))
    except (BadUsage, OSError, ValueError, RecursionError):
        return []


def by_settings(decisions: Iterable[Decision], settings: Iterable[Setting]) -> Iterator[Decision]:
    """Each decision whose change the program's settings can make, made by them."""
    known = list(settings)
    for decision in decisions:
        values = {s.typed: value for s in known for value in (_value(decision, s),) if value is not None}
        if not 0 < len(values) <= MOST or (decision.settings and len({_leaf(t) for t in values}) > 1):
            continue
        said = ", ".join(f"{typed}={value}" for typed, value in values.items())
        yield replace(decision, change=Change("set", dict(values)), needs="", has=(PART,), said=f"setting {said}",
                      why=f"{decision.why} The program's own settings make this change.")


def _value(decision: Decision, setting: Setting) -> float | bool | None:
    """What the change makes of a setting, None where it is none of its own."""
    now = setting.value
    if isinstance(now, str) or not now:
        return None
    if _leaf(setting.typed) in decision.settings:
        times = decision.change.options.get("times", 0)
        if isinstance(now, bool) or not isinstance(times, (int, float)):
            return None
        return float(f"{float(now) * float(times):.6g}")
    sections = setting.name.split(".")[:-1]
    if not any(normalised(s).lower() in decision.groups for s in sections):
        return None
    return False if isinstance(now, bool) else type(now)(0)


def _leaf(typed: str) -> str:
    return normalised(typed.rpartition(":")[2].rpartition(".")[2]).lower()
