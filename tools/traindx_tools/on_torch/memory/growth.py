"""Two and more censuses compared: which holding grows by the step."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from traindx_tools.finding import Location
from traindx_tools.on_torch.memory.census import Census, Holding
from traindx_tools.on_variables.filling import line_that_fills

MORE = 2
"""Tensors that a holding must gain between two looks."""
CHAINED = 1.5
"""Factor by which a chained graph must grow between two looks: looks lie a factor of two apart, so a chain doubles."""


@dataclass(frozen=True)
class Growth:
    """A variable that holds more at each look. Per-step figures are over the whole span that was looked at."""

    path: str
    file: str
    function: str
    first_step: int
    last_step: int
    tensors_per_step: float
    graphs_per_step: float
    bytes_per_step: float
    nodes_per_step: float
    """Growth of the graph behind one tensor: a running sum chains the steps' graphs."""
    tensors: int
    with_graph: int
    owner: tuple[str, str] | None = None
    """File and name of the class whose attribute it is."""

    @property
    def variable(self) -> str:
        """The variable as the program writes it, without the index of a single item."""
        return self.path.removesuffix("[*]")

    @property
    def line(self) -> tuple[str, int | None]:
        """The file and the line that put something into it: in its own function, else in its class; the variable's
        file and None where neither shows such a line. It is never a line that only uses what is kept."""
        line = line_that_fills(self.file, self.function, self.variable)
        if line is None and self.owner is not None:
            file, name = self.owner
            line = line_that_fills(file, "", self.variable, name)
            return (file, line) if line is not None else (self.file, None)
        return self.file, line

    def where(self, rank: int) -> Location:
        """The line that fills it, and the steps over which it was seen to grow."""
        file, line = self.line
        return Location(file=file, line=line, step=self.first_step, end_step=self.last_step, rank=rank)

    @property
    def in_words(self) -> str:
        """`losses` of main()."""
        return f"`{self.variable}`" + (f" of {self.function}()" if self.function else "")


def growing(looks: Sequence[tuple[int, Census]]) -> tuple[Growth, ...]:
    """Holdings that grew between every two of the last three looks, the fastest first. Needs three looks."""
    if len(looks) < 3:
        return ()
    (a, first), (_, middle), (c, last) = looks[-3:]
    found = []
    for place, now in last.holdings.items():
        before, between = first.holdings.get(place), middle.holdings.get(place)
        if between is None or now.bounded:
            continue
        before = before or Holding(now.path, now.file, now.function)
        if _grew(before, between) and _grew(between, now):
            found.append(_growth(now, before, a, c))
    return tuple(sorted(found, key=lambda g: (-(g.graphs_per_step + g.nodes_per_step), -g.bytes_per_step, len(g.path))))


def _grew(before: Holding, after: Holding) -> bool:
    """More of it, and not by the one or two that any run's variables vary by; a graph, by half and more."""
    return (after.tensors >= before.tensors + MORE or after.with_graph >= before.with_graph + MORE
            or after.graph_nodes >= CHAINED * before.graph_nodes > 0)


def _growth(now: Holding, before: Holding, first: int, last: int) -> Growth:
    span = max(1, last - first)
    nodes = (now.graph_nodes - before.graph_nodes) / span if before.graph_nodes else 0.0
    return Growth(now.path, now.file, now.function, first, last, (now.tensors - before.tensors) / span,
                  (now.with_graph - before.with_graph) / span, (now.bytes - before.bytes) / span, max(0.0, nodes),
                  now.tensors, now.with_graph, now.owner)


def settled(looks: Sequence[tuple[int, Census]]) -> frozenset[str]:
    """Variables that hold no more at the last look than at the one before: a buffer that has reached its size, a list
    that is cleared now and then. Steps lie a factor of two apart, so what grows by the step would show."""
    if len(looks) < 2:
        return frozenset()
    (_, before), (_, last) = looks[-2:]
    return frozenset(now.path.removesuffix("[*]") for place, now in last.holdings.items()
                     if place in before.holdings and not _grew(before.holdings[place], now))
