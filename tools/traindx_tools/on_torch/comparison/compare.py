"""Layer by layer on one batch: where do two sides part first, and which layer does it by itself?

Both sides run once. Then every leaf layer of the second side is run again on what the first side gave that layer:
`own` is the difference that the layer makes on identical input, `total` the one that had piled up. A layer whose
`own` is above the tolerance is where they part; the layers after it merely carry it on. Where no layer makes one and
the outputs differ all the same, code between two layers does.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.comparison.layers import Layer, Sides
from traindx_tools.on_torch.comparison.tensors import apart, moved, plain_path, tolerance_of
from traindx_tools.on_torch.rules import t951_layers_part

Run = Callable[[torch.nn.Module, Any], Any]


@dataclass
class _Call:
    module: torch.nn.Module
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    output: Any


@dataclass(frozen=True)
class Comparison(Sides):
    """Two sides over one batch, and what that says."""

    def findings(self, source: str = "two-sided comparison") -> tuple[Finding, ...]:
        """T951 where they part; nothing where they agree."""
        return tuple(t951_layers_part.check(self, source))


def compare(first: torch.nn.Module, second: torch.nn.Module, batch: Any, *, second_batch: Any = None,
            names: tuple[str, str] = ("first", "second"), run: Run | None = None, run_second: Run | None = None,
            tolerance: float | None = None, seed: int = 0) -> Comparison:
    """Runs both models on `batch` without gradients and compares them layer by layer.

    `batch`: positional tuple, keyword dict or a single tensor; each side gets it on its own device (`second_batch`
    where the sides need different inputs). `run(model, batch)` calls a side where a plain call does not. `tolerance`:
    relative; by default that of the coarsest dtype of a layer's outputs. Models, buffers, RNG and modes are left as
    they were.
    Raises ValueError where no leaf layer is called on both sides.
    """
    one, out_one = _record(first, batch, run or call, seed)
    other, out_two = _record(second, batch if second_batch is None else second_batch, run_second or run or call, seed)
    shared = [key for key in one if key in other]
    if not shared:
        raise ValueError(f"no layer of the first side ({len(one)} calls) is called on the second ({len(other)} calls): "
                         "give two models with the same module paths")
    layers = tuple(_layer(key, one[key], other[key], tolerance, seed) for key in shared)
    return Comparison(names, layers, apart(out_one, out_two), tolerance or tolerance_of(out_one, out_two),
                      tuple(sorted({p for p, _ in one.keys() - other.keys()})),
                      tuple(sorted({p for p, _ in other.keys() - one.keys()})))


def call(model: torch.nn.Module, batch: Any) -> Any:
    """The model on a batch: a dict as keywords, a tuple or list as arguments, anything else as the argument."""
    batch = _to_device(batch, model)
    if isinstance(batch, dict):
        return model(**batch)
    return model(*batch) if isinstance(batch, (tuple, list)) else model(batch)


def _to_device(batch: Any, model: torch.nn.Module) -> Any:
    device = next((t.device for t in (*model.parameters(), *model.buffers())), torch.device("cpu"))
    if isinstance(batch, torch.Tensor):
        return batch.to(device)
    if isinstance(batch, dict):
        return {k: _to_device(v, model) for k, v in batch.items()}
    return type(batch)(_to_device(v, model) for v in batch) if type(batch) in (tuple, list) else batch


@contextmanager
def untouched(model: torch.nn.Module, seed: int) -> Iterator[None]:
    """No gradients, a seeded RNG, and buffers given back: BatchNorm in training mode updates them."""
    kept = {name: b.detach().clone() for name, b in model.named_buffers()}
    devices = sorted({p.device.index or 0 for p in model.parameters() if p.device.type == "cuda"})
    try:
        with torch.random.fork_rng(devices=devices), torch.no_grad():
            torch.manual_seed(seed)
            yield
    finally:
        with torch.no_grad():
            for name, b in model.named_buffers():
                if name in kept:
                    b.copy_(kept[name])


def _record(model: torch.nn.Module, batch: Any, run: Run, seed: int) -> tuple[dict[tuple[str, int], _Call], Any]:
    calls: dict[tuple[str, int], _Call] = {}
    counts: dict[str, int] = {}

    def watch(path: str) -> Any:
        def note(module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
            number = counts.get(path, 0)
            counts[path] = number + 1
            calls[path, number] = _Call(module, _kept(args), _kept(kwargs), _kept(output))

        return note

    handles = [m.register_forward_hook(watch(plain_path(p)), with_kwargs=True)
               for p, m in model.named_modules() if not any(True for _ in m.children())]
    try:
        with untouched(model, seed):
            return calls, _kept(run(model, batch))
    finally:
        for handle in handles:
            handle.remove()


def _kept(value: Any) -> Any:
    """A copy that an in-place operation after it does not change."""
    if isinstance(value, torch.Tensor):
        return value.detach().clone()
    if isinstance(value, dict):
        return {k: _kept(v) for k, v in value.items()}
    return type(value)(_kept(v) for v in value) if type(value) in (tuple, list) else value


def _layer(key: tuple[str, int], one: _Call, other: _Call, tolerance: float | None, seed: int) -> Layer:
    bound = tolerance or tolerance_of(one.output, other.output)
    return Layer(key[0], type(other.module).__name__, key[1], apart(one.output, other.output),
                 _own(one, other, seed), bound)


def _own(one: _Call, other: _Call, seed: int) -> float | None:
    """The difference on identical input: both modules are run on the first side's, each from the same RNG."""
    outputs = []
    for module in (one.module, other.module):
        try:
            with untouched(module, seed):
                outputs.append(module(*moved(one.args, module), **moved(one.kwargs, module)))
        except (RuntimeError, TypeError, ValueError):  # a layer that needs its surroundings: the total still speaks
            return None
    return apart(outputs[0], outputs[1])


def in_autocast(device: str, dtype: torch.dtype | None) -> Any:
    """A context of `torch.autocast`, or none for None."""
    return nullcontext() if dtype is None else torch.autocast(device, dtype=dtype)
