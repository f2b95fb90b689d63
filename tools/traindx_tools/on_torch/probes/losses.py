"""What the losses of torch are given, at the line that calls them (T411, and the line of T709), and over which axis the
model's output is normalised (T412)."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any

import numpy as np
import torch

from traindx_tools.finding import Finding
from traindx_tools.knowledge.contracts import Contract, torch_losses
from traindx_tools.on_torch.measures.cadence import Cadence
from traindx_tools.on_torch.measures.calls import outputs_of
from traindx_tools.on_torch.measures.domain import Measured, Numbers, measurable, measure
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.loss_graph import softmax_of
from traindx_tools.on_torch.measures.once import Once
from traindx_tools.on_torch.nonfinite.places import Place, here
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t411_loss_argument, t412_softmax_over_batch
from traindx_tools.on_torch.rules.t411_loss_argument import Call, Site
from traindx_tools.on_torch.rules.t412_softmax_over_batch import Normalised

MOST_SITES, MOST_CALLS = 32, 40
LOOKED_AT = 5
"""Backward passes whose graph is looked at for the softmax over the model's output."""
JUDGED_AT = 100


class LossProbe(TorchProbe):
    """Ranges and sums of what each loss is given, against its contract."""

    name = "losses"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._once = Once()
        self._cadence = Cadence.chosen(scene.options, "losses", 8, 50)
        self._sites: dict[tuple[str, str | None, int | None], Site] = {}
        self._counts: dict[str, int] = {}
        self._late: Late[tuple[Site, int, Measured, str, dict[str, Any], int]] = Late()
        self._open: dict[int, tuple[Site, int, dict[str, Numbers], dict[str, Any], int]] = {}
        self._number = 0
        self._rows = 0
        self._outputs: list[Any] = []
        """Nodes of the graph that made the outputs of the last call with gradients; let go at its backward pass."""
        self._normalised: list[Normalised] = []

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """How many samples a model is given."""
        tensors = [t for t in (*args, *kwargs.values()) if isinstance(t, torch.Tensor) and t.ndim]
        self._rows = len(tensors[0]) if tensors else 0

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """What made the output, so that a softmax over it is known again in the graph of the loss."""
        if len(self._normalised) < LOOKED_AT and torch.is_grad_enabled():
            self._outputs = [t.grad_fn for t in outputs_of(output) if t.grad_fn is not None and t.ndim == 2
                             and len(t) == self._rows]

    def before_backward(self, loss: torch.Tensor) -> None:
        """Looks for that softmax."""
        made, self._outputs = self._outputs, []
        if not made or len(self._normalised) >= LOOKED_AT or loss.numel() != 1:
            return
        found = softmax_of(loss, made)
        if found is not None:
            place = here()
            self._normalised.append(Normalised(
                found.rows, found.classes, found.axis, float(loss.detach()), found.log, place.file if place else None,
                place.line if place else None, self.scene.step + 1))

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """Measures the arguments in the steps of its cadence, and in the first calls."""
        count = self._counts[name] = self._counts.get(name, 0) + 1
        if not self._cadence.due(self.scene.step) and count > MOST_CALLS:
            return
        contract = torch_losses()[name]
        given = bound(name, args, kwargs)
        tensors = {a.name: given[a.name] for a in contract.arguments if measurable(given.get(a.name))}
        if not tensors or any(t.is_cuda and torch.cuda.is_current_stream_capturing() for t in tensors.values()):
            return
        site = self._site(contract, here())
        if site is None or len(site.calls) >= MOST_CALLS:
            return
        self._number += 1
        settings = _settings(given)
        expected = len(tensors)
        for argument, tensor in tensors.items():
            measured = measure(tensor)
            tag = (site, self._number, measured, argument, {**settings, "gradients": torch.is_grad_enabled()}, expected)
            self._late.send(tag, measured.vector)

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        """Reads what has arrived; a first judgement in case the program is killed later."""
        self._read()
        if self.scene.step == JUDGED_AT:
            for finding in self._once.new(self._findings()):
                self.scene.recorder.finding(finding)

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What was seen before the program failed may be why."""
        return self.finish()

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._read(wait=True)
        return list(self._once.new(self._findings()))

    def _findings(self) -> Iterable[Finding]:
        yield from t411_loss_argument.check(list(self._sites.values()))
        yield from t412_softmax_over_batch.check(self._normalised, self.scene.recorder.rank)

    def _site(self, contract: Contract, place: Place | None) -> Site | None:
        key = (contract.name, place.file if place else None, place.line if place else None)
        if key not in self._sites:
            if len(self._sites) >= MOST_SITES:
                return None
            self._sites[key] = Site(contract, key[1], key[2], rank=self.scene.recorder.rank)
        return self._sites[key]

    def _read(self, *, wait: bool = False) -> None:
        for (site, number, measured, argument, settings, expected), vector in self._late.arrived(wait=wait):
            step = self.scene.step + 1
            call = self._open.setdefault(number, (site, step, {}, settings, expected))
            call[2][argument] = measured.read(np.asarray(vector))
            if len(call[2]) == expected:
                del self._open[number]
                gradients = bool(settings.pop("gradients"))
                if all(not np.isnan(n.low) and n.high < np.inf for n in call[2].values()):
                    site.calls.append(Call(call[1], call[2], settings, gradients))


def bound(name: str, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a loss by name, defaults included."""
    try:
        call = _signature(name).bind(*args, **kwargs)
    except (TypeError, ValueError):
        return dict(kwargs)
    call.apply_defaults()
    return dict(call.arguments)


@cache
def _signature(name: str) -> inspect.Signature:
    return inspect.signature(getattr(torch.nn.functional, name))


def _settings(given: Mapping[str, Any]) -> dict[str, Any]:
    plain = {k: v for k, v in given.items() if isinstance(v, (bool, int, float, str))}
    return {**plain, "weight": given.get("weight") is not None}
