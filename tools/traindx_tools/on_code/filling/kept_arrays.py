"""Arrays of an object that are kept in a list while a method of the object goes on writing into them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from traindx_tools.on_code.filling.spots import spot_in, spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.source import below
from traindx_tools.on_code.syntax import syntax
from traindx_tools.on_code.tensors import written_at
from traindx_tools.on_code.values import Bag, Site, Tensor, Value
from traindx_tools.program.moments import Spot
from traindx_tools.program.results import KeptArray

_KEEPS = ("append", "appendleft", "add", "insert", "extend")


def kept_arrays(project: Project) -> Iterator[KeptArray]:
    """Every array that a loop puts into a list as it is."""
    told: set[Site] = set()
    for root in project.roots_with(_KEEPS):
        for place in root.places:
            event = place.event
            if event.method not in _KEEPS or not place.loops or not isinstance(event.receiver, Bag):
                continue
            for value in _flat(event.args, 3):
                site = written_at(value) if isinstance(value, Tensor) else None
                if site is not None and site not in told:
                    told.add(site)
                    yield KeptArray(event.file.segment(event.node), spot_of(event), _handed(project, site), str(site))


def _flat(values: tuple[Value, ...] | list[Value], left: int) -> Iterator[Value]:
    for value in values:
        if isinstance(value, Bag) and left:
            yield from _flat(value.items, left - 1)
        else:
            yield value


def _handed(project: Project, site: Site) -> Spot:
    """Where the method that writes returns what it wrote into."""
    file = project.file(site.path)
    bodies = [f for f in syntax(file).of(ast.FunctionDef) if f.lineno <= site.line <= (f.end_lineno or 0)
              ] if file else []
    returns = [n for n in below(bodies[-1]) if isinstance(n, ast.Return)] if bodies else []
    return spot_in(syntax(file), returns[-1]) if file and returns else Spot(site.path, site.line)
