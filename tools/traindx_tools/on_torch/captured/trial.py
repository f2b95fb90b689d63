"""A copy of a model in evaluation mode that answers with the tensors of its output, the same each time it is asked."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import torch

from traindx_tools.on_torch.captured.call import KeptCall, NotKept, tensors_of_output
from traindx_tools.on_torch.snapshot.copying import Copier

SEED = 20_261
SECONDS = 3.0
"""Of all questions together; a slow model is asked the first ones only."""
RESOLUTION = {torch.float64: 1e-9, torch.float32: 1e-4, torch.float16: 1e-2, torch.bfloat16: 5e-2}
"""Relative differences that are rounding: sums in another order, some hundred times the resolution of the dtype."""


class Trial:
    """One kept call, made small, and the copy. Everything it does belongs inside `sandbox.unnoticed`."""

    def __init__(self, call: KeptCall, set_back: Callable[[], None] = lambda: None) -> None:
        """`set_back`: sets what the model shares with the program back (see `sandbox.py`)."""
        self._set_shared_back = set_back
        self.call = call.smaller()
        self.rows, self.full_rows = self.call.rows, call.full_rows
        self.model = Copier().module(call.model).eval()
        self._began = time.monotonic()
        self._longest = 0.0
        self._buffers = {n: b.detach().clone() for n, b in self.model.named_buffers()}
        self._plain: dict[tuple[torch.nn.Module, str], Any] = {
            (m, n): v.detach().clone() if isinstance(v, torch.Tensor) else v for m in self.model.modules()
            for n, v in vars(m).items() if isinstance(v, (torch.Tensor, int, float)) and n != "training"}
        self.base = self.ask(self.call)
        if not self.base:
            raise NotKept("its output holds no floating tensor")
        if not all(bool(torch.isfinite(t).all()) for t in self.base):
            raise NotKept("its output is not finite")
        again = self.ask(self.call)
        if len(again) != len(self.base) or not all(map(torch.equal, self.base, again)):
            raise NotKept("its output does not repeat")

    def ask(self, call: KeptCall, *, train: bool = False, seed: int = SEED, set_back: bool = True,
            prepare: Callable[[torch.nn.Module], Any] | None = None) -> list[torch.Tensor]:
        """The tensors of the output on these arguments. Raises NotKept where the model fails or time is up.

        `set_back`: its own state is that of the first call. `prepare`: called with the copy when its mode is set.
        """
        if time.monotonic() - self._began + self._longest > SECONDS:
            raise NotKept("time is up")
        began = time.monotonic()
        if set_back:
            self._set_back()
        self._set_shared_back()
        torch.manual_seed(seed)
        random.seed(seed)
        np.random.seed(seed)
        self.model.train(train)
        if prepare is not None:
            prepare(self.model)
        try:
            with torch.no_grad():
                output = self.model(*call.args, **call.kwargs)
        except Exception as error:
            raise NotKept(f"{type(error).__name__}: {str(error)[:120]}") from error
        finally:
            self.model.eval()
        found = [t.detach() for t in tensors_of_output(output)]
        self._longest = max(self._longest, time.monotonic() - began)
        return found

    def ask_with(self, module: torch.nn.Module, name: str, value: Any, *, train: bool = False) -> list[torch.Tensor]:
        """The same call with another value of an attribute or a buffer of the copy."""
        path = next((f"{p}.{name}".lstrip(".") for p, m in self.model.named_modules() if m is module), name)
        held: dict[Any, Any] = self._buffers if path in self._buffers else self._plain
        key: Any = path if path in self._buffers else (module, name)
        before = held[key]
        held[key] = value
        try:
            return self.ask(self.call, train=train)
        finally:
            held[key] = before

    def _set_back(self) -> None:
        """Statistics, counters and hidden states are those of the first call: no answer depends on an earlier one."""
        with torch.no_grad():
            for name, buffer in self.model.named_buffers():
                if name in self._buffers and buffer.shape == self._buffers[name].shape:
                    buffer.copy_(self._buffers[name])
        for (module, name), value in self._plain.items():
            vars(module)[name] = value.clone() if isinstance(value, torch.Tensor) else value

    def main(self, outputs: list[torch.Tensor]) -> torch.Tensor:
        """The largest tensor of an output that has one row a sample; of equal ones the first."""
        index = self.main_index
        if index is None or index >= len(outputs) or outputs[index].shape != self.base[index].shape:
            raise NotKept("the output has another form than before")
        return outputs[index]

    @property
    def main_index(self) -> int | None:
        """Its place among the tensors of the output, None where none has a row a sample."""
        fitting = [i for i, t in enumerate(self.base) if t.ndim and t.shape[0] == self.rows]
        return max(fitting, key=lambda i: self.base[i].numel(), default=None)


def change_of(before: torch.Tensor, after: torch.Tensor) -> torch.Tensor:
    """The absolute difference, 0 where it is rounding; in units of the spread of the values before."""
    scale = before.float().std().clamp_min(1e-12) if before.numel() > 1 else before.float().abs().clamp_min(1e-12)
    change = (after.float() - before.float()).abs() / scale
    return torch.where(change <= RESOLUTION.get(before.dtype, 1e-4), torch.zeros_like(change), change)
