"""Methods that are named as a statement and not called."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.calls import effects
from traindx_tools.on_code.filling.spots import spot_of
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Function, Ref
from traindx_tools.program.results import UnusedResult
from traindx_tools.program.timeline import Moment

_ACTS = frozenset({Moment.BACKWARD, Moment.CLEAR, Moment.STEP, Moment.MODE, Moment.SCHEDULE, Moment.UNSCALE,
                   Moment.EMPTIED, Moment.UNHOOKED})
_CLEARING = frozenset({"zero_", "fill_"})


def uncalled(project: Project) -> Iterator[UnusedResult]:
    """Each of them that is a method of the project, or by its name one that does something and is no value."""
    for event in project.events:
        if event.kind != "named" or isinstance(event.receiver, Ref):
            continue
        moments = [e.moment for e in effects().get(event.method, ()) if e.moment in _ACTS]
        in_place = event.method.endswith("_") and not event.method.endswith("__")
        own = event.args[0]
        if moments or in_place or (isinstance(own, Function) and not own.info.unknown_decorator):
            moment = moments[0] if moments else Moment.CLEAR if event.method in _CLEARING else None
            yield UnusedResult("method", event.file.segment(event.node), spot_of(event), moment.value if moment else "")
