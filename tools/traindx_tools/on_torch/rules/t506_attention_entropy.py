"""Attention looks at one key only, or at all alike, in every sampled step.

The entropy of the attention weights over ln(keys) says how many keys a row looks at: 0 for one, 1 for all alike. The
last quarter of the rows is measured. Entropy that falls to zero goes along with diverging transformers (growing query
and key norms); an entropy of 1 to the end means that queries and keys learn nothing. Seen only where the weights pass
through a module (a dropout on them); fused attention keeps them inside.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.activations import SOURCE, AttentionCourse, Courses
from traindx_tools.rules import Rule, Threshold

COLLAPSED, UNIFORM, STEPS, KEYS = 0.01, 0.9995, 6, 8

RULE = Rule(
    id="T506",
    name="attention-entropy",
    title="Attention has collapsed, or stays uniform",
    severity=Severity.LOW,
    sees="entropy of attention weights over ln(keys), where the weights pass through a module",
    matters="one key for every query carries no context; all keys alike carry only their mean",
    alike=("a head that copies: one of many", "the first steps: uniform until queries and keys grow"),
    confirm=("Print the largest attention logit by layer: above 50 the softmax is one-hot.",),
    thresholds={
        "collapsed": Threshold(COLLAPSED, "of ln(keys), all heads and rows of a layer", "one key in practice"),
        "uniform": Threshold(UNIFORM, "of ln(keys), in every sampled step", "no preference at all"),
    },
)


def check(seen: Courses) -> Iterator[Finding]:
    """At most one finding: collapse, else uniform."""
    able = [c for c in seen.attention if len(c.steps) >= STEPS and c.keys >= KEYS]
    for kind, bad in (("collapsed", [c for c in able if float(np.median(c.entropy[len(c.entropy) // 2:])) < COLLAPSED]),
                      ("uniform", [c for c in able if float(c.entropy.min()) > UNIFORM])):
        if bad:
            yield _finding(kind, bad)
            return


def _finding(kind: str, bad: list[AttentionCourse]) -> Finding:
    c = bad[0]
    late = float(np.median(c.entropy[len(c.entropy) // 2:]))
    return RULE.finding(
        f"the attention entropy at {c.path} is {late:.2g} of ln({c.keys}) in the later of {len(c.steps)} sampled steps "
        f"({c.entropy[0]:.2g} in the first), the largest weight {float(np.median(c.largest)):.3g}; {len(bad)} layers "
        "are like that", Location(module=c.path, step=float(c.steps[0]), end_step=float(c.steps[-1]), rank=c.rank),
        SOURCE, bearing=Bearing.SIGN,
        measured={"kind": kind, "entropy": late, "first": float(c.entropy[0]), "layers": len(bad), "module": c.path})
