"""What an intervention is: its name, its options, where it takes hold, and the four sentences of its page."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import Change, Option
from traindx_tools.experiments.place import Prepared

TORCH, JAX, ANY = "torch", "jax", "any"
"""The frameworks of an intervention; "any" needs none of them."""
INSIDE, BEFORE = "inside", "before"
"""Where it takes hold: in the process by hooks, or before its start (command, environment, files of the copy)."""

NUMBER, INTEGER, TEXT = "number", "integer", "text"
"""The kinds of an option's value."""

Preparation = Callable[[Change, str, Path], Prepared]
"""Change, command and workspace in, the prepared run out. Raises BadUsage where it cannot be done."""


@dataclass(frozen=True)
class Setting:
    """One option: its kind, its range and what it is without being told."""

    name: str
    about: str
    kind: str = TEXT
    default: Option | None = None
    """None without `required`: the intervention does without it."""
    required: bool = False
    least: float = -math.inf
    most: float = math.inf
    choices: tuple[str, ...] = ()

    def read(self, value: Option) -> Option:
        """The value as this option holds it. Raises BadUsage with what was expected."""
        if self.kind == TEXT:
            told = value if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
            if not told or (self.choices and told not in self.choices):
                raise BadUsage(f"{self.name}={told!r}: expected {self.expected}.")
            return told
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not math.isfinite(value):
            raise BadUsage(f"{self.name}={value!r}: expected {self.expected}.")
        if self.kind == INTEGER and value != int(value):
            raise BadUsage(f"{self.name}={value!r}: expected {self.expected}.")
        if not self.least <= value <= self.most:
            raise BadUsage(f"{self.name}={value!r}: expected {self.expected}.")
        return int(value) if self.kind == INTEGER else float(value)

    @property
    def expected(self) -> str:
        """Kind and range in words."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.kind == TEXT:
            return "a text"
        what = "a whole number" if self.kind == INTEGER else "a number"
        low, high = math.isfinite(self.least), math.isfinite(self.most)
        if low and high:
            return f"{what} from {self.least:g} to {self.most:g}"
        if low:
            return f"{what} of {self.least:g} or more"
        return f"{what} of {self.most:g} or less" if high else what


@dataclass(frozen=True)
class Intervention:
    """One way to change a run."""

    name: str
    about: str
    """One line, for lists."""
    changes: str
    keeps: str
    shows: str
    """What it shows when the symptom goes with it."""
    cannot_tell: str
    holds: str = INSIDE
    frameworks: tuple[str, ...] = (TORCH,)
    horizon: int = 20
    """The fewest optimizer steps after which its effect can be judged."""
    options: tuple[Setting, ...] = ()
    free: bool = False
    """Any key is an option of its own (`set`, `env`); at least one is needed."""
    live: Mapping[str, str] = field(default_factory=dict)
    """`module:Class` of what applies it in the process, by framework ("python" for what needs none)."""
    preparation: Preparation | None = None

    def prepare(self, change: Change, command: str, workspace: Path) -> Prepared:
        """The run with the change: what is done before the start, and what the process is told."""
        if self.preparation is not None:
            return self.preparation(change, command, workspace)
        return Prepared(command, inside=(change,))

    def read(self, change: Change) -> Change:
        """The change with every option read and those not told at their defaults. Raises BadUsage."""
        if self.free:
            if not change.options:
                raise BadUsage(f"the change {self.name!r} needs at least one key=value, as in {self.name}:key=value.")
            return change
        known = {o.name: o for o in self.options}
        for key in change.options:
            if key not in known:
                names = ", ".join(known) or "none"
                raise BadUsage(f"the change {self.name!r} has no option {key!r}; its options: {names}.")
        told: dict[str, Option] = {}
        for name, option in known.items():
            if name in change.options:
                told[name] = option.read(change.options[name])
            elif option.required:
                raise BadUsage(f"the change {self.name!r} needs {name}=...: {option.about} ({option.expected}).")
            elif option.default is not None:
                told[name] = option.default
        return Change(self.name, told)
