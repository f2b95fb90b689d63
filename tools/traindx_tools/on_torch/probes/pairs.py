"""Pairs that are trained on against pairs that are evaluated, in both orders (T719)."""

from __future__ import annotations

import os
import weakref
from collections.abc import Hashable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from traindx_tools.finding import Finding, Location
from traindx_tools.on_torch.measures.batch import arguments
from traindx_tools.on_torch.measures.calls import EVALUATED, TRAINED, Calls, ModelCall, outputs_of
from traindx_tools.on_torch.measures.given_pairs import given_pairs, row_numbers, row_values, two_columns
from traindx_tools.on_torch.measures.late import Late
from traindx_tools.on_torch.measures.lookups import (
    FEWEST_ROWS,
    MOST_ROWS,
    AskedPairs,
    IndexPairs,
    Spot,
    plain,
    spot,
    trained_pairs,
)
from traindx_tools.on_torch.measures.row_values import inputs_of
from traindx_tools.on_torch.nonfinite.places import Place
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import t719_reversed_pairs
from traindx_tools.rows.pair_books import PairBooks
from traindx_tools.rows.pairs import Ints
from traindx_tools.rows.spent import Spent

MOST_LOOKS = 50_000
AT_ONCE, SHARE = 1.5, 0.02
"""Seconds, and the share of the run's time thereafter, that training steps may cost, and evaluations the same: they
often come when all steps are over."""
FIRST, EVERY = 12, 100
"""Steps whose graph is looked at while none has shown a pair: the first ones, then every so many."""
Columns = tuple[Ints, Ints]


@dataclass(eq=False)
class _Call(ModelCall):
    """A call of a model that is given pairs, or that may be one side of them."""

    streams: list[tuple[str, bool, Columns]] = field(default_factory=list)
    side: Ints | None = None
    """Numbers of its rows, where the model is called once for each side."""
    at: Spot | None = None
    ordinal: int = 0
    order: int = 0
    """Which call of its model it is since the last backward pass."""


class PairProbe(TorchProbe):
    """Pairs of rows or indices, trained on and evaluated, by ids and hashes in bounded memory and time."""

    name = "pairs"
    always_on = True

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._in_steps, self._in_evaluations = Spent(AT_ONCE, SHARE), Spent(AT_ONCE, SHARE)
        self._late: Late[tuple[Any, ...]] = Late()
        self._books: PairBooks[tuple[Place, ...]] = PairBooks()
        self._calls, self._asked = Calls(), AskedPairs()
        self._looks = self._passes = 0
        self._watching = False
        """Pairs were trained on as look-ups: those of evaluations are told."""
        self._given = False
        self._twice: set[int] = set()
        """Models that a step calls several times."""
        self._orders: dict[int, int] = {}
        self._before: dict[int, _Call] = {}
        self._current: _Call | None = None
        self._outer: Spot | None = None
        self._target: weakref.ref[torch.Tensor] | None = None

    def _spent(self, grad: bool) -> Spent:
        return self._in_steps if grad else self._in_evaluations

    def _open(self, grad: bool) -> bool:
        return self._spent(grad).open and self._looks < MOST_LOOKS

    def next_look(self) -> int:
        """Every step while there is time and pairs were seen."""
        if self._open(True) and (self._watching or self._given):
            return self.scene.step
        return self.scene.step + EVERY

    # ---- calls of models

    def before_forward(self, model: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Pairs that a model is given."""
        self._current = None
        self.let_go()  # a call before this one may have raised
        grad = torch.is_grad_enabled()
        if not self._open(grad) or not any(m is model for m in self.scene.models):
            return
        with self._spent(grad).counted(), torch.no_grad():
            if not grad and self._watching:
                self._outer = spot()
                self.scene.inner.append(self._embedded)
            self._look(model, arguments(model, args, kwargs), grad)

    def after_forward(self, model: torch.nn.Module, output: Any) -> None:
        """What the output is, so that it is known again in the graph of a loss."""
        self.let_go()
        call = self._current
        if call is not None and call.grad:
            call.made = tuple(t.grad_fn._sequence_nr() for t in outputs_of(output) if t.grad_fn is not None)

    def _look(self, model: torch.nn.Module, named: dict[str, torch.Tensor], grad: bool) -> None:
        order = self._orders[id(model)] = self._orders.get(id(model), -1) + grad
        pairs = list(given_pairs(named, self._looks))
        side = self._side(model, named) if not pairs else None
        if not pairs and side is None and not grad:
            return
        self._looks += 1
        rows = next((len(t) for t in named.values() if t.ndim), 0)
        call = _Call(id(model), self._looks, self.scene.step + 1, rows, grad, model.training, None, order=order)
        if not grad:
            call.at = self._outer or spot()
            call.ordinal = self._books.next_ordinal(call.at.key)
            call.role = EVALUATED if not model.training else None
        for given in pairs:
            self._send(call, (given.name, given.ids), given.values)
        if side is not None:
            self._send(call, ("side", False), side)
        self._calls.begin(call)
        self._current = call
        self._read()

    def _side(self, model: torch.nn.Module, named: dict[str, torch.Tensor]) -> torch.Tensor | None:
        """The rows of the one input of a model that each step calls once for each side of its pairs."""
        inputs = list(inputs_of(named).values()) if id(model) in self._twice else []
        able = len(inputs) == 1 and inputs[0].ndim >= 2 and len(inputs[0]) >= FEWEST_ROWS and plain(inputs[0])
        return row_values(inputs[0]) if able else None

    def _send(self, call: _Call, what: tuple[str, bool], values: torch.Tensor) -> None:
        call.waiting += 1
        self._late.send((call, *what), values)

    # ---- look-ups

    def _embedded(self, module: torch.nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        """Look-ups of embeddings within an evaluated model, which index nothing by themselves."""
        index = args[0] if args else kwargs.get("input")
        if type(module) is torch.nn.Embedding and isinstance(index, torch.Tensor) and plain(index):
            self.looked_up(module.weight, (index,))

    def looked_up(self, source: torch.Tensor, indices: Sequence[torch.Tensor]) -> None:
        """Rows of a tensor are taken while gradients are off."""
        if not self._open(False):
            return
        with self._spent(False).counted(), torch.no_grad():
            at = spot()
            for key, pairs in self._asked.take(source, indices, at, self._looks):
                self._looks += 1
                ordinal = self._books.next_ordinal(key)
                places = (self._outer or at).places
                self._late.send((None, pairs, key, places, self.scene.step, ordinal), pairs.columns)
            self._read()

    def loss_computed(self, name: str, args: tuple[Any, ...], kwargs: dict[str, Any], value: Any) -> None:
        """What tells positives from negatives that come in one call."""
        target = args[1] if len(args) > 1 else kwargs.get("target")
        self._target = weakref.ref(target) if isinstance(target, torch.Tensor) and plain(target) else None

    # ---- steps

    def before_backward(self, loss: torch.Tensor) -> None:
        """Pairs that are trained on."""
        with self._spent(True).counted(), torch.no_grad():
            self._asked.clear()
            self._books.stepped()
            self._settle(loss)
            due = self._watching or self._passes < FIRST or self._passes % EVERY == 0
            self._passes += 1
            if self._open(True) and due and plain(loss.detach().reshape(-1)):
                self._trained(loss)
            self._read()

    def _settle(self, loss: torch.Tensor) -> None:
        self._orders.clear()
        if not self._calls.open:
            return
        trained = [c for c in self._calls.trained_by(loss) if isinstance(c, _Call)]
        alike: dict[int, set[int]] = {}
        for call in trained:
            alike.setdefault(call.model, set()).add(call.number)
            label = self._label(call.rows)
            if label is not None and call.waiting + len(call.streams):
                self._send(call, ("label", False), label)
        self._twice |= {model for model, calls in alike.items() if len(calls) > 1}

    def _label(self, rows: int) -> torch.Tensor | None:
        target = self._target() if self._target is not None else None
        if target is None or target.numel() != rows or rows > MOST_ROWS or target.is_complex():
            return None
        return target.detach().reshape(-1).to(torch.float64, copy=True)

    def _trained(self, loss: torch.Tensor) -> None:
        for pairs in trained_pairs(loss, self._looks):
            if not self._watching:
                self._watching = True
                self.scene.watch_lookups()
            self._looks += 1
            label, columns = self._label(pairs.rows), pairs.columns
            if label is not None and len(label) == len(columns):
                columns = torch.cat([columns, label[:, None].to(columns.device)], 1)
            self._late.send((None, pairs, None, (), self.scene.step + 1, 0), columns)

    # ---- reading

    def _read(self, *, wait: bool = False) -> None:
        for tag, values in self._late.arrived(wait=wait):
            if tag[0] is not None:
                call, name, ids = tag
                self._arrived(call, name, ids, values)
                continue
            _, pairs, key, places, step, ordinal = tag
            u, v = two_columns(values[:, :2], True)
            if key is None:
                self._books.train(_scope(pairs), pairs.order, u, v, step, ids=True,
                                  label=values[:, 2] if values.shape[1] > 2 else None)
            else:
                self._books.evaluate(_scope(pairs), key, places, u, v, step, ids=True, ordinal=ordinal)
        for call in self._calls.done():
            if isinstance(call, _Call):
                self._put(call)

    def _arrived(self, call: _Call, name: str, ids: bool, values: Any) -> None:
        call.waiting -= 1
        if name == "label":
            call.label = values
        elif name == "side":
            call.side = row_numbers(values)
        else:
            self._given = True
            call.streams.append((name, ids, two_columns(values, ids)))

    def _put(self, call: _Call) -> None:
        for name, ids, (u, v) in call.streams:
            self._enter(("input", call.model, name), call.order, call, u, v, ids)
        if call.side is None:
            return
        before = self._before.get(call.model)
        self._before[call.model] = call
        if (before is not None and before.side is not None and before.role == call.role and before.step == call.step
                and (not call.grad or before.order == call.order - 1) and len(before.side) == len(call.side)):
            key = hash((before.at.key, call.at.key)) if before.at is not None and call.at is not None else None
            self._enter(("sides", call.model), call.order, call, before.side, call.side, False, key)

    def _enter(self, scope: Hashable, order: int, call: _Call, u: Ints, v: Ints, ids: bool,
               key: int | None = None) -> None:
        if call.role == TRAINED:
            label = call.label if call.label is not None and len(call.label) == len(u) else None
            self._books.train(scope, order, u, v, call.step, ids=ids, label=label)
        elif call.role == EVALUATED:
            places = call.at.places if call.at is not None else ()
            key = key or (call.at.key if call.at is not None else 0)
            self._books.evaluate(scope, key, places, u, v, call.step - 1, ids=ids, ordinal=call.ordinal)

    def let_go(self) -> None:
        """Looks into modules no more."""
        self._outer = None
        if self._embedded in self.scene.inner:
            self.scene.inner.remove(self._embedded)

    # ---- judging

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        self._calls.settle(ended=True)
        self._read(wait=True)
        for told in self._books.told():
            place = told.at[0] if told.at else None
            caller = next((p for p in told.at[1:] if place is not None and p.function != place.function), None)
            where = Location(file=place.file if place is not None else None, line=place.line if place is not None else
                             None, step=float(told.step), rank=self.scene.recorder.rank)
            said = f"{os.path.basename(caller.file)}:{caller.line}" if caller is not None else ""
            yield from t719_reversed_pairs.check(told.seen, where, said, told.ids)


def _scope(pairs: IndexPairs) -> Hashable:
    return "table", pairs.table
