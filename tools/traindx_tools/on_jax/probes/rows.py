"""Always on: what a step is trained on against what is evaluated (J802, J803)."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from traindx_tools.finding import Finding
from traindx_tools.on_jax.measures.roles import Signature, arguments, largest, on_host, signature, state_in
from traindx_tools.on_jax.probe import Call, JaxProbe
from traindx_tools.on_jax.rules import j802_evaluation_transform, j803_evaluated_rows
from traindx_tools.rows.book import Book
from traindx_tools.rows.host_values import hashes_of, profile_of, row_matrix
from traindx_tools.rows.overlap import Overlaps, twins_expected
from traindx_tools.rows.profile import Profile
from traindx_tools.rows.spent import Spent

KEPT, MOST_FUNCTIONS = 200, 64
FIRST, EVERY = 12, 20
"""Calls of a function whose statistics are taken: the first ones, then every so many."""


@dataclass(eq=False)
class _Trained:
    """One kind of state (the shapes of its arrays): what it was trained and evaluated on."""

    name: str
    place: tuple[str, int] | None
    book: Book = field(default_factory=Book)
    overlaps: Overlaps = field(default_factory=Overlaps)
    trained: deque[Profile] = field(default_factory=lambda: deque(maxlen=KEPT))
    evaluated: deque[Profile] = field(default_factory=lambda: deque(maxlen=KEPT))
    calls: int = 0


class Rows(JaxProbe):
    """Statistics and hashes of the rows that jitted functions are given."""

    name = "rows"
    always_on = True
    looks_before = True

    def __init__(self, scene: Any) -> None:
        super().__init__(scene)
        self._spent = Spent()
        self._of: dict[Signature, _Trained] = {}
        self._batch: tuple[int, dict[str, Signature], list[tuple[str, str, Any]]] | None = None

    def before_call(self, call: Call) -> None:
        """Keeps the batch on the host before the call may donate it."""
        self._batch = None
        if not self._spent.open or call.watched.calls > 20_000:
            return
        with self._spent.counted():
            given = {name: signature(value) for name, value in arguments(call.args, call.kwargs)}
            rows = []
            for name, value in arguments(call.args, call.kwargs):
                found = largest(value, name) if given[name] not in self._of else None
                values = on_host(found[1]) if found is not None else None
                if found is not None and values is not None:
                    rows.append((name, found[0], np.array(values)))
            self._batch = call.number, given, rows

    def after_call(self, call: Call) -> None:
        """Decides what the call was, and takes its rows."""
        if self._batch is None or self._batch[0] != call.number:
            return
        with self._spent.counted():
            _, given, rows = self._batch
            self._batch = None
            if call.watched.differentiates or call.watched.kind != "jit":
                self._train(call, given, rows)
            else:
                self._evaluate(given, rows)

    def _train(self, call: Call, given: dict[str, Signature], rows: list[tuple[str, str, Any]]) -> None:
        states = state_in(given, call.output)
        batch = _main(rows, states)
        if not states or batch is None:
            return
        ordered = sorted(states.values(), key=len, reverse=True)
        known = next((self._of[state] for state in ordered if state in self._of), None)
        seen = known or _Trained(call.watched.name, call.watched.place)
        for state in ordered:  # parameters and what an optimizer keeps are of one training: who evaluates has the first
            if len(self._of) < MOST_FUNCTIONS:
                self._of.setdefault(state, seen)
        seen.calls += 1
        matrix, whole = row_matrix(batch[1])
        seen.book.take(matrix, hashes_of(matrix), None, None, None, whole)
        if seen.calls <= FIRST or seen.calls % EVERY == 0:
            seen.trained.append(profile_of(*batch))

    def _evaluate(self, given: dict[str, Signature], rows: list[tuple[str, str, Any]]) -> None:
        states = {name: one for name, one in given.items() if one in self._of}
        batch = _main(rows, states)
        if not states or batch is None:
            return
        seen = self._of[max(states.values(), key=len)]
        seen.overlaps.take(seen.book, hashes_of(row_matrix(batch[1])[0]), ())
        seen.evaluated.append(profile_of(*batch))

    def finish(self) -> Iterable[Finding]:
        """Judges."""
        for seen in {id(s): s for s in self._of.values()}.values():
            yield from j802_evaluation_transform.check(seen.name, seen.place, seen.trained, seen.evaluated)
            counted = seen.overlaps.counted(seen.book)
            yield from j803_evaluated_rows.check(seen.name, seen.place, counted, twins_expected(seen.book))


def _main(rows: list[tuple[str, str, Any]], states: dict[str, Signature]) -> tuple[str, Any] | None:
    able = [(path, values) for name, path, values in rows if name not in states]
    return max(able, key=lambda p: p[1].size, default=None)
