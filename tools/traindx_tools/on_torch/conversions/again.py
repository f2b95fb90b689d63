"""The loss of a noted pass with other weights: the pass is made again on copies, as often as it is asked."""

from __future__ import annotations

import warnings
from collections.abc import Mapping

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.snapshot.rerun import Rerun, givens
from traindx_tools.on_torch.snapshot.tape import Call, Noted


class LossAgain(Rerun):
    """One pass. The program's modules are copied once; everything belongs inside `quiet.unnoticed_by`."""

    def __init__(self, noted: Noted, slot: int, factor: float = 1.0) -> None:
        """`slot`: of the loss; `factor`: what a loss scaler had multiplied it with. Raises NotReplayable."""
        super().__init__()
        self._entries, self._slots, self._slot, self._factor = noted.leading_to([slot]), noted.slots, slot, factor
        if not any(isinstance(e, Call) for e in self._entries):
            raise NotReplayable("no model takes part in the loss")
        for entry in self._entries:
            if isinstance(entry, Call):
                self.copier.module(entry.module)
        for given in givens(self._entries):
            self.filled(given) if given.unchanged else None
        self._copies = {id(o): c for o, c in self.copier.pairs(torch.Tensor)}

    def loss(self, values: Mapping[int, torch.Tensor]) -> float:
        """The loss with these values of parameters, by `id` of the program's own. Raises NotReplayable."""
        before: list[tuple[torch.Tensor, torch.Tensor]] = []
        try:
            for key, value in values.items():
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
            for copy, old in reversed(before):
                copy.data = old
        if root is None or root.numel() != 1:
            raise NotReplayable("the loss was not made again")
        return float(root.detach().double()) / self._factor
