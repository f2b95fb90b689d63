"""BatchNorm's running statistics move too slowly, or keep the last batch only.

torch's momentum is the weight of the new batch (0.1 by default): after n updates a share of (1 - momentum)^n of the
initial mean 0 and variance 1 is left. With 0.01 and a dozen updates that is 89 %: eval mode normalises with statistics
of nothing. Keras and flax count the other way round (0.99 is usual there): 0.99 in torch keeps the last batch only, and
0.01 in flax does the same. A momentum of exactly 0 never takes a batch in; None is the cumulative average.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_code.project import Project, location
from traindx_tools.on_code.repairs import numbers
from traindx_tools.on_code.trace import Event
from traindx_tools.on_code.values import Thing, number, truth
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="C115",
    name="batchnorm-momentum",
    title="BatchNorm's momentum does not fit the run",
    severity=Severity.HIGH,
    sees="The momentum of BatchNorm layers beside the number of updates, where the program fixes it.",
    matters="Training (batch statistics) looks fine, evaluation (running statistics) is far off.",
    alike=("overfitting", "a distribution shift between training and validation"),
    confirm=("print the running_mean and running_var beside a batch's own", "evaluate in train() mode and compare"),
    thresholds={
        "initial share left": Threshold(0.2, "of mean 0 and variance 1", "(1 - momentum)^updates"),
        "torch default": Threshold(0.1, "weight of the new batch", "torch.nn.BatchNorm2d"),
    },
)

_SET = re.compile(r"load_state_dict|pretrained|torch\.load|load_weights|update_bn|running_(mean|var)|\.momentum\s*=|"
                  r"weights\s*=\s*[\"'A-Z]|create_model|from_checkpoint|load_file")  # fmt: skip
"""Statistics that come from somewhere else, or a momentum that is set later."""


def check(project: Project) -> Iterator[Finding]:
    """Look at every BatchNorm layer that is made."""
    updates = _updates(project)
    for event in project.events:
        made = event.result
        if (
            event.kind == "call"
            and isinstance(made, Thing)
            and event.name == made.type
            and made.short.startswith("BatchNorm")
        ):
            if made.type.startswith("torch.nn."):
                yield from _torch(project, event, made, updates)
            elif made.type.startswith("flax."):
                momentum = number(made.kwargs.get("momentum"))
                if momentum is not None and momentum <= 0.2:
                    yield _last_batch(
                        event, momentum, "flax counts the weight of the old statistics (0.99 is its default)"
                    )


def _updates(project: Project) -> float | None:
    """How many steps the training loops take, where every count is a constant."""
    totals: list[float] = []
    for loop in project.training_loops:
        for place in loop.backwards:
            total = 1.0
            for block in place.loops:
                count = number(block.count) if block.count is not None else None
                if count is None:
                    return None
                total *= count
            totals.append(total)
    return max(totals) if totals else None


def _torch(project: Project, event: Event, layer: Thing, updates: float | None) -> Iterator[Finding]:
    momentum = number(layer.argument(2, "momentum"))
    if momentum is None:
        return
    if momentum == 0:
        if not _kept_on_purpose(project, layer):
            yield _never(event, layer)
        return
    if momentum >= 0.9:
        yield _last_batch(event, momentum, "torch counts the weight of the new batch (0.1 is its default), "
                                        "the opposite convention of Keras")
        return
    left = (1 - momentum) ** updates if updates is not None else None
    if left is not None and left > 0.2:
        yield RULE.finding(
            f"{layer.short} at {event.file.path}:{event.line} has momentum {momentum:g} in a run of {updates:g} "
            "updates: "
            f"{left:.0%} of its initial statistics (mean 0, variance 1) is left, which eval mode uses",
            location(event),
            event.file.path,
            bearing=Bearing.CAUSE,
            measured={"kind": "too slow", "momentum": momentum, "updates": updates, "initial_share": left},
            patch=numbers.faster_statistics(event, updates or 0.0),
        )
    elif left is None and momentum <= 0.02:
        yield RULE.finding(
            f"{layer.short} at {event.file.path}:{event.line} has momentum {momentum:g}: its running statistics "
            "need about "
            f"{3 / momentum:.0f} updates before eval mode can use them",
            location(event),
            event.file.path,
            bearing=Bearing.SIGN,
            severity=Severity.LOW,
            measured={"kind": "slow", "momentum": momentum},
        )


def _kept_on_purpose(project: Project, layer: Thing) -> bool:
    """Whether statistics are not kept, come from elsewhere (loaded weights), or are set later."""
    tracked = layer.argument(4, "track_running_stats")
    return (tracked is not None and truth(tracked) is not True) or any(f.mentions(_SET) for f in project.files)


def _never(event: Event, layer: Thing) -> Finding:
    return RULE.finding(
        f"{layer.short} at {event.file.path}:{event.line} has momentum 0: its running statistics never move from mean "
        "0 and variance 1, which eval mode uses (momentum=None is the cumulative average)",
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE,
        measured={"kind": "never", "momentum": 0.0},
        patch=numbers.usual_momentum(event),
    )


def _last_batch(event: Event, momentum: float, why: str) -> Finding:
    return RULE.finding(
        f"BatchNorm at {event.file.path}:{event.line} has momentum {momentum:g}; {why}: its running statistics "
        + ("are those of the last batch" if momentum <= 1 else "swing further out with every batch"),
        location(event),
        event.file.path,
        bearing=Bearing.CAUSE if 0.9 <= momentum < 1 else Bearing.SIGN,
        severity=Severity.MEDIUM,
        measured={"kind": "last batch", "momentum": momentum},
        patch=numbers.other_convention(event, momentum),
    )
