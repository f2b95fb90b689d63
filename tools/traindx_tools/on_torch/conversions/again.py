"""The loss of a noted pass with other weights: the pass is made again on copies, as often as it is asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.snapshot.rerun import Rerun, givens
from traindx_tools.on_torch.snapshot.tape import Call, Noted, mapped

MOST_VALUES = 2**26
"""Of an input that is tried in other forms."""


class LossAgain(Rerun):
    """One pass. The program's modules are copied once; everything belongs inside `quiet.unnoticed_by`."""

    def __init__(self, noted: Noted, slot: int, factor: float = 1.0) -> None:
        """`slot`: of the loss; `factor`: what a loss scaler had multiplied it with. Raises NotReplayable."""
        super().__init__()
        self._inputs: dict[int, torch.Tensor] = {}
        self._asked = False
        self.inputs: dict[str, torch.Tensor] = {}
        """What the first call of a model is given that no gradient reaches: data, by a name; known after a loss."""
        self._entries, self._slots, self._slot, self._factor = noted.leading_to([slot]), noted.slots, slot, factor
        if not any(isinstance(e, Call) for e in self._entries):
            raise NotReplayable("no model takes part in the loss")
        for entry in self._entries:
            if isinstance(entry, Call):
                self.copier.module(entry.module)
        for given in givens(self._entries):
            if given.unchanged:
                self.filled(given)
        self._copies = {id(o): c for o, c in self.copier.pairs(torch.Tensor)}

    @property
    def ids(self) -> dict[str, int]:
        """The keys of the inputs among the values of `loss`; no object has a negative id."""
        return {name: -1 - at for at, name in enumerate(self.inputs)}

    def loss(self, values: Mapping[int, torch.Tensor]) -> float:
        """The loss with these values of parameters and inputs, by `id` of the program's own. Raises NotReplayable."""
        self._inputs = {k: v for k, v in values.items() if k < 0}
        self._asked = False
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        try:
            for key, value in values.items():
                if key < 0:
                    continue
                copy = self._copies.get(key)
                if copy is None:
                    raise NotReplayable("a parameter takes no part in the loss")
                before.append((copy, copy.data))
                copy.data = value.to(copy.dtype).contiguous()
            with warnings.catch_warnings(), torch.no_grad():
                warnings.simplefilter("ignore")
                self.values = [None] * self._slots
                for entry in self._entries:
                    self.again(entry)
                root = self.values[self._slot]
        except NotReplayable:
            raise
        except Exception as error:
            raise NotReplayable(f"{type(error).__name__}: {str(error)[:200]}") from error
        finally:
            self._inputs = {}
            for copy, old in reversed(before):
                copy.data = old
        if root is None or root.numel() != 1:
            raise NotReplayable("the loss was not made again")
        return float(root.detach().double()) / self._factor

    def call(self, entry: Any, args: Any, kwargs: Any) -> Any:
        """The first model is given its inputs in another form, where one is asked for."""
        if self._asked:
            return super().call(entry, args, kwargs)
        self._asked = True
        at = 0

        def form(t: torch.Tensor) -> torch.Tensor:
            nonlocal at
            if t.requires_grad or not t.ndim or t.numel() > MOST_VALUES:
                return t
            self.inputs.setdefault(f"input {at + 1}" if at else "the input", t)
            at += 1
            return self._inputs.get(-at, t)

        args, kwargs = mapped((args, kwargs), form)
        return super().call(entry, args, kwargs)
