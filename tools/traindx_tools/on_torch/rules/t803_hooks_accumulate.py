"""Hooks or parameter groups pile up: the same registration runs again and again.

`register_forward_hook` in the training loop without `handle.remove()`, or `add_param_group` each epoch: each step runs
one more hook than the last. Steps get slower and slower, and what the hooks keep is never freed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise

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
    thresholds={"looks": Threshold(3, "looks in a row, two more at each", "registered once is no growth"),
                "slow": Threshold(4, "looks in a row, one more at each and three in all", "one more an epoch")},
)

MORE = 2
LOOKS, GAINED = 4, 3


def check(looks: Sequence[tuple[int, dict[str, int]]], source: str, rank: int) -> Iterator[Finding]:
    """`looks`: (step, count by name such as `encoder: forward hooks`). The three fastest growing are reported."""
    if len(looks) < 3:
        return
    for a, c, gained, name, last in _growing(looks[-3:], MORE, 2 * MORE) or _growing(looks[-LOOKS:], 1, GAINED):
        path, what = name.split(": ", 1)
        where = Location(module=path, step=a, end_step=c, rank=rank)
        yield RULE.finding(f"{path} has {last[name]} {what}, {gained} more than {c - a} steps before: "
                           f"{gained / max(1, c - a):.2g} a step", where, source, bearing=Bearing.CAUSE,
                           measured={"what": what, "count": last[name], "per_step": round(gained / max(1, c - a), 3)})


def _growing(looks: Sequence[tuple[int, dict[str, int]]], more: int, gained: int
             ) -> list[tuple[int, int, int, str, dict[str, int]]]:
    """First and last step, gain, name and last counts of what grew by so many at each look; the three fastest."""
    (a, first), (c, last) = looks[0], looks[-1]
    if len(looks) < LOOKS and more < MORE:
        return []
    grew = [n for n in last if last[n] - first.get(n, 0) >= gained and all(
        late.get(n, 0) - early.get(n, 0) >= more for (_, early), (_, late) in pairwise(looks))]
    return sorted(((a, c, last[n] - first.get(n, 0), n, last) for n in grew), key=lambda g: (-g[2], g[3]))[:3]
