"""What the output of a model depends on: later positions, other samples, its arguments; and whether it is affine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import KeptCall, NotKept
from traindx_tools.on_torch.captured.reordered import gives_order, order_of_rows, order_within
from traindx_tools.on_torch.captured.trial import Trial, change_of

SHIFTED = 0.95
"""Share of the targets that are the input's next token."""
LEAST_POSITIONS = 4
LEAST_TARGETS = 16
_WEIGHTED = (torch.nn.Linear, torch.nn.Conv1d, torch.nn.Conv2d, torch.nn.Conv3d)


@dataclass(frozen=True)
class Future:
    """What a change of later inputs does to earlier outputs, where the target is the next input."""

    argument: str
    kind: str
    """"all": positions far before the change see it; "next": the last one before it alone; "inverted": later inputs are
    seen and earlier ones are not."""
    positions: int
    """Earlier positions whose output changed, of `before`."""
    before: int
    largest: float
    """The largest change, in standard deviations of the output."""


def future(trial: Trial) -> Future | None:
    """None where the model is causal, or where nothing says that it should be."""
    found = next(((n, t) for n, t in trial.call.tensors.items() if _next_is_target(t, trial.call)), None)
    if found is None:
        return None
    name, tensor = found
    out, length = trial.main(trial.base), tensor.shape[1]
    if out.ndim < 3 or out.shape[1] != length:
        return None
    middle = length // 2
    later = change_of(out, trial.main(trial.ask(_changed(trial.call, name, slice(middle, None)))))
    by_position = later.flatten(2).amax(2).amax(0)
    seen = by_position[:middle].gt(0)
    if not by_position[middle:].any() and not seen.any():
        return None  # it does not read this argument there
    if not seen.any():
        return None
    earlier = change_of(out, trial.main(trial.ask(_changed(trial.call, name, slice(0, middle)))))
    reads_past = bool(earlier[:, middle:].any())
    kind = "inverted" if not reads_past else "next" if int(seen.sum()) == 1 and bool(seen[-1]) else "all"
    return Future(name, kind, int(seen.sum()), middle, float(by_position[:middle].max()))


def _next_is_target(tensor: torch.Tensor, call: KeptCall) -> bool:
    """Whether a loss was given, at each position, what the input holds at the next one."""
    if tensor.ndim < 2 or tensor.shape[1] < LEAST_POSITIONS or tensor.shape[0] != call.rows or tensor.ndim > 3:
        return False
    rows, length = tensor.shape[:2]
    for target, ignored in call.targets:
        for steps in (length - 1, length):
            inner = tensor[0, 0].numel()
            whole = target.numel() // max(1, steps * inner)
            if whole < rows or target.numel() != whole * steps * inner:
                continue
            goal = target.reshape(whole, steps, *tensor.shape[2:])[:rows, :length - 1]
            following = tensor[:, 1:]
            counted = torch.ones_like(goal, dtype=torch.bool) if ignored is None else goal != ignored
            if int(counted.sum()) >= min(LEAST_TARGETS, goal.numel()) and _share(goal, following, counted) >= SHIFTED \
                    and _share(goal, tensor[:, :-1], counted) < SHIFTED:
                return True
    return False


def _share(goal: torch.Tensor, values: torch.Tensor, counted: torch.Tensor) -> float:
    same = torch.isclose(goal.double(), values.double()) & counted
    return float(same.sum()) / max(1, int(counted.sum()))


def _changed(call: KeptCall, name: str, where: slice) -> KeptCall:
    """Positions of one argument are exchanged between samples, and moved by one; ids stay ids."""
    def other(n: str, t: torch.Tensor) -> torch.Tensor:
        if n != name:
            return t
        new = t.clone()
        part = t[:, where]
        moved = part.roll(1, 0) if bool((part.roll(1, 0) != part).any()) else part.roll(1, 1)
        new[:, where] = moved
        return new

    return call.with_tensors(other)


@dataclass(frozen=True)
class Mixed:
    """How far the output of one sample changes when the first takes the place of the others, in standard deviations."""

    samples: int
    largest: float
    sample: int = -1
    """The one that changes most; -1: the last one, which alone was looked at."""
    order: tuple[int, ...] = ()
    """By row of the output, the sample whose own output it is, where all are and they are in another order."""
    within: str = ""
    """The module inside whose output that is, "" for the model's own."""


def samples(trial: Trial) -> Mixed | None:
    """None where each sample's output is its own, or where rows need not be samples."""
    call, rows, out = trial.call, trial.rows, trial.main(trial.base)
    if rows < 3 or not _rows_are_samples(trial, out) or not normalises_alone(trial.model):
        return None

    def exchanged(_: str, t: torch.Tensor) -> torch.Tensor:
        if not t.ndim or t.shape[0] != rows:
            return t
        return torch.cat([t[:1].expand_as(t[:-1]), t[-1:]])  # their order alone would not matter to an average

    change = change_of(out, trial.main(trial.ask(call.with_tensors(exchanged))))
    largest = float(change[-1].max())
    if largest == 0 and _follow_their_samples(trial, out):
        return None
    if _positions_are_samples(trial, out):
        return None
    order = order_of_rows(trial, out)
    if order is not None and (trial.call.in_order is False or gives_order(trial, order)):
        return None  # its caller has what it needs to put the targets in the same order, or has done so
    if order is None and largest == 0:
        return None
    inside = order_within(trial) if order is None else None
    return Mixed(rows, largest, order=order or (inside[1] if inside else ()), within=inside[0] if inside else "")


def _follow_their_samples(trial: Trial, out: torch.Tensor) -> bool:
    """Whether the rows of the output move with the samples."""
    rows = trial.rows

    def rolled(_: str, t: torch.Tensor) -> torch.Tensor:
        return t.roll(1, 0) if t.ndim and t.shape[0] == rows else t

    return float(change_of(out.roll(1, 0), trial.main(trial.ask(trial.call.with_tensors(rolled)))).max()) == 0


def _rows_are_samples(trial: Trial, out: torch.Tensor) -> bool:
    """By what came from a DataLoader, or by targets of one a row. A matrix of rows against rows is a comparison."""
    call, rows = trial.call, trial.rows
    if out.ndim == 2 and out.shape[1] == out.shape[0]:
        return False
    tensors = list(call.tensors.values())
    if any(t.ndim == 2 and t.shape[0] == 2 and not t.is_floating_point() and t.shape[1] != rows for t in tensors):
        return False  # pairs of nodes: rows are nodes of one graph
    full = [t.shape[0] for t in tensors if t.ndim]
    return bool(full) and (call.loader_rows > 0 or any(t.ndim >= 1 and t.shape[0] >= rows for t, _ in call.targets))


def _positions_are_samples(trial: Trial, out: torch.Tensor) -> bool:
    """Whether the samples lie along the second axis of the first argument (time first): along it nothing mixes."""
    first = next(iter(trial.call.tensors.values()))
    if first.ndim < 2 or out.ndim < 2 or out.shape[1] != first.shape[1] or first.shape[1] < 3:
        return False

    def exchanged(_: str, t: torch.Tensor) -> torch.Tensor:
        if t.ndim < 2 or t.shape[:2] != first.shape[:2]:
            return t
        return torch.cat([t[:, :1].expand_as(t[:, :-1]), t[:, -1:]], 1)

    change = change_of(out, trial.main(trial.ask(trial.call.with_tensors(exchanged))))
    return float(change[:, -1].max()) == 0


def normalises_alone(model: torch.nn.Module) -> bool:
    """No norm uses the statistics of a batch in evaluation mode."""
    norms = torch.nn.modules.batchnorm._BatchNorm
    return all(m.track_running_stats or isinstance(m, torch.nn.modules.instancenorm._InstanceNorm)
               for m in model.modules() if isinstance(m, norms))


@dataclass(frozen=True)
class Unused:
    """Arguments whose values the output does not depend on, in either mode. `whole`: none of them matters."""

    arguments: tuple[str, ...]
    whole: bool
    of: int


def unused(trial: Trial) -> Unused | None:
    """None where every argument that differs between samples changes some tensor of the output."""
    rows = trial.rows
    able = [n for n, t in trial.call.tensors.items()
            if t.ndim and t.shape[0] == rows and bool((t != t.roll(1, 0)).any())]
    if not able:
        return None

    def rolled(names: list[str]) -> KeptCall:
        return trial.call.with_tensors(lambda n, t: t.roll(1, 0) if n in names else t)

    left = [n for n in able if _same(trial.base, trial.ask(rolled([n])))]
    if not left:
        return None
    in_train = trial.ask(trial.call, train=True)
    left = [n for n in left if _same(in_train, trial.ask(rolled([n]), train=True))]
    whole = len(left) == len(able) and _same(trial.base, trial.ask(rolled(able)))
    return Unused(tuple(left), whole, len(able)) if left else None


def _same(before: list[torch.Tensor], after: list[torch.Tensor]) -> bool:
    return len(before) == len(after) and all(
        a.shape == b.shape and torch.equal(a, b) for a, b in zip(before, after, strict=True))


BENDS = 0.01
"""Relative departure from which the output of a layer bends."""


@dataclass(frozen=True)
class Affine:
    """A model of several layers that is one affine map of its input."""

    layers: int
    narrowest: int
    """Width of its narrowest hidden layer, and of the smaller of input and output."""
    ends: int
    error: float
    """The largest relative departure from an affine map."""
    bends: str = ""
    """The first layer whose own output bends with the input: an activation stands before it, and what it computes does
    not reach the output. "" where there is none."""


def affine(trial: Trial) -> Affine | None:
    """None where the last layer's output bends with the input, or where the input is not one floating tensor."""
    able = [(n, t) for n, t in trial.call.tensors.items() if t.ndim and t.shape[0] == trial.rows]
    layers = [m for m in trial.model.modules() if isinstance(m, _WEIGHTED)]
    if len(able) != 1 or not able[0][1].is_floating_point() or len(layers) < 2 or trial.rows < 3:
        return None
    name, x = able[0]
    seen: list[tuple[int, int, torch.Tensor, str]] = []
    names = {id(m): n for n, m in trial.model.named_modules()}

    def note(module: Any, _: Any, out: torch.Tensor) -> None:
        seen.append((module.weight.shape[0], module.weight.shape[1], out.detach(), names[id(module)]))

    hooks = [m.register_forward_hook(note) for m in layers]
    try:
        def last(value: torch.Tensor) -> list[torch.Tensor]:
            seen.clear()
            trial.ask(trial.call.with_tensors(lambda n, t: value if n == name else t))
            if len(seen) < 2 or seen[-1][2].shape[:1] != x.shape[:1]:
                raise NotKept("its layers are not called one after the other")
            return [out.double() for _, _, out, _ in seen]

        other, zero = x.roll(1, 0), torch.zeros_like(x)
        if not bool((x != other).any()):
            return None
        at_x, at_other, at_zero = last(x), last(other), last(zero)
        between, far = last(0.3 * x + 0.7 * other), last(5 * x)
    finally:
        for hook in hooks:
            hook.remove()
    if not len(at_x) == len(at_other) == len(at_zero) == len(between) == len(far):
        return None

    def departure(i: int) -> float:
        moved = at_x[i] - at_zero[i]
        scale = float(moved.abs().amax())
        return max(float((between[i] - 0.3 * at_x[i] - 0.7 * at_other[i]).abs().amax()),
                   float((far[i] - at_zero[i] - 5 * moved).abs().amax()) / 5) / scale if scale else 0.0

    if not bool((at_x[-1] != at_zero[-1]).any()):
        return None
    error = departure(len(seen) - 1)
    bends = next((n for i, (_, _, _, n) in enumerate(seen) if departure(i) > BENDS), "")
    widths = [out for out, _, _, _ in seen[:-1]]
    ends = min(seen[0][1], seen[-1][0])
    return Affine(len(seen), min(widths), ends, error, bends) if error < 1e-4 else None
