"""One step in the half precision that the program uses, against the same step in single precision."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.on_torch.captured.call import tensors_of_output
from traindx_tools.on_torch.captured.step import Ran, StepCopy

APART = {torch.float16: 0.02, torch.bfloat16: 0.3}
"""Relative difference of a module's output beyond which it parts: some twenty roundings of the dtype."""
FLUSHED, LEAST = 0.5, 8
"""Share of the gradients of a module that are 0 in half precision alone, and values that it takes."""


@dataclass(frozen=True)
class Half:
    """What half precision does to one step. Differences are relative to single precision."""

    dtype: str
    kind: str
    """"overflow": a module's output is not finite in half precision alone; "underflow": gradients are 0 in it alone;
    "parts": outputs lie apart; "same": none of these."""
    module: str
    """The first module of that kind in the order of the forward pass, "" for "same"."""
    difference: float
    """Of that module's output, or the share of its gradients that are 0."""
    loss: float
    gradient: float
    """Of the gradient as a whole."""
    cosine: float
    modules: int = 0
    """Modules of that kind."""


def half_against_single(step: StepCopy, paths: Mapping[int, str]) -> Half | None:
    """None where the step uses no half precision. `paths`: of the program's modules, by id."""
    dtype = step.half
    if dtype is None:
        return None
    (half, seen), (single, others) = (_watched(step, paths, single=s) for s in (False, True))
    before, after = half.gradients(), single.gradients()
    names = _names(half, paths)
    loss = _relative(half.loss.detach(), single.loss.detach())
    gap, cosine = _whole(before, after)

    def told(kind: str, module: str, difference: float, modules: int) -> Half:
        return Half(str(dtype).removeprefix("torch."), kind, module, difference, loss, gap, cosine, modules)

    both = [(n, x, others[n, k]) for (n, k), x in seen.items() if (n, k) in others]
    overflown = [n for n, x, y in both if not bool(torch.isfinite(x).all()) and bool(torch.isfinite(y).all())]
    if overflown:
        return told("overflow", overflown[0], math.inf, len(set(overflown)))
    flushed = {n: s for n, s in _flushed(names, before, after).items() if s >= FLUSHED}
    if flushed:
        first = next((n for n, _, _ in both if n in flushed), next(iter(flushed)))
        return told("underflow", first, flushed[first], len(flushed))
    apart = [(n, d) for n, x, y in both for d in [_relative(x, y)] if d > APART[dtype]]
    if apart:
        return told("parts", *apart[0], len({n for n, _ in apart}))
    return told("same", "", 0.0, 0)


def _watched(step: StepCopy, paths: Mapping[int, str], *, single: bool) -> tuple[
        Ran, dict[tuple[str, int], torch.Tensor]]:
    """A run, and the outputs of its innermost modules in order, by path and number of the call."""
    seen: dict[tuple[str, int], torch.Tensor] = {}

    met: set[int] = set()

    def watch(original: torch.nn.Module, copy: torch.nn.Module) -> None:
        if id(copy) in met:
            return
        met.add(id(copy))
        root = paths.get(id(original)) or type(original).__name__
        for path, module in copy.named_modules():
            if not any(True for _ in module.children()):
                module.register_forward_hook(listen(path or root))

    def listen(name: str) -> Any:
        return lambda _, given, out: note(name, out)

    def note(name: str, out: Any) -> None:
        number = sum(n == name for n, _ in seen)
        for tensor in tensors_of_output(out)[:1]:
            seen[name, number] = tensor.detach()

    return step.run(single=single, watch=watch), seen


def _names(ran: Ran, paths: Mapping[int, str]) -> list[str]:
    return [paths.get(id(original), "").rpartition(".")[0] for original, _ in ran.leaves]


def _flushed(names: list[str], half: list[torch.Tensor | None], single: list[torch.Tensor | None]) -> dict[str, float]:
    """By module: of the gradients that are not 0 in single precision, the share that is 0 in half."""
    lost: dict[str, list[int]] = {}
    for name, a, b in zip(names, half, single, strict=True):
        if a is not None and b is not None:
            there = b != 0
            counts = lost.setdefault(name, [0, 0])
            counts[0] += int((there & (a == 0)).sum())
            counts[1] += int(there.sum())
    return {n: gone / of for n, (gone, of) in lost.items() if of >= LEAST}


def _relative(a: torch.Tensor, b: torch.Tensor) -> float:
    if a.shape != b.shape:
        return math.inf
    x, y = a.double(), b.double()
    if not bool(torch.isfinite(x).all()) or not bool(torch.isfinite(y).all()):
        return 0.0 if torch.equal(torch.isfinite(x), torch.isfinite(y)) else math.inf
    norm = float(y.norm())
    return float((x - y).norm()) / norm if norm else 0.0 if torch.equal(x, y) else math.inf


def _whole(half: list[torch.Tensor | None], single: list[torch.Tensor | None]) -> tuple[float, float]:
    """Relative difference of all gradients together, and their cosine."""
    pairs = [(a.double().flatten(), b.double().flatten()) for a, b in zip(half, single, strict=True)
             if a is not None and b is not None]
    if not pairs:
        return 0.0, 1.0
    gap, a2, b2, dot = (math.sqrt(sum(float((a - b).square().sum()) for a, b in pairs)),
                        sum(float(a.square().sum()) for a, _ in pairs), sum(float(b.square().sum()) for _, b in pairs),
                        sum(float(a @ b) for a, b in pairs))
    return (gap / math.sqrt(b2) if b2 else 0.0), (dot / math.sqrt(a2 * b2) if a2 and b2 else 0.0)
