"""The loss-terms probes: values of the terms at sampled steps always, their gradients on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from typing import Any

import torch

from traindx_tools.finding import Finding
from traindx_tools.live.notice import say
from traindx_tools.on_torch.loss_terms.expression import LossTrace, Term
from traindx_tools.on_torch.loss_terms.pull import Pull, pull_of
from traindx_tools.on_torch.loss_terms.replaced import replaced_function
from traindx_tools.on_torch.loss_terms.weight import element_weight
from traindx_tools.on_torch.loss_terms.zero import why_zero
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.rules import (
    t401_term_dominates,
    t402_term_zero,
    t403_terms_conflict,
    t404_pull_disparity,
    t405_term_dies,
)
from traindx_tools.on_torch.speed.compilations import compiles, watch_compile

SOURCE = "loss-terms probe"
LOOKS_AT = (2, 5, 10, 20, 50)
"""Steps that are looked at; after them each `INTERVAL`-th."""
INTERVAL = 100


class LossTermsProbe(TorchProbe):
    """Traces one step now and then from its start to the call of backward. A program that compiles is left alone."""

    name = "loss-terms"
    always_on = True
    pulls = False

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self._trace: Any = None
        self._thread = threading.get_ident()
        self._said = False
        watch_compile()
        self._values: list[tuple[int, dict[str, float]]] = []
        self._weighted: list[tuple[int, dict[str, float]]] = []
        self._factors: list[dict[str, float]] = []
        self._pulls: list[tuple[int, Pull]] = []
        self._late: tuple[int, tuple[Term, ...], torch.Tensor] | None = None
        self._places: dict[str, tuple[str, int]] = {}
        self._with_graph: set[str] = set()
        self._weights: dict[str, float] = {}
        """Of one element of each term in the loss, where the graph says it."""
        self._why: dict[str, str] = {}
        """Why a term was 0 at every look so far, by name."""

    def next_look(self) -> int:
        """The end of the step before the one that is traced."""
        if self._trace is not None or self._late is not None:
            return self.scene.step
        return -(-(self.scene.step + 1) // INTERVAL) * INTERVAL - 2

    def before_backward(self, loss: torch.Tensor) -> None:
        if self._trace is None or self._trace.resting:
            return
        self._trace.resting = True  # `loss.backward` is itself a torch call: the mode cannot be left in here
        made = self._trace.terms(loss) if loss.numel() == 1 else ()
        terms = tuple(t for t in made if not t.constant)
        if len(terms) < 2:
            return
        self._places.update({t.name: (t.file, t.line) for t in terms})
        self._with_graph |= {t.name for t in terms if t.has_graph}
        told = {t.name: element_weight(t.tensor) for t in terms if t.has_graph}
        self._weights = {t.name: abs(t.factor) * w for t in terms if (w := told.get(t.name)) is not None}
        parameters = [p for m in self.scene.models for p in m.parameters()]
        self._why.update((t.name, why_zero(t.tensor, parameters)) for t in terms if t.has_graph and self._is_zero(t))
        if self.pulls:
            self._pulls = [*self._pulls[-8:], (self.scene.step + 1, pull_of(terms, parameters))]
        values = torch.stack([t.tensor.detach().float().flatten()[0].to(loss.device) for t in terms])
        plain = tuple(Term(t.name, t.file, t.line, t.factor, torch.empty(0)) for t in terms)
        self._late = self.scene.step + 1, plain, values

    def _is_zero(self, term: Term) -> bool:
        """Whether a term was 0 at the last two looks: only then it is worth a look at its graph."""
        last = [values.get(term.name) for _, values in self._values[-2:]]
        return last == [0.0, 0.0]

    def after_step(self, optimizer: torch.optim.Optimizer) -> None:
        self._stop()
        self._read()
        following = self.scene.step + 1
        if (following in LOOKS_AT or following % INTERVAL == 0) and not compiles() and not self._replaced():
            self._trace = LossTrace()
            self._thread = threading.get_ident()
            self._trace.__enter__()

    def _replaced(self) -> bool:
        """Whether the program put something in place of one of torch's functions: a trace would call that twice."""
        name = replaced_function()
        if name is not None and not self._said:
            self._said = True
            say(f"the terms of the loss are not looked at: the program has replaced {name}")
        return name is not None

    def finish(self) -> Iterable[Finding]:
        self._stop()
        self._read()
        rank = self.scene.recorder.rank
        detached = frozenset(self._places) - frozenset(self._with_graph)
        yield from t401_term_dominates.check(self._weighted, self._factors, self._places, SOURCE, rank)
        yield from t402_term_zero.check(self._values, detached, self._why, self._places, SOURCE, rank)
        yield from t405_term_dies.check(self._values, self._weights, self._places, SOURCE, rank)
        yield from t403_terms_conflict.check([(s, p.cosines) for s, p in self._pulls], self._places, SOURCE, rank)
        yield from t404_pull_disparity.check([(s, p.norms) for s, p in self._pulls], self._places, SOURCE, rank)

    def let_go(self) -> None:
        """Takes the trace off the stack."""
        self._stop()

    def _stop(self) -> None:
        trace: Any = self._trace
        self._trace = None
        if trace is not None and threading.get_ident() == self._thread:  # modes belong to their thread
            trace.__exit__(None, None, None)

    def _read(self) -> None:
        """Reads the values of the last look, a step late: by then they are there without waiting."""
        if self._late is None:
            return
        step, terms, values = self._late
        self._late = None
        numbers = dict(zip([t.name for t in terms], values.tolist(), strict=True))
        weighted = {t.name: t.factor * numbers[t.name] for t in terms}
        self._values.append((step, numbers))
        self._weighted.append((step, weighted))
        self._factors.append({t.name: t.factor for t in terms})
        self.scene.recorder.metrics(step, {f"loss/{name}": value for name, value in weighted.items()})


class LossPullProbe(LossTermsProbe):
    """The same with one backward pass a term at each look: how hard each pulls, and which oppose each other."""

    name = "loss-pull"
    always_on = False
    pulls = True

