"""What names hold while a program is played: things by identity, and whether they came out of a file unread."""

from __future__ import annotations

import ast
from dataclasses import dataclass, field

from traindx_tools.on_code.syntax import Syntax


@dataclass(frozen=True, eq=False)
class Mark:
    """Something that came out of a file: what is written there, and under which conditions and loops."""

    entry: str
    code: Syntax
    node: ast.AST
    conditions: tuple[tuple[int, int], ...] = ()
    loops: tuple[int, ...] = ()
    any_file: bool = False
    """Such files hold anything: it is a checkpoint where the program writes one with this entry itself."""


@dataclass(eq=False)
class Held:
    """What a name holds. `loaded`: it is what a file gave; `pending`: a state of a file went into it, unread."""

    loaded: Mark | None = None
    pending: Mark | None = None
    made: str = ""
    """What it is made by, as a qualified name: "torch.optim.AdamW"."""
    klass: tuple[Syntax, ast.ClassDef] | None = None
    attrs: dict[str, Held] = field(default_factory=dict)
    parts: tuple[Held, ...] = ()
    uses: int = 0


@dataclass(eq=False)
class Frame:
    """The names of one call, or of a file. `around`: of the function that it is defined in, or of the file."""

    names: dict[str, Held] = field(default_factory=dict)
    around: Frame | None = None
    shared: set[str] = field(default_factory=set)
    """Names that belong to the frame around: global, nonlocal."""
    result: Held | None = None

    def home(self, name: str, *, stores: bool = False) -> dict[str, Held]:
        """The dict that holds a name, or that it is stored in."""
        frame: Frame | None = self
        if stores and name not in self.shared:
            return self.names
        while frame is not None:
            if name in frame.names and (name not in frame.shared):
                return frame.names
            frame = frame.around
        return self.names


@dataclass(eq=False)
class Loss:
    """What was written over before it was read; `sure` once somebody reads what stands there instead."""

    mark: Mark
    target: str
    code: Syntax
    node: ast.AST
    old: Held
    new: Held
    place: tuple[int, str]
    replaced: bool = False
    turns: bool = False
    """A loop counts in it."""
    uses: int = 0
    sure: bool = False
    called: tuple[Syntax, ast.AST] | None = None
    """The call of the method in which it is lost, where the load is in another function."""
