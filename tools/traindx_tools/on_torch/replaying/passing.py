"""Forward and backward passes of a kept step, once more: with given parameters, under given conditions."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.nonfinite import operations as ops
from traindx_tools.on_torch.replaying.conditions import HALVES, PLAIN, Conditions, set_modes, surrounding
from traindx_tools.on_torch.replaying.kept import Passes
from traindx_tools.on_torch.snapshot.rerun import Rerun, givens
from traindx_tools.on_torch.snapshot.state import without_autocast
from traindx_tools.on_torch.snapshot.tape import Call, Given, Made, Op, mapped


@dataclass(frozen=True)
class Gave:
    """What a pass gave. `gradients` by `id(parameter)`, of the program's own, without a scaler's factor."""

    loss: float
    gradients: Mapping[int, torch.Tensor] = field(default_factory=dict)
    took: int = 0
    """How often the conditions took hold of something."""


class Pass(Rerun):
    """One run. Everything it does belongs inside `quiet.unnoticed_by`."""

    def __init__(self, passes: Passes, values: Mapping[int, torch.Tensor], conditions: Conditions = PLAIN, *,
                 cleared: bool = False) -> None:
        """`values`: of parameters, by `id`; others are as they are now. `cleared`: gradients of before are left out."""
        super().__init__()
        self._passes, self._given_values, self._conditions, self._cleared = passes, values, conditions, cleared
        self._needed = passes.needed
        self._rows = passes.batch()[1] if conditions.rows is not None else frozenset()
        """Ids of the tensors of the program whose rows change places."""
        self._filled: dict[int, torch.Tensor] = {}
        self._took = 0

    def run(self, *, gradients: bool) -> Gave:
        """The loss, and the gradients where they are asked for. Raises NotReplayable."""
        try:
            with surrounding(self._conditions, self._take), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._copy()
                self.values = [None] * self._passes.noted.slots
                for entry in self._needed:
                    self.again(entry)
                roots = [self.values[r.slot] for r in self._passes.roots]
                if any(r is None or r.numel() != 1 for r in roots):
                    raise NotReplayable("the loss was not made again")
                found = self._gradients(roots) if gradients else {}
        except NotReplayable:
            raise
        except Exception as error:
            raise NotReplayable(f"{type(error).__name__}: {str(error)[:200]}") from error
        loss = float(roots[-1].detach().double()) / self._passes.roots[-1].factor
        return Gave(loss, found, self._took)

    def _take(self) -> None:
        self._took += 1

    def _copy(self) -> None:
        for entry in self._needed:
            if isinstance(entry, Call):
                parameters = list(entry.module.parameters())
                if any(p._version != v for p, v in zip(parameters, entry.versions, strict=True)
                       if id(p) not in self._given_values):
                    raise NotReplayable("parameters were changed since")
                self.copier.module(entry.module)
        for given in givens(self._needed):
            self._original(given)
        for original, copy in self.copier.pairs(torch.Tensor):
            value = self._given_values.get(id(original))
            if value is not None:
                copy.data.copy_(value)
            if copy.is_floating_point() and self._conditions.raised(copy.dtype) is not copy.dtype:
                copy.data = self._conditions.lifted(copy.data)
                self._take()
        for entry in self._needed:
            if isinstance(entry, Call):
                set_modes(self.copier.module(entry.module), self._conditions, self._take)

    def _gradients(self, roots: list[torch.Tensor]) -> dict[int, torch.Tensor]:
        leaves = self.leaves()
        if not leaves or not all(r.requires_grad for r in roots):
            raise NotReplayable("the loss has no gradient when it is made again")
        with torch.enable_grad(), without_autocast():
            found = torch.autograd.grad(roots, [c for _, c in leaves], allow_unused=True)
        factor = self._passes.roots[-1].factor
        told = {id(o): g / factor for (o, _), g in zip(leaves, found, strict=True) if g is not None}
        if not self._cleared:
            for key, before in self._passes.leftover.items():
                told[key] = told[key] + before / factor if key in told else before / factor
        return told

    # ---- what is otherwise

    def filled(self, stand_in: Made | Given) -> Any:
        """With rows in other places, and in another precision."""
        value = self._original(stand_in)
        if isinstance(stand_in, Made) or id(stand_in.tensor) in self._given_values or value.requires_grad:
            return value
        key = id(stand_in.tensor)
        if key not in self._filled:
            self._filled[key] = self._otherwise(value)
        return self._filled[key]

    def drawn(self, entry: Op) -> list[Any]:
        """The same with what was drawn: a batch may be."""
        return [self._otherwise(v) for v in super().drawn(entry)]

    def _otherwise(self, value: torch.Tensor) -> torch.Tensor:
        rows = self._conditions.rows
        if rows is not None and id(value) in self._rows:
            value = value.index_select(0, torch.as_tensor(list(rows), device=value.device))
        return self._conditions.lifted(value)

    def _original(self, stand_in: Made | Given) -> Any:
        """A parameter whose value is given may have been changed since."""
        if isinstance(stand_in, Given) and id(stand_in.tensor) in self._given_values:
            return self.copier.tensor(stand_in.tensor)
        return super().filled(stand_in)

    def operation(self, entry: Any, args: Any, kwargs: Any) -> Any:
        """With dtypes that are named in it changed as well."""
        conditions = self._conditions
        if not conditions.plain:
            casts = ops.base_name(entry.func) in ("_to_copy", "to")
            if conditions.precision is not None or casts:
                args, kwargs = (mapped(v, self._dtype, torch.dtype) for v in (args, kwargs))
        return super().operation(entry, args, kwargs)

    def _dtype(self, dtype: torch.dtype) -> torch.dtype:
        raised = self._conditions.raised(dtype)
        if not self._conditions.autocast and dtype in self._cast_to():
            raised = torch.float32
        if raised is not dtype:
            self._take()
        return raised

    def _cast_to(self) -> set[torch.dtype]:
        """What autocast cast to around the calls."""
        return {t for e in self._needed if isinstance(e, Call) for _, on, t in e.surroundings.autocast if on}

    def call(self, entry: Any, args: Any, kwargs: Any) -> Any:
        """With another autocast, and inputs of zeros."""
        conditions = self._conditions
        if conditions.zeroed:
            args, kwargs = (mapped(v, self._zeroed) for v in (args, kwargs))
        if conditions.deterministic and any(p.is_cuda for p in entry.module.parameters()):
            self._take()
        if conditions.plain:
            return super().call(entry, args, kwargs)
        cast = any(on and t in HALVES for _, on, t in entry.surroundings.autocast)
        if cast:
            self._take()
        return super().call(_without_autocast(entry), args, kwargs)

    def _zeroed(self, tensor: torch.Tensor) -> torch.Tensor:
        if not tensor.is_floating_point() or tensor.requires_grad or not tensor.ndim:
            return tensor
        self._take()
        return torch.zeros_like(tensor)


def _without_autocast(entry: Call) -> Call:
    """The entry with autocast off in its surroundings."""
    off = tuple((device, False, dtype) for device, _, dtype in entry.surroundings.autocast)
    return replace(entry, surroundings=replace(entry.surroundings, autocast=off))
