"""Frozen weights that still are what their initialiser drew: they were neither trained nor loaded.

Freezing is right for what was loaded. A bounded initialiser leaves a sharp mark (no value passes its bound, the largest
comes near it), which loaded weights do not have and training wipes out; see `on_weights/initialisers.py`. Told where
most of the model's weights are so and others are trained: then the trained part reads random features. It is low by
itself, for some programs want a fixed random part (random features, a random target network).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_torch.rules.membership import SOURCE, listed
from traindx_tools.rules import Rule, Threshold

SHARE, STEPS = 0.5, 20

RULE = Rule(
    id="T312",
    name="frozen-at-initialisation",
    title="Frozen weights were neither trained nor loaded",
    severity=Severity.LOW,
    sees="bounds and spread of frozen weights at the end of the run, against those of the usual initialisers",
    matters="what trains reads the output of a random network: it learns slowly, and ends early",
    alike=("a fixed random part on purpose: random features, a random target network, an echo state",
           "a backbone that was loaded and frozen: its values are no draw of an initialiser"),
    confirm=("print([n for n, p in model.named_parameters() if not p.requires_grad])",
             "print(model.load_state_dict(state, strict=False))  # where a checkpoint was to be loaded"),
    thresholds={"share": Threshold(SHARE, "of the model's weights", "a small fixed part is a choice"),
                "steps": Threshold(STEPS, "optimizer steps", "a schedule may unfreeze later")},
)


@dataclass(frozen=True)
class Frozen:
    """The frozen matrices of one model. `drawn`: path, number of values and initialiser of those that are a draw."""

    model: str
    drawn: tuple[tuple[str, int, str], ...]
    values: int
    """Of all frozen matrices that are large enough to tell."""
    trained: int
    """Values of the parameters that got gradients."""
    total: int
    steps: int
    rank: int = 0


def check(models: Sequence[Frozen]) -> Iterator[Finding]:
    """At most one finding a model."""
    for seen in models:
        fresh = sum(n for _, n, _ in seen.drawn)
        if seen.steps < STEPS or not seen.trained or not fresh or fresh < seen.values or fresh < SHARE * seen.total:
            continue
        names = listed([f"{path} ({why})" for path, _, why in seen.drawn], 3)
        yield RULE.finding(
            f"{fresh:,} of the {seen.total:,} values of {seen.model} are frozen and still are what their initialiser "
            f"drew: {names}; they were neither trained nor loaded, and {seen.trained:,} values train on what they "
            "make of the input", Location(module=seen.drawn[0][0], step=float(seen.steps), rank=seen.rank), SOURCE,
            bearing=Bearing.CAUSE, measured={"values": fresh, "of": seen.total, "trained": seen.trained,
                                            "tensors": len(seen.drawn), "kind": "frozen-fresh"})
