"""A guard that the dtype cannot hold.

Next to 1, float32 resolves 6e-8 downwards: `1 - 1e-10` is 1, and a clamp to it does not keep a probability away from 1.
In float16 everything below 3e-8 is 0: `x + 1e-8` adds nothing. The guard looks right in the source and does nothing.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code import epsilon
from traindx_tools.on_code.bounds import rounded
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Tensor, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C112",
    name="epsilon-below-resolution",
    title="An epsilon is smaller than the dtype resolves",
    severity=Severity.HIGH,
    sees="clamp limits just below 1, and constants added to float16 values, rounded as the dtype rounds them.",
    matters="The guard against log(0) or a division by 0 has no effect.",
    alike=("a missing guard",),
    confirm=("torch.tensor(1 - eps) == 1", "torch.tensor(eps, dtype=torch.float16) == 0"),
    thresholds={
        "float32 below 1": Threshold(2.0**-24, "absolute", "IEEE 754 binary32"),
        "float16 smallest": Threshold(2.0**-24, "absolute", "IEEE 754 binary16"),
    },
)


def check(project: Project) -> Iterator[Finding]:
    """Look at clamps and at additions in half precision."""
    for event in project.calls("clamp", "clip", "clamp_", "clip_", "clamp_max"):
        yield from _clamp(event)
    for event in project.events:
        if event.kind == "operation" and event.name == "+":
            yield from _addition(event)


def _clamp(event: Event) -> Iterator[Finding]:
    method = isinstance(event.receiver, Tensor)
    x = event.receiver if method else event.args[0] if event.args else None
    position = 0 if event.method == "clamp_max" else 1
    limit = number(event.argument(position + (0 if method else 1), "max") or event.kwargs.get("a_max"))
    dtype = x.dtype if isinstance(x, Tensor) and x.dtype not in ("int", "bool") else None
    if (
        limit is None
        or not 0.9 < limit < 1
        or rounded(limit, dtype) != 1.0
        or event.name.startswith(("numpy.", "Const"))
    ):
        return
    yield RULE.finding(
        f"The upper limit of {event.file.segment(event.node)} at {event.file.path}:{event.line} is 1 in "
        f"{dtype or 'float32'}: "
        f"1 - {1 - limit:.3g} rounds to exactly 1, so a value of 1 is not kept away from 1 and log(1 - x) is log(0)",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "clamp", "epsilon": 1 - limit, "dtype": dtype or "float32", "resolution": 2.0**-24},
        patch=epsilon.raised(event.file, event.node, dtype or "float32"),
    )


def _addition(event: Event) -> Iterator[Finding]:
    for x, other in (event.args, event.args[::-1]):
        value = number(other)
        if not isinstance(x, Tensor) or x.dtype != "float16" or value is None or value == 0:
            continue
        if abs(value) < 1e-6 and rounded(value, "float16") == 0.0:
            yield RULE.finding(
                f"{value:g} in {event.file.segment(event.node)} at {event.file.path}:{event.line} is 0 in "
                "float16, whose "
                "smallest number is 6e-8: the guard adds nothing",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                measured={"kind": "addition", "epsilon": value, "dtype": "float16"},
            )
