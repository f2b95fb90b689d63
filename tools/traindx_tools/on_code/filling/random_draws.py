"""Which random draws a value was computed from, and which of them were added to something else on the way."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property

from traindx_tools.knowledge.fetching import noise
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Bag, Const, Operation, Site, Symbol, Tensor, Value, parts

_PASSES = 2
"""Walks over the events: what a loop carries comes round once."""


class Noise:
    """The draws of noise of a project, followed through every call and operation where a target is one of them."""

    def __init__(self, project: Project) -> None:
        self.project = project
        self.draws = {e.result: e.site for e in project.events if e.kind == "call" and e.name in noise()
                      and isinstance(e.result, Tensor)}

    def is_draw(self, value: Value | None) -> str:
        """Where a value was drawn, if it is what a draw gave, unchanged; else ""."""
        return str(self.draws[value]) if isinstance(value, Tensor) and value in self.draws else ""

    def mixed_into(self, value: Value | None) -> frozenset[str]:
        """Where the noise was drawn that was added to something on the way to a value."""
        return frozenset(str(s) for s in self._of(value, self._followed[1]))

    def drawn_for(self, value: Value | None) -> frozenset[str]:
        """Where all noise was drawn that a value was computed from."""
        return frozenset(str(s) for s in self._of(value, self._followed[0]))

    def _of(self, value: Value | None, known: dict[Value, frozenset[Site]]) -> frozenset[Site]:
        found: frozenset[Site] = frozenset()
        for one in _leaves(value):
            found |= known.get(one, frozenset())
        return found

    @cached_property
    def _followed(self) -> tuple[dict[Value, frozenset[Site]], dict[Value, frozenset[Site]]]:
        drawn: dict[Value, frozenset[Site]] = {v: frozenset({s}) for v, s in self.draws.items()}
        mixed: dict[Value, frozenset[Site]] = {}
        for _ in range(_PASSES if drawn else 0):
            for event in self.project.events:
                result = event.result
                if not isinstance(result, (Tensor, Symbol, Operation)) or result in self.draws:
                    continue
                given = [v for v in (event.receiver, *event.args, *event.kwargs.values()) if v is not None]
                for known, of_event in ((drawn, frozenset()), (mixed, self._added(event, drawn))):
                    for value in given:
                        of_event |= self._of(value, known)
                    if of_event:
                        known[result] = known.get(result, frozenset()) | of_event
        return drawn, mixed

    def _added(self, event: Event, drawn: dict[Value, frozenset[Site]]) -> frozenset[Site]:
        """The noise that one operation adds to something that does not hold it."""
        if event.kind != "operation" or event.name not in ("+", "-") or len(event.args) != 2:
            return frozenset()
        one, other = (self._of(a, drawn) for a in event.args)
        plain = [isinstance(a, Const) for a in event.args]
        return (one - other if not plain[1] else frozenset()) | (other - one if not plain[0] else frozenset())


def _leaves(value: Value | None, left: int = 3) -> Iterator[Value]:
    if isinstance(value, Bag) and left:
        for item in value.items:
            yield from _leaves(item, left - 1)
    elif isinstance(value, (Symbol, Operation)):
        yield from (p for p in parts(value) if isinstance(p, (Tensor, Symbol, Operation)))
    elif isinstance(value, Tensor):
        yield value
