"""Weights get a gradient, an optimizer holds them, the learning rate is above 0, and they never change.

Sampled values whose gradient is not zero are compared bit by bit over the measured steps. `kind` says why they stay:
"undone" where every step changes them and they are back before the next one (weights that are copied back, clamped,
restored from an average); "below-resolution" where the learning rate is below half a unit in the last place of the
weights; "still" where no step changes them otherwise (a step that is skipped or does nothing). Weights in 16 bits whose
updates are rounded away are T304.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from traindx_tools.finding import Bearing, Finding, Severity
from traindx_tools.on_torch.rules.movement import SOURCE, Movement, listed
from traindx_tools.rules import Rule, Threshold

STEPS, PUSHED, UNDONE = 4, 4, 0.9

RULE = Rule(
    id="T303",
    name="never-moves",
    title="Weights get gradients and never change",
    severity=Severity.HIGH,
    sees="sampled values of each parameter before and after the optimizer's steps, with their gradients",
    matters="loss, gradient norm and learning rate look alive while nothing is learned here",
    alike=("a learning rate of exactly 0 (not judged here)",
           "steps that a GradScaler skips: the optimizer is not called"),
    confirm=('w = next(model.parameters()).detach().clone(); optimizer.step(); '
             'print((next(model.parameters()) - w).abs().max())',),
    thresholds={"steps": Threshold(STEPS, "measured steps with a gradient and a rate above 0", "one may be skipped")},
)


def check(movements: Sequence[Movement]) -> Iterator[Finding]:
    """One finding a kind, for all weights of that kind."""
    able = [m for m in movements if m.trainable and m.steps >= STEPS and m.pushed >= min(PUSHED, m.numel)]
    still = [m for m in able if m.still == 1.0 and not m.half and m.pushed > 0 and m.step_still == 1.0]
    undone = [m for m in able if m.undone >= UNDONE and m.step_still < 0.5]
    below = [m for m in still if m.lr < m.resolution]
    still = [m for m in still if m.lr >= m.resolution]
    for kind, these in (("still", still), ("below-resolution", below), ("undone", undone)):
        if these:
            yield _finding(kind, these, len(able))


def _finding(kind: str, these: list[Movement], of: int) -> Finding:
    first = these[0]
    words = "does not change in any" if kind != "undone" else "changes in each step and is back before the next, in all"
    return RULE.finding(
        f"{listed([m.path for m in these])}: {first.pushed} sampled values with a gradient; the weight {words} of "
        f"{first.steps} measured steps (learning rate {first.lr:.3g})", first.at(), SOURCE, bearing=Bearing.CAUSE,
        severity=Severity.HIGH if len(these) > 1 or first.ndim >= 2 else Severity.LOW,
        measured={"kind": kind, "module": first.path, "parameters": len(these), "of": of, "lr": first.lr,
                  "dtype": first.dtype, "resolution": first.resolution, "magnitude": first.magnitude})
