"""A value is subtracted from itself.

`ratio = exp(logp - old)` where `old` is the very same tensor: the difference is 0, the ratio 1 and their gradient 0,
whatever the policy does. The old log-probabilities have to be computed before the update and detached. Written as
`logp - logp.detach()` it is 0 as well, but keeps the gradient, and is left alone.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding
from traindx_tools.invariants.pages import pages
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.values import Tensor

(RULE,) = pages("settings", ("C158",))


def check(project: Project) -> Iterator[Finding]:
    """Look at every subtraction of arrays."""
    for event in project.events:
        if event.kind != "operation" or event.name != "-" or len(event.args) != 2:
            continue
        left, right = event.args
        if left is right and isinstance(left, Tensor) and "log_prob" in left.tags and left.grad is not False:
            yield RULE.finding(
                f"{event.file.segment(event.node)} at {event.file.path}:{event.line} subtracts log-probabilities from "
                "themselves: the result is 0 and carries no gradient",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "difference"},
            )
