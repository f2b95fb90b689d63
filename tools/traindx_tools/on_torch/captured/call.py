"""One call of a model as it was in a training step, and the target that its output met; small enough to keep."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from traindx_tools.on_torch.snapshot.tape import mapped

MOST_BYTES = 2**26
"""Of arguments and targets together: more is not kept."""
MOST_SAMPLES = 8
"""Samples that questions are asked with."""


class NotKept(Exception):
    """The call cannot be kept or made smaller; the text says why."""


@dataclass
class KeptCall:
    """A model, copies of its arguments, and of the targets of the losses that followed in the same step."""

    model: torch.nn.Module
    path: str
    args: tuple[Any, ...]
    kwargs: dict[str, Any]
    loader_rows: int
    """The size of the first axis of what the DataLoader gave, 0 where there was none."""
    full_rows: int = 0
    """Samples of the call itself: fewer are kept."""
    names: tuple[str, ...] = ()
    """What `forward` calls its positional arguments."""
    initial: dict[tuple[str, str], Any] = field(default_factory=dict)
    """Plain state of its modules when it was met (see `unsaved.py`)."""
    owner: torch.Tensor | None = None
    """Which sample each row belongs to, where rows are parts of samples (see `owned.py`)."""
    in_order: bool | None = None
    """Whether a loss of the step had a target as the DataLoader gave it; None where that is not known."""
    targets: list[tuple[torch.Tensor, int | None]] = field(default_factory=list)
    """Second arguments of the losses, with the index that is ignored."""

    @property
    def tensors(self) -> dict[str, torch.Tensor]:
        """The tensors among the arguments by where they stand: "ids", "batch.0", "mask"."""
        positional = {self.names[i] if i < len(self.names) else str(i): a for i, a in enumerate(self.args)}
        return dict(_walk({**positional, **self.kwargs}))

    @property
    def rows(self) -> int:
        """Samples."""
        return rows_of(self.tensors.values())

    def with_tensors(self, change: Any) -> KeptCall:
        """The call with `change(name, tensor)` in the place of each tensor."""
        names = {id(t): n for n, t in self.tensors.items()}
        args, kwargs = mapped((self.args, self.kwargs), lambda t: change(names.get(id(t), ""), t))
        return replace(self, args=args, kwargs=kwargs)

    def smaller(self) -> KeptCall:
        """The call with a few samples. Raises NotKept for one with a single sample."""
        rows = self.rows
        if rows < 2:
            raise NotKept("the call has a single sample")
        if self.owner is not None:
            return self
        most = min(rows, MOST_SAMPLES)
        return self.with_tensors(lambda _, t: t[:most] if t.ndim and t.shape[0] == rows else t)


def rows_of(tensors: Iterable[torch.Tensor]) -> int:
    """The size of the first axis that most tensors share, 0 where there is none."""
    sizes = [t.shape[0] for t in tensors if t.ndim]
    return max(set(sizes), key=lambda n: (sizes.count(n), n), default=0)


def kept(value: Any, room: list[int], rows: int = 0) -> Any:
    """A copy of a value's tensors that no graph and no later write reaches; of `rows` samples the first few.

    Raises NotKept beyond `room` bytes, for tensors of a special kind, and while a CUDA graph is captured.
    """
    def copied(t: torch.Tensor) -> torch.Tensor:
        if t.is_cuda and torch.cuda.is_current_stream_capturing():
            raise NotKept("a CUDA graph is captured")
        t = t[:MOST_SAMPLES] if rows > MOST_SAMPLES and t.ndim and t.shape[0] == rows else t
        if type(t) not in (torch.Tensor, torch.nn.Parameter) or t.layout != torch.strided:
            raise NotKept(f"an argument is a {type(t).__name__}")
        room[0] -= t.numel() * t.element_size()
        if room[0] < 0:
            raise NotKept("the arguments are too large")
        return t.detach().clone()

    return mapped(value, copied)


def plain(value: Any, depth: int = 6) -> bool:
    """Whether a value is made of tensors, numbers, text and containers of them: all that a copy of it needs."""
    if value is None or isinstance(value, (torch.Tensor, bool, int, float, str, torch.dtype, torch.device)):
        return True
    if not depth:
        return False
    if type(value) is dict:
        return all(plain(v, depth - 1) for v in value.values())
    if isinstance(value, (list, tuple)):
        return all(plain(v, depth - 1) for v in value)
    return False


def tensors_of_output(value: Any, depth: int = 5) -> list[torch.Tensor]:
    """Floating tensors of an output, in order."""
    return [t for t in tensors_of_any(value, depth) if t.is_floating_point()]


def tensors_of_any(value: Any, depth: int = 5) -> list[torch.Tensor]:
    """All tensors of an output, in order."""
    if isinstance(value, torch.Tensor):
        return [value]
    parts: list[Any] = []
    if isinstance(value, Mapping):
        parts = list(value.values())
    elif isinstance(value, (list, tuple)):
        parts = list(value)
    elif hasattr(value, "__dataclass_fields__"):
        parts = list(vars(value).values())
    return [t for p in parts for t in tensors_of_any(p, depth - 1)] if depth else []


def _walk(value: Any, name: str = "", depth: int = 6) -> Any:
    if isinstance(value, torch.Tensor):
        yield name.lstrip("."), value
    elif isinstance(value, dict) and depth:
        for key, part in value.items():
            yield from _walk(part, f"{name}.{key}", depth - 1)
    elif isinstance(value, (list, tuple)) and depth:
        for index, part in enumerate(value):
            yield from _walk(part, f"{name}.{index}", depth - 1)


def names_of(model: torch.nn.Module) -> tuple[str, ...]:
    """The parameters of `forward` that may be given by position, in order; () where it has no signature."""
    try:
        parameters = inspect.signature(model.forward).parameters.values()
    except (TypeError, ValueError):
        return ()
    return tuple(p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD))
