"""Tries known other forms of loaded weights on the first batch (T345)."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

import torch

from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.conversions.again import LossAgain
from traindx_tools.on_torch.conversions.candidates import candidates
from traindx_tools.on_torch.conversions.inputs import INPUT, inputs
from traindx_tools.on_torch.conversions.search import heals, search
from traindx_tools.on_torch.conversions.searched import Searched
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.replaying.quiet import unnoticed_by
from traindx_tools.on_torch.rules import t345_loaded_in_another_form
from traindx_tools.on_torch.rules.t345_loaded_in_another_form import Converted
from traindx_tools.on_torch.snapshot.tape import Tape
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile
from traindx_tools.on_torch.world import world_size

SECONDS = 20.0
"""For one search; `options["conversion_seconds"]` says otherwise."""
MOST_BYTES = 2**31
"""Of parameters: a copy of a larger model is not made for this."""


class WeightConversionsProbe(TorchProbe):
    """Whether loaded weights know more in another form; asked at the first backward pass, confirmed at the second.

    Both are made again on copies. A program that loads nothing into a model before its first step costs nothing.
    """

    name = "weight-conversions"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._loaded: dict[int, tuple[torch.nn.Module, frozenset[str]]] = {}
        self._tape: Tape | None = None
        self._returned: Callable[[Any], None] | None = None
        self._found: Searched | None = None

    def state_loaded(self, kind: str, holder: Any, state: Any, result: Any) -> None:
        """A state went into a module."""
        if self.done or kind != "model" or self.scene.step or not isinstance(state, dict):
            return
        if isinstance(holder, torch.nn.Module):
            self._loaded[id(holder)] = holder, frozenset(map(str, state))
            if self._tape is None:
                self._tape = Tape()
                watch_compile(self._tape.close)

    def before_batch(self) -> None:
        """What a DataLoader computes in this process is none of the step."""
        if self._tape is not None:
            self._tape.close()
            self._tape.clear()

    def batch_given(self, batch: Any) -> None:
        """From here the loop's own operations are noted."""
        self._note()

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """The call is noted as a whole."""
        if self._tape is not None:
            self._tape.close()
            self._returned = self._tape.called(model, args, kwargs)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """So is what it returned."""
        if self._returned is not None:
            self._returned(output)
            self._returned = None
        self._note()

    def before_backward(self, loss: torch.Tensor) -> None:
        """Searches at the first pass, confirms at the second."""
        if self._tape is None:
            return
        self._tape.close()
        try:
            if world_size() > 1:
                raise NotReplayable("it is one of several processes, which wait for each other")
            self._asked(loss)
        except NotReplayable as why:
            self.scene.recorder.mark("weight-conversions", failed=str(why)[:400])
            self._end()
        if self._tape is not None:
            self._tape.clear()

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """What is noted of a step goes; a second pass that does not come is not waited for."""
        if self._tape is not None:
            self._tape.clear()
            self._note()
            if self.scene.step > 2:
                self._end()

    def finish(self) -> Iterable[Any]:
        """Takes the mode off the stack."""
        self._end()
        return ()

    def next_look(self) -> int:
        """Never again once it is done."""
        return self.NEVER if self._tape is None and self.scene.step else 0

    def _note(self) -> None:
        if self._tape is not None and not compiles():
            self._tape.open()

    def _end(self) -> None:
        if self._tape is not None:
            self._tape.close()
            self._tape.clear()
        self._tape, self._returned, self._found, self.done = None, None, None, bool(self.scene.step)
        self._loaded.clear()

    def _asked(self, root: torch.Tensor) -> None:
        tape, loss = self._tape, self.scene.loss
        if tape is None or loss is None or loss.numel() != 1:
            return
        slot = tape.slot_of(root)
        model, names = self._model()
        if tape.broken or slot is None or model is None:
            raise NotReplayable(tape.broken or "the loss was not made by what was seen of the step")
        value, whole = float(loss.double()), float(root.detach().double())
        factor = whole / value if value and root.data_ptr() != loss.data_ptr() else 1.0
        with unnoticed_by([model]):
            again = LossAgain(tape.noted(), slot, factor)
            again.loss({})
            ids = {**{n: id(p) for n, p in model.named_parameters()}, **again.ids}
            if self._found is None:
                seconds = float(self.scene.options.get("conversion_seconds", SECONDS))
                self._searched(search(again.loss, chain(inputs(again.inputs), candidates(model, names)), ids, seconds),
                               value)
            else:
                self._confirmed(again, model, ids)

    def _model(self) -> tuple[torch.nn.Module | None, frozenset[str]]:
        """The model that is trained and into which most was loaded, with the names of what was."""
        best: tuple[torch.nn.Module | None, frozenset[str]] = (None, frozenset())
        for model in self.scene.models:
            names: set[str] = set()
            for prefix, part in model.named_modules():
                if id(part) in self._loaded:
                    names |= {f"{prefix}.{n}" if prefix else n for n in self._loaded[id(part)][1]}
            if len(names) > len(best[1]):
                best = model, frozenset(names)
        held = sum(p.numel() * p.element_size() for p in best[0].parameters()) if best[0] is not None else 0
        return best if held <= MOST_BYTES else (None, frozenset())

    def _searched(self, found: Searched, value: float) -> None:
        self.scene.recorder.mark("weight-conversions", tried=found.tried, loss=found.loss, left=found.left,
                                 seconds=round(found.seconds, 2))
        if abs(found.loss - value) > 1e-3 * max(1.0, abs(value)):
            raise NotReplayable("the pass gives another loss when it is made again")
        self._found = found
        if found.best is None:
            self._end()

    def _confirmed(self, again: LossAgain, model: torch.nn.Module, ids: dict[str, int]) -> None:
        found = self._found
        assert found is not None
        assert found.best is not None
        base = again.loss({})
        forms = chain(inputs(again.inputs), candidates(model, frozenset(found.best.changes)))
        same = next((c for c in forms if c.said == found.best.said), None)
        if same is None and found.best.kind == INPUT:
            raise NotReplayable("the second batch is given otherwise than the first")
        same = same or found.best
        healed = again.loss({ids[n]: t for n, t in same.changes.items()})
        if heals(healed, base):
            for finding in t345_loaded_in_another_form.check(Converted(
                    type(model).__name__, found, base, healed, self.scene.recorder.rank)):
                self.scene.recorder.finding(finding)
        self._end()
