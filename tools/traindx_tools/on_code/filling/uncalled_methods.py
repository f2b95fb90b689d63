"""Methods that are named as a statement and not called."""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.knowledge.calls import effects
from traindx_tools.on_code.project import Project
from traindx_tools.on_code.values import Function, Ref
from traindx_tools.program.timeline import Moment
from traindx_tools.program.uses import UnusedResult

_ACTS = frozenset({Moment.BACKWARD, Moment.CLEAR, Moment.STEP, Moment.MODE, Moment.SCHEDULE, Moment.UNSCALE,
                   Moment.EMPTIED, Moment.UNHOOKED})


def uncalled(project: Project) -> Iterator[UnusedResult]:
    """Methods that are named as a statement: the project's own, and those that by their name do something."""
    for event in project.events:
        if event.kind != "named" or isinstance(event.receiver, Ref):
            continue
        moments = [e.moment.value for e in effects().get(event.method, ()) if e.moment in _ACTS]
        in_place = event.method.endswith("_") and not event.method.endswith("__")
        own = isinstance(made := event.args[0], Function) and not made.info.unknown_decorator
        if moments or in_place or own:
            cleared = Moment.CLEAR.value if event.method in ("zero_", "fill_") else ""
            yield UnusedResult("method", event.text, event.spot, [*moments, cleared][0])
