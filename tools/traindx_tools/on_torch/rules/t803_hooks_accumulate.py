"""Hooks or parameter groups pile up: the same registration runs again and again.

`register_forward_hook` in the training loop without `handle.remove()`, or `add_param_group` each epoch: each step runs
one more hook than the last. Steps get slower and slower, and what the hooks keep is never freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.rules import Rule, Threshold

RULE = Rule(
    id="T803",
    name="hooks-accumulate",
    title="Hooks or parameter groups are registered again and again",
    severity=Severity.HIGH,
    sees="the number of hooks on each module and of parameter groups of each optimizer at steps 4, 8, 16, ...",
    matters="every step runs all of them: time a step and memory grow without bound",
    alike=("hooks that a library registers once at the start", "layers that are unfrozen in a planned schedule"),
    confirm=("`print(sum(len(m._forward_hooks) for m in model.modules()))` every hundred steps",),
    thresholds={"looks": Threshold(3, "looks in a row, two more at each", "registered once is no growth")},
)

MORE = 2


def check(looks: Sequence[tuple[int, dict[str, int]]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, count by name such as `encoder: forward hooks`). The three fastest growing are reported."""
    if len(looks) < 3:
        return
    (a, first), (_, middle), (c, last) = looks[-3:]
    found = [(last[n] - first.get(n, 0), n) for n in last
             if last[n] >= middle.get(n, 0) + MORE and middle.get(n, 0) >= first.get(n, 0) + MORE]
    for gained, name in sorted(found, reverse=True)[:3]:
        path, what = name.split(": ", 1)
        where = Location(module=path, step=a, end_step=c, rank=rank)
        yield RULE.finding(f"{path} has {last[name]} {what}, {gained} more than {c - a} steps before: "
                           f"{gained / max(1, c - a):.2g} a step", where, source, bearing=Bearing.CAUSE,
                           measured={"what": what, "count": last[name], "per_step": round(gained / max(1, c - a), 3)})
