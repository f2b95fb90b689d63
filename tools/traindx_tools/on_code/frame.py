"""Where a piece of code runs: its names, what it closes over, and what autograd does meanwhile."""

from __future__ import annotations

from dataclasses import dataclass, field

from traindx_tools.on_code.definitions import ClassInfo, FunctionInfo
from traindx_tools.on_code.source import SourceFile
from traindx_tools.on_code.trace import Block
from traindx_tools.on_code.values import ModuleValue, Value


@dataclass(eq=False)
class Frame:
    """One activation of a function or of a module's body."""

    file: SourceFile
    module: ModuleValue
    function: FunctionInfo | None = None
    env: dict[str, Value] = field(default_factory=dict)
    closures: tuple[dict[str, Value], ...] = ()
    bound_in: dict[str, tuple[Block, ...]] = field(default_factory=dict)
    """The loops of this frame around the last plain binding of each name."""
    loops: tuple[Block, ...] = ()
    """The loops of this frame around the current statement, outermost first."""
    returns: list[Value] = field(default_factory=list)
    yields: list[Value] = field(default_factory=list)
    yield_grad: bool | None = None
    """The autograd mode at a yield, for context managers written as generators."""
    yield_count: Value | None = None
    """How often it yields, where it yields once in each turn of one loop that says how many they are."""
    globals_: set[str] = field(default_factory=set)
    outer: set[str] = field(default_factory=set)

    @property
    def owner(self) -> ClassInfo | None:
        """The class whose method this is."""
        return self.function.owner if self.function else None

    def bind(self, name: str, value: Value) -> None:
        """A plain assignment to a name."""
        if name in self.globals_:
            self.module.names[name] = value
            return
        if name in self.outer:
            for env in self.closures:
                if name in env:
                    env[name] = value
                    return
        self.env[name] = value
        self.bound_in[name] = self.loops

    def lookup(self, name: str) -> Value | None:
        """The value of a name, innermost scope first."""
        if name in self.env:
            return self.env[name]
        for env in self.closures:
            if name in env:
                return env[name]
        return self.module.names.get(name)
