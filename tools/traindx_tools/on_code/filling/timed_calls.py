"""Calls of networks that are told where a process stands, in training and in sampling."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.on_code import time_scales
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Instance, Symbol, Thing, Value
from traindx_tools.program.parts import TimedCall


def timed_calls(project: Project) -> Iterator[TimedCall]:
    """Every call with a time after its first argument that was drawn, or counts a loop without gradients."""
    same = {e.receiver: e.args[0].parent for e in project.calls("load_state_dict")
            if isinstance(e.receiver, Symbol) and e.args and isinstance(e.args[0], Symbol)}
    for event in project.calls("__call__"):
        network = _network(same.get(event.receiver, event.receiver))  # type: ignore[arg-type]
        for place, value in (*enumerate(event.args), *event.kwargs.items()) if network else ():
            told = time_scales.of(value) if place != 0 else frozenset()
            drawn = time_scales.DRAWN in told
            if told and (drawn or event.grad is False):
                scale = next(iter(told & time_scales.SCALES))
                yield TimedCall(event.text, event.spot, network, str(place), scale, drawn)


def _network(value: Value | None) -> str:
    """The class of a module, or the one unknown value that is called; an average of weights is of the same class."""
    if isinstance(value, Instance):
        return value.klass.info.name if value.klass.info.is_module else ""
    return value.type if isinstance(value, Thing) else str(hash(value)) if isinstance(value, Symbol) else ""
