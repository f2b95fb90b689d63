"""Where two recordings part first, and what was still equal there: that tells data, chance and kernels apart.

Random states that differ are no parting by themselves: they are kept, and explain the first value that does.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from math import lgamma, log
from typing import Any, Literal

from traindx_tools.experiments.isolating.parting.recording import Event, Recording

Origin = Literal["initial", "order", "rows", "values", "random", "kernel", "between", "loss", "backward", "optimizer",
                 "course", "output"]

SAID: Mapping[Origin, str] = {
    "initial": "the parameters that they start with differ: initialised from another random state, or loaded from "
               "another file",
    "order": "the same rows come in another order: the order of the data differs (shuffling, workers, the listing of "
             "a folder)",
    "rows": "other rows come, or the same with other values: what is drawn, read or computed from the data differs",
    "values": "the same samples come with other values: what is computed for them differs (augmentation, noise, a race "
              "in loading)",
    "random": "the inputs are equal and the random state is not: random numbers (dropout, noise) were drawn otherwise",
    "kernel": "inputs, parameters and the framework's random state are equal and the output is not: the computation "
              "itself is not repeatable (threads, non-deterministic kernels, a race, memory that is not initialised)",
    "between": "what the module is given differs although all before is equal: code between the modules is not "
               "repeatable, or draws random numbers",
    "loss": "the outputs are equal and the loss is not: its computation is not repeatable",
    "backward": "the loss is equal and a gradient is not: the backward pass is not repeatable (atomic additions, "
                "threads, communication)",
    "optimizer": "the gradients are equal and the parameters after the step are not: the update is not repeatable, or "
                 "the optimizer's settings or state differ",
    "course": "they take another course: other batches, steps or modules follow",
    "output": "all that was recorded of their computation is equal, and what they print is not",
}
_OF_KIND: Mapping[str, Origin] = {"initial": "initial", "loss": "loss", "gradient": "backward",
                                  "after the step": "optimizer"}
PYTHON_S = {"python", "numpy"}
"""Random states that most programs never seed and never use: apart in any two runs, they explain little."""
DROPS = ("Dropout", "DropPath", "StochasticDepth", "RReLU", "MultiheadAttention")
"""Modules that draw random numbers, by their class."""


@dataclass(frozen=True)
class Parting:
    """The first value that differs. `step` counts completed steps (calls for JAX); `rows` of a batch, from 0."""

    rank: int
    step: int
    kind: str
    name: str
    origin: Origin
    rows: tuple[int, ...] = ()
    batch: int | None = None
    """The number of the batch or forward pass, from 1."""
    random: tuple[str, ...] = ()
    """Random states that had parted before, with the step."""
    losses: tuple[str, str] | None = None
    equal_events: int = 0
    surroundings: tuple[str, ...] = ()
    """What differs around the processes: versions, threads, variables."""

    @property
    def said(self) -> str:
        """One sentence on the place and one on the origin."""
        where = {"batch": "in a batch:", "input": "in what the model is given:", "module": "in the output of",
                 "gradient": "in the gradient of", "after the step": "in a parameter after the step:",
                 "initial": "in a parameter at the start:", "loss": "in the loss", "argument": "in", "result": "in",
                 }.get(self.kind, "in")
        name = "" if self.kind == "loss" else f" {self.name}"
        rows = f", rows {_few(self.rows)}" if self.rows else ""
        rank = f" on rank {self.rank}" if self.rank else ""
        number = f" (batch {self.batch})" if self.batch else ""
        after = f" (random states apart before: {', '.join(self.random)})" if self.random else ""
        return (f"they part after {self.step} steps{number}{rank} {where}{name}{rows}; {SAID[self.origin]}{after}")

    def to_json(self) -> dict[str, Any]:
        """Plain values."""
        return {"rank": self.rank, "step": self.step, "kind": self.kind, "name": self.name, "origin": self.origin,
                "rows": list(self.rows), "batch": self.batch, "random_states_apart": list(self.random),
                "losses": list(self.losses) if self.losses else None, "equal_events": self.equal_events,
                "surroundings": list(self.surroundings), "said": self.said}


@dataclass
class _Walk:
    """What was met so far."""

    random: dict[str, int] = field(default_factory=dict)
    batches: int = 0
    last_step: dict[str, int] = field(default_factory=dict)


def parting(one: Mapping[int, Recording], other: Mapping[int, Recording]) -> Parting | None:
    """Over all ranks the earliest place; None where everything that both recorded is equal."""
    found = [p for rank in sorted({*one} & {*other}) for p in [first(one[rank], other[rank])] if p is not None]
    return min(found, key=lambda p: (p.step, p.equal_events), default=None)


def first(one: Recording, other: Recording) -> Parting | None:
    """Where two recordings of one rank part first; the shorter one is compared as far as it goes."""
    walk = _Walk()
    around = tuple(f"{k}: {one.surroundings.get(k)} / {other.surroundings.get(k)}"
                   for k in dict.fromkeys([*one.surroundings, *other.surroundings])
                   if one.surroundings.get(k) != other.surroundings.get(k))
    for index, (a, b) in enumerate(zip(one.events, other.events, strict=False)):
        if a.kind in ("batch", "input") and walk.last_step.get(a.kind) != index - 1:
            walk.batches += a.kind == "batch" or "batch" not in walk.last_step
        walk.last_step[a.kind] = index
        if a.what != b.what:
            return _parting(one, a, "course", walk, index, around)
        if a.kind == "random":
            walk.random = {**walk.random, a.name: a.step} if a.digest != b.digest and a.name not in walk.random else {
                k: v for k, v in walk.random.items() if k != a.name or a.digest != b.digest}
        elif a.digest != b.digest:
            origin = _origin(one, other, index, walk)
            made = _parting(one, a, origin, walk, index, around)
            if a.kind in ("batch", "input"):
                made = _with_rows(made, a, b)
            return _with_losses(made, a, b)
    return None


def _parting(one: Recording, event: Event, origin: Origin, walk: _Walk, index: int,
             around: tuple[str, ...]) -> Parting:
    used = {n for n in walk.random if n not in PYTHON_S or _moves(one, n, index)}
    apart = tuple(f"{n} from step {s} on" if s > 0 else f"{n} from the start on"
                  for n, s in walk.random.items() if n in used)
    return Parting(one.rank, max(event.step, 0), event.kind, event.name, origin, (), walk.batches or None, apart, None,
                   index, around)


def _moves(one: Recording, name: str, index: int) -> bool:
    """Whether numbers were drawn from this state while it was recorded."""
    return len({e.digest for e in one.events[:index] if e.kind == "random" and e.name == name}) > 1


def _with_rows(made: Parting, a: Event, b: Event) -> Parting:
    return replace(made, rows=_rows_apart(a, b))


def _with_losses(made: Parting, a: Event, b: Event) -> Parting:
    return replace(made, losses=(a.name, b.name)) if a.kind == "loss" else made


def _rows_apart(a: Event, b: Event) -> tuple[int, ...]:
    if not isinstance(a.more, list) or not isinstance(b.more, list):
        return ()
    length = max(len(a.more), len(b.more))
    return tuple(i for i in range(length) if a.more[i:i + 1] != b.more[i:i + 1])


def _origin(one: Recording, other: Recording, index: int, walk: _Walk) -> Origin:
    a, b = one.events[index], other.events[index]
    if a.kind in _OF_KIND:
        return _OF_KIND[a.kind]
    if a.kind == "argument":
        return "between"
    if a.kind == "result":
        return "kernel"
    if a.kind == "module":
        if a.more != b.more:
            return "between"
        drawn = set(walk.random) - PYTHON_S or (walk.random and any(d in a.name for d in DROPS))
        return "random" if drawn else "kernel"
    return _of_rows(one, other, index)


def _of_rows(one: Recording, other: Recording, index: int) -> Origin:
    a, b = one.events[index], other.events[index]
    if not isinstance(a.more, list) or not isinstance(b.more, list):
        return "rows"
    beside = _beside(one.events, other.events, index)
    if any(_telling(rows) for rows in beside):
        return "values"
    if sorted(a.more) == sorted(b.more):
        return "order"
    theirs = {r for e in other.events if (e.kind, e.name) == (b.kind, b.name) and isinstance(e.more, list)
              for r in e.more}
    mine = [r for r, s in zip(a.more, b.more, strict=False) if r != s]
    met = sum(r in theirs for r in mine)
    if mine and met == len(mine):
        return "order"
    in_place = {r for r, s in zip(a.more, b.more, strict=False) if r == s}
    return "values" if beside or (met == 0 and len(in_place) > 1) else "rows"


def _telling(rows: list[str]) -> bool:
    """Whether these rows, equal in both runs, say that the same samples came: in another order they would hardly be
    equal (fewer than one in twenty orders are)."""
    alike = sum(lgamma(count + 1) for count in Counter(rows).values())
    return alike - lgamma(len(rows) + 1) < log(0.05)


def _beside(one: Sequence[Event], other: Sequence[Event], index: int) -> list[list[str]]:
    """The rows of other tensors of the batch, such as the labels, that are equal in both runs."""
    step, kind = one[index].step, one[index].kind
    near = [i for i in range(max(0, index - 64), min(len(one), len(other), index + 64))
            if i != index and (one[i].step, one[i].kind) == (step, kind)]
    return [one[i].more for i in near if isinstance(one[i].more, list) and one[i].what == other[i].what
            and one[i].digest == other[i].digest]


def _few(rows: tuple[int, ...]) -> str:
    told = ", ".join(map(str, rows[:8]))
    return told + (f" and {len(rows) - 8} more" if len(rows) > 8 else "")
