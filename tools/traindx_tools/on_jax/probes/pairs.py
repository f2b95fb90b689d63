"""Always on: pairs that a step is trained on against pairs that are evaluated, in both orders (J804)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.measures.pairs import ArgumentPairs, argument_pairs
from traindx_tools.on_jax.measures.roles import Signature, arguments, signature, state_in
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j804_reversed_pairs
from traindx_tools.on_jax.watched import caller
from traindx_tools.rows.pair_books import PairBooks
from traindx_tools.rows.spent import Spent

MOST_CALLS, MOST_STATES = 20_000, 64
AT_ONCE, SHARE = 1.5, 0.02
"""Seconds, and the share of the run's time thereafter, for training and evaluation each."""
At = tuple[str, tuple[str, int] | None]


class Pairs(JaxProbe):
    """Pairs of ids or rows that jitted functions are given, in bounded memory and time."""

    name = "pairs"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._in_steps, self._in_evaluations = Spent(AT_ONCE, SHARE), Spent(AT_ONCE, SHARE)
        self._books: PairBooks[At] = PairBooks()
        self._states: set[Signature] = set()
        self._kept: tuple[int, dict[str, Signature], list[ArgumentPairs], At] | None = None

    def before_call(self, call: Call) -> None:
        """Copies the pairs before the call may donate them."""
        self._kept = None
        spent = self._spent(call)
        if not spent.open or call.watched.calls > MOST_CALLS:
            return
        with spent.counted():
            given = {name: signature(value) for name, value in arguments(call.args, call.kwargs)}
            data = {n: v for n, v in arguments(call.args, call.kwargs) if given[n] not in self._states}
            pairs = argument_pairs(data, call.watched.calls, rows=bool(self._states))
            self._kept = call.number, given, pairs, (call.watched.name, caller())

    def after_call(self, call: Call) -> None:
        """Decides what the call was, and takes its pairs."""
        if self._kept is None or self._kept[0] != call.number:
            return
        with self._spent(call).counted():
            _, given, pairs, at = self._kept
            self._kept = None
            if self._trains(call):
                self._train(call, given, pairs)
            elif pairs:
                self._evaluate(call, given, pairs, at)

    def _trains(self, call: Call) -> bool:
        return call.watched.differentiates or call.watched.kind != "jit"

    def _spent(self, call: Call) -> Spent:
        return self._in_steps if self._trains(call) else self._in_evaluations

    def _train(self, call: Call, given: dict[str, Signature], pairs: list[ArgumentPairs]) -> None:
        states = state_in(given, call.output)
        if states and len(self._states) < MOST_STATES:
            self._states |= set(states.values())
        self._books.stepped()
        for one in pairs if states else ():
            if not set(one.arguments) & set(states):
                scope = max(states.values(), key=len), one.ids
                self._books.train(scope, one.path, *one.numbers(), call.step, ids=one.ids)

    def _evaluate(self, call: Call, given: dict[str, Signature], pairs: list[ArgumentPairs], at: At) -> None:
        states = {name: one for name, one in given.items() if one in self._states}
        for one in pairs if states else ():
            scope, key = (max(states.values(), key=len), one.ids), (*at, one.path)
            self._books.evaluate(scope, key, at, *one.numbers(), call.step, ids=one.ids,
                                 ordinal=self._books.next_ordinal(key))

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for told in self._books.told():
            yield from j804_reversed_pairs.check(told.seen, *told.at, told.ids)
