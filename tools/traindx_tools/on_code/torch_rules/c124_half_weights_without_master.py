"""Half-precision weights are updated directly.

bfloat16 keeps 8 significant bits: around a weight of 0.5 its numbers are 0.002 to 0.004 apart. An Adam step is about
as large as the learning rate, so with 1e-4 nearly every update rounds away and most weights never change, although
gradients and their norm look normal. It needs float32 master weights (autocast over a float32 model) or stochastic
rounding. In float16, Adam's eps of 1e-8 is also exactly 0, which makes NaN of entries with zero gradient.
"""

from __future__ import annotations

from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.bounds import RESOLUTION, rounded
from traindx_tools.on_code.precision import half_module
from traindx_tools.on_code.project import Project, at, location
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.training import is_optimizer
from traindx_tools.on_code.values import Site, Thing, number
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C124",
    name="half-weights-without-master",
    title="Half-precision weights are updated without float32 copies",
    severity=Severity.MEDIUM,
    sees="torch's own optimizers over a model in bfloat16 or float16, with their learning rate.",
    matters="Updates below half the spacing of the weights round to nothing: the loss stops falling early.",
    alike=("a learning rate that is too small", "a frozen model"),
    confirm=("count the parameters that change in a step", "the same run with float32 weights under autocast"),
    thresholds={
        "spacing near 1": Threshold(2.0**-7, "bfloat16", "8 significant bits"),
        "learning rate": Threshold(1e-3, "absolute", "an Adam step is about lr; half a spacing at 0.25 is 1e-3"),
    },
)
_TORCH = tuple(f"torch.optim.{n}" for n in ("Adam", "AdamW", "SGD", "NAdam", "RMSprop", "Adamax", "RAdam"))


def check(project: Project) -> Iterator[Finding]:
    """Look at every optimizer that is stepped."""
    seen: set[int] = set()
    for event in project.events:
        made = event.result
        if event.kind != "call" or not isinstance(made, Thing) or made.type not in _TORCH or id(made) in seen:
            continue
        seen.add(id(made))
        found = half_module(made) if is_optimizer(made) and event.name == made.type else None
        if found is not None:
            yield from _judged(project, event, made, found[1], found[2])


def _judged(project: Project, event: Event, optimizer: Thing, dtype: str, site: Site | None) -> Iterator[Finding]:
    rate = number(optimizer.argument(1, "lr"))
    rate = 1e-3 if rate is None and "lr" not in optimizer.kwargs else rate
    if dtype == "float16" and "Adam" in optimizer.short:
        eps = number(optimizer.kwargs.get("eps")) if "eps" in optimizer.kwargs else 1e-8
        if eps is not None and rounded(eps, "float16") == 0:
            yield RULE.finding(
                f"{optimizer.short} at {event.file.path}:{event.line} updates float16 weights (cast at {site}) "
                f"with eps {eps:g}, "
                "which is 0 in float16: entries with zero gradient become 0 / 0",
                location(event),
                event.file.path,
                bearing=Bearing.CAUSE,
                severity=Severity.HIGH,
                measured={"kind": "eps", "eps": eps, "dtype": dtype},
            )
            return
    if rate is None or rate > 1e-3 or ("SGD" in optimizer.short and rate > 1e-4):
        return
    spacing = RESOLUTION[dtype] / 2
    yield RULE.finding(
        f"The {dtype} weights (cast at {site}) are updated directly by {optimizer.short} at "
        f"{event.file.path}:{event.line} with "
        f"a learning rate of {rate:g}: steps below half the spacing of {dtype} ({spacing / 2:.1g} of a weight's "
        "size) round away",
        at(site, project) if site is not None else location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "rounding", "dtype": dtype, "learning_rate": rate, "relative_spacing": spacing},
    )
