"""What the loss of a step does not depend on though a model is given it: a whole argument, or elements of one."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from traindx_tools.on_torch.captured.step import Argument, Ran, StepCopy

MOST_ELEMENTS = 2**20
COLUMNS, PARTS = 2, 0.25
"""Of an argument of two dimensions each column counts; of more (images, sequences) a quarter of the elements must be
without effect: strides, valid convolutions and a last position that nothing follows leave some out by design."""


@dataclass(frozen=True)
class LossIgnores:
    """An argument of a model: none (`elements` = `of`) or some of its elements change the loss or a gradient."""

    model: str
    argument: str
    whole: bool
    elements: int
    of: int
    """Elements of one sample that differ between samples."""
    examples: str = ""


def unused_by_loss(step: StepCopy) -> list[LossIgnores]:
    """Arguments whose rows differ. An argument that the model's own output does not depend on is left to T331, and one
    that it merely hands on (an identifier) is no input."""
    arguments = step.arguments()
    base = step.run()
    gradients = base.gradients()
    found: list[LossIgnores] = []
    for place, tensor in arguments.items():
        rows = step.rows(place[0], arguments)
        if rows < 2 or not tensor.ndim or tensor.shape[0] != rows or not bool((tensor != tensor.roll(1, 0)).any()):
            continue
        model = type(step.calls[place[0]].module).__name__
        if _without_effect(step, place, (_rolled, _first_for_all), base, gradients):
            if _in_the_output(step, place, base):
                count = tensor[0].numel()
                found.append(LossIgnores(model, place[1], True, count, count))
        elif tensor.is_floating_point() and tensor.ndim >= 2 and tensor[0].numel() <= MOST_ELEMENTS:
            part = _elements(step, place, tensor, base, gradients, model)
            found += [part] if part is not None else []
    return found


def _rolled(t: torch.Tensor) -> torch.Tensor:
    return t.roll(1, 0)


def _first_for_all(t: torch.Tensor) -> torch.Tensor:
    return t[:1].expand_as(t).clone()


def _without_effect(step: StepCopy, place: Argument, ways: Sequence[Callable[[torch.Tensor], torch.Tensor]], base: Ran,
                    gradients: Sequence[torch.Tensor | None]) -> bool:
    """Whether loss and gradients stay the same to the last bit. A loss alone says little: that of a policy is 1 x
    advantage whatever the states are."""
    for way in ways:
        ran = step.run({place: way})
        if not torch.equal(ran.loss.detach(), base.loss.detach()):
            return False
        if not all(_same(a, b) for a, b in zip(gradients, ran.gradients(), strict=True)):
            return False
    return True


def _same(a: torch.Tensor | None, b: torch.Tensor | None) -> bool:
    if a is None or b is None:
        return a is b
    return torch.equal(a, b)


def _in_the_output(step: StepCopy, place: Argument, base: Ran) -> bool:
    """Whether the call's output depends on the argument, and does not only hand it on."""
    given: list[torch.Tensor] = []

    def rolled(t: torch.Tensor) -> torch.Tensor:
        given.append(t.roll(1, 0))
        return given[0]

    after = step.run({place: rolled}).returned[place[0]]
    before = base.returned[place[0]]
    return any(a.shape != b.shape or (not torch.equal(a, b) and not (a.shape == given[0].shape
                                                                     and torch.equal(a, given[0].to(a.dtype))))
               for a, b in zip(after, before, strict=True))


def _elements(step: StepCopy, place: Argument, tensor: torch.Tensor, base: Ran,
              gradients: Sequence[torch.Tensor | None], model: str) -> LossIgnores | None:
    held: list[torch.Tensor] = []

    def leaf(t: torch.Tensor) -> torch.Tensor:
        held.append(t.detach().clone().requires_grad_(True))
        return held[0]

    gradient = step.run({place: leaf}).gradients(None, held)[-1]
    if gradient is None:
        return None
    differ = (tensor != tensor[:1]).any(0)
    still = (gradient == 0).all(0) & differ
    count, of = int(still.sum()), int(differ.sum())
    if not count or (tensor.ndim > COLUMNS and count < PARTS * of):
        return None
    if not _without_effect(step, place, [lambda t: torch.where(still, t.roll(1, 0), t)], base, gradients):
        return None
    places = [", ".join(map(str, p)) for p in still.nonzero()[:4].tolist()]
    return LossIgnores(model, place[1], False, count, of, "; ".join(places))
