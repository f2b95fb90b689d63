"""Whether the rows of an output are those of the samples, each of one sample alone, in another order.

Each sample is asked for alone: it takes the place of all others, and what comes out is its own output. Where each row
of the batch's output is the own output of another sample, nothing is mixed: the rows came back in the order in which
the model worked. A model that gives that order back as well, or inputs in it, leaves the pairing to its caller.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import KeptCall, NotKept, tensors_of_any
from traindx_tools.on_torch.captured.trial import Trial, change_of

FEWEST_MOVED = 2
MOST_PARTS = 400
"""Modules inside that are listened to."""


def order_of_rows(trial: Trial, out: torch.Tensor) -> tuple[int, ...] | None:
    """By row of the output: the sample whose own output it is; None where a row is that of no sample or of several."""
    rows = trial.rows
    own: list[torch.Tensor] = []
    for i in range(rows):
        def alone(_: str, t: torch.Tensor, i: int = i) -> torch.Tensor:
            return t[i:i + 1].expand_as(t).clone() if t.ndim and t.shape[0] == rows else t

        made = trial.main(trial.ask(trial.call.with_tensors(alone)))
        if float(change_of(made[:1].expand_as(made), made).max()) > 0:
            return None
        own.append(made[0])
    return _order(out, torch.stack(own))


def _order(out: torch.Tensor, own: torch.Tensor) -> tuple[int, ...] | None:
    """By row: the one sample whose own row it is. `own`: shape (rows, ...)."""
    rows, order = len(own), []
    for row in range(rows):
        whole = torch.stack([out[row]] * rows)
        change = change_of(out, out - whole + own).reshape(rows, -1).amax(1)
        fitting = (change == 0).nonzero().flatten().tolist()
        if len(fitting) != 1:
            return None
        order.append(fitting[0])
    moved = sum(i != j for i, j in enumerate(order))
    return tuple(order) if sorted(order) == list(range(rows)) and moved >= FEWEST_MOVED else None


def order_within(trial: Trial) -> tuple[str, tuple[int, ...]] | None:
    """The first module inside whose rows come back in another order, and that order by row; None where there is none.

    Asked where the outputs of the whole are those of several samples: what was put in another order inside was joined
    with what was not.
    """
    rows = trial.rows
    whole = _parts(trial, trial.call)
    alone: list[dict[str, tuple[list[torch.Tensor], torch.Tensor]]] = []
    for i in range(rows):
        def one(_: str, t: torch.Tensor, i: int = i) -> torch.Tensor:
            return t[i:i + 1].expand_as(t).clone() if t.ndim and t.shape[0] == rows else t

        alone.append(_parts(trial, trial.call.with_tensors(one)))
    for path, (given, out) in whole.items():
        own = [a[path][1] for a in alone if path in a and a[path][1].shape == out.shape]
        if len(own) < rows or any(float(change_of(o[:1].expand_as(o), o).max()) > 0 for o in own):
            continue
        order = _order(out, torch.stack([o[0] for o in own]))
        if order is not None and _in_place(given, [a[path][0] for a in alone]):
            return path, order
    return None


def _in_place(given: Sequence[torch.Tensor], alone: Sequence[Sequence[torch.Tensor]]) -> bool:
    """Whether a module was given the samples in their order: each row is what the sample alone gives."""
    for k, whole in enumerate(given):
        own = [one[k] for one in alone if k < len(one) and one[k].shape == whole.shape]
        if len(own) < len(alone):
            return False
        expected = torch.stack([one[i] for i, one in enumerate(own)])
        if not torch.allclose(whole.double(), expected.double(), rtol=1e-3, atol=1e-6, equal_nan=True):
            return False
    return bool(given)


def _parts(trial: Trial, call: KeptCall) -> dict[str, tuple[list[torch.Tensor], torch.Tensor]]:
    """By path, in the order in which they end: what each module inside was given and gave first, a row a sample."""
    seen: dict[str, tuple[list[torch.Tensor], torch.Tensor]] = {}
    hooks: list[Any] = []

    def note(path: str, args: Any, output: Any) -> None:
        if path not in seen and isinstance(output, torch.Tensor) and output.ndim and (
                output.shape[0] == trial.rows and output.dtype.is_floating_point):
            given = [t.detach() for t in tensors_of_any(args) if t.ndim and t.shape[0] == trial.rows]
            seen[path] = given, output.detach()

    def prepare(model: torch.nn.Module) -> None:
        for path, module in list(model.named_modules())[1:MOST_PARTS]:
            hooks.append(module.register_forward_hook(lambda _m, args, out, path=path: note(path, args, out)))

    try:
        trial.ask(call, prepare=prepare)
    finally:
        for hook in hooks:
            hook.remove()
    return seen


def gives_order(trial: Trial, order: tuple[int, ...]) -> bool:
    """Whether the output holds this order (or the one back), or an argument in it."""
    outputs: list[Any] = []
    hooks: list[Any] = []

    def prepare(model: torch.nn.Module) -> None:
        hooks.append(model.register_forward_hook(lambda _m, _a, output: outputs.append(output)))

    try:
        trial.ask(trial.call, prepare=prepare)
    finally:
        for hook in hooks:
            hook.remove()
    if not outputs:
        raise NotKept("its output is not seen")
    by = torch.tensor(order)
    wanted = [by, by.argsort()]
    wanted += [t.detach().cpu()[by] for t in trial.call.tensors.values() if t.ndim and t.shape[0] == len(order)]
    return any(_holds(t.detach().cpu(), w) for t in tensors_of_any(outputs[-1]) for w in wanted)


def _holds(given: torch.Tensor, wanted: torch.Tensor) -> bool:
    """Whether it is that tensor, perhaps cut along its other axes, and not one value alone."""
    if given.ndim != wanted.ndim or given.shape[:1] != wanted.shape[:1]:
        return False
    cut = tuple(slice(0, min(a, b)) for a, b in zip(given.shape, wanted.shape, strict=True))
    one, other = given[cut].double(), wanted[cut].double()
    return one.numel() > 0 and bool((one == other).all()) and bool((other != other[:1]).any())
