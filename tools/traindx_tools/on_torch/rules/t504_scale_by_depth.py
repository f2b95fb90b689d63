"""Activations grow, or shrink, by orders of magnitude from the first block to the last.

In a stack of repeated blocks the root mean square of what the layers take changes by a factor of 1000 and more, the
same way from block to block: the initialisation, or a residual branch without a normalisation, multiplies at each.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, Courses, LayerCourse
from traindx_tools.rules import Rule, Threshold

RATIO, BLOCKS, STEPS, STEADY = 1e3, 4, 3, 0.8
_BLOCK = re.compile(r"^(.*?)\.?(\d+)(?:\.|$)")

RULE = Rule(
    id="T504",
    name="scale-by-depth",
    title="Activations change by orders of magnitude with depth",
    severity=Severity.MEDIUM,
    sees="root mean square of what the layers of repeated blocks take, from the first block to the last",
    matters="what grows overflows in half precision and explodes going back; what shrinks carries nothing",
    alike=("a residual stream that grows with depth: a factor of ten or so",),
    confirm=("Print the root mean square of each block's output for one batch.",),
    thresholds={"ratio": Threshold(RATIO, "last block / first block, or the inverse", "a factor of two a block over "
                                   "ten blocks")},
)


def check(seen: Courses) -> Iterator[Finding]:
    """At most one finding."""
    levels = _levels([c for c in seen.layers if c.kind == "layer" and len(c.steps) >= STEPS])
    if len(levels) < BLOCKS:
        return
    names, rms = [n for n, _ in levels], np.array([v for _, v in levels])
    if not (rms > 0).all() or not np.isfinite(rms).all():
        return
    ratio = float(rms[-1] / rms[0])
    same_way = float(np.mean(np.sign(np.diff(np.log(rms))) == np.sign(np.log(ratio)))) if ratio != 1 else 0.0
    if same_way < STEADY or 1 / RATIO < ratio < RATIO:
        return
    kind = "grow" if ratio > 1 else "shrink"
    yield RULE.finding(
        f"activations {kind} from {rms[0]:.3g} in {names[0]} to {rms[-1]:.3g} in {names[-1]}, {len(levels)} blocks "
        f"further on: by a factor of {max(ratio, 1 / ratio) ** (1 / (len(levels) - 1)):.2f} a block",
        seen.layers[0].at().__class__(module=names[-1], step=float(seen.layers[0].steps[0]), rank=seen.layers[0].rank),
        SOURCE, bearing=Bearing.CAUSE,
        measured={"kind": kind, "ratio": ratio, "blocks": len(levels), "module": names[-1]})


def _levels(layers: list[LayerCourse]) -> list[tuple[str, float]]:
    """Median root mean square of the first layer of each block of the longest run of repeated blocks."""
    groups: dict[str, dict[int, float]] = {}
    for c in layers:
        if m := _BLOCK.match(c.path):
            groups.setdefault(m[1], {}).setdefault(int(m[2]), float(np.median(c.rms)))
    if not groups:
        return []
    prefix, blocks = max(groups.items(), key=lambda item: len(item[1]))
    return [(f"{prefix}.{k}".lstrip("."), v) for k, v in sorted(blocks.items())]
