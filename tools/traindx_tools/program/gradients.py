"""What becomes of gradients: a program's moments are played, and each use of a gradient is noted with its state.

Gradients belong to the modules whose parameters an optimizer holds. `backward` adds to them, a step uses them, clearing
takes them away, unscaling divides them, clipping bounds them. A loop is played for a few turns; what the text leaves
open (a flag, an overflow) is played both ways. A fault is what holds in every scenario.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass, field

from traindx_tools.program.conditions import Condition, Situation
from traindx_tools.program.entities import Model, Optimizer
from traindx_tools.program.moments import ASIDE, Act, Section
from traindx_tools.program.program import Program
from traindx_tools.program.timeline import Moment

TURNS = 6
"""Turns of the innermost loop that trains: windows of 2 and of 3 both close there; a longer one closes twice."""
LONGEST_WINDOW = 8
"""A window of a fixed length up to this is played as it is; a longer one, or an open one, with 2 or 3 turns."""
OUTER_TURNS = 2
MOST_PLAYED = 4_000
"""Most moments of one scenario."""
MOST_QUESTIONS = 6
"""Open questions that are turned round one by one; where there are more, all are answered yes, then all no."""


@dataclass(eq=False)
class Pass:
    """One backward pass."""

    act: Act
    used: bool = False
    cleared: Act | None = None
    """What cleared it last where a store lost it unused."""


@dataclass
class Store:
    """The gradients of one module (of one optimizer where its modules are not known)."""

    model: Model | None
    passes: list[Pass] = field(default_factory=list)
    """What was added and not used yet."""
    stale: bool = False
    """It holds what a step has used already."""
    scales: set[bool] = field(default_factory=set)
    came: set[bool] = field(default_factory=set)
    """Whether passes came in scaled, whatever unscaling did since."""
    cleared: Act | None = None

    def clear(self, by: Act) -> None:
        for one in self.passes:
            one.cleared = by
        self.passes, self.stale, self.scales, self.came, self.cleared = [], False, set(), set(), by


@dataclass(frozen=True, eq=False)
class Use:
    """A step or a clip, and the gradients that it met."""

    act: Act
    optimizer: Optimizer
    passes: tuple[Pass, ...]
    stale: bool
    """Among them are gradients that an earlier step has used."""
    leftover: Model | None
    """The module whose gradients are stale although those of another one were cleared."""
    scales: frozenset[bool]
    """Whether the passes that it meets are scaled: {True}, {False} or both."""
    came: frozenset[bool]
    """The same when they came in, before any unscaling."""
    cleared: Act | None
    """What cleared the gradients last."""
    foreign: Pass | None = None
    """A pass of another line that another optimizer has stepped with before the newest one came."""


@dataclass
class Played:
    """One scenario from its begin to its end."""

    steps: list[Use] = field(default_factory=list)
    clips: list[Use] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)
    updates: list[Act] = field(default_factory=list)
    twice: list[Act] = field(default_factory=list)
    """Unscaling of an optimizer whose gradients the same scaler has divided since its last update."""
    overflows: bool = False
    handed: set[int] = field(default_factory=set)
    """Identities of optimizers and scalers that unknown code was given."""


@dataclass(eq=False)
class Player:
    """Plays one scenario of a run."""

    answers: Mapping[Hashable, bool]
    periods: Mapping[Hashable, int]
    optimizers: list[Optimizer]
    stores: dict[int, list[Store]]
    overflow: bool = False
    told: Played = field(default_factory=Played)
    left: int = MOST_PLAYED
    _unscaled: set[tuple[int, int]] = field(default_factory=set)
    """Scalers and optimizers that were unscaled since the last update."""
    _turns: list[tuple[int, bool]] = field(default_factory=lambda: [(0, True)])

    def play(self, section: Section) -> str:
        """Plays a section; how it is left."""
        for item in section.items:
            if self.left <= 0:
                return "raise"
            if isinstance(item, Act) and item.moment in ASIDE:
                continue
            left = self._act(item) if isinstance(item, Act) else self._section(item)
            if left:
                return left
        return ""

    def _section(self, section: Section) -> str:
        if section.kind == "loop":
            return self._loop(section)
        if section.kind == "arm":
            turn, is_last = self._turns[-1]
            now = Situation(turn, is_last, self.answers, self.periods, self.overflow)
            return (self.play(section) or section.leaves) if section.condition.holds(now) else ""
        if section.kind == "hook":
            return ""  # it runs elsewhere
        left = self.play(section)
        return "" if section.kind == "call" and left == "return" else left

    def _loop(self, loop: Section) -> str:
        turns = turns_of(loop, max([TURNS, *(2 * p for p in self.periods.values())]))
        for turn in range(turns):
            self._turns.append((turn, turn == turns - 1))
            left = self.play(loop)
            self._turns.pop()
            if left in ("return", "raise"):
                return left
            if left == "break":
                break
        return ""

    def _act(self, act: Act) -> str:
        self.left -= 1
        play = _PLAYS.get(act.moment)
        if play is not None:
            play(self, act)
        return ""

    # ---- moments

    def _backward(self, act: Act) -> None:
        made = Pass(act)
        self.told.passes.append(made)
        for store in self._every():
            if _reaches(act, store):
                store.passes.append(made)
                store.scales.add(bool(act.scaled))
                store.came.add(bool(act.scaled))

    def _clear(self, act: Act) -> None:
        for owner, store in self._owned():
            if any(owner == id(o) for o in act.optimizers) or (not act.optimizers and _reaches(act, store)):
                store.clear(act)

    def _unscale(self, act: Act) -> None:
        pairs = {(id(act.scaler), id(o)) for o in act.optimizers if act.scaler is not None}
        if pairs & self._unscaled:
            self.told.twice.append(act)
        self._unscaled |= pairs
        for owner, store in self._owned():
            if not act.optimizers or any(owner == id(o) for o in act.optimizers):
                store.scales = {False} if store.scales else set()

    def _clip(self, act: Act) -> None:
        for optimizer in self.optimizers:
            if any(_reaches(act, s) for s in self.stores[id(optimizer)]):
                self.told.clips.append(self._use(act, optimizer))

    def _step(self, act: Act) -> None:
        for optimizer in act.optimizers:
            use = self._use(act, optimizer)
            self.told.steps.append(use)
            for store in self.stores[id(optimizer)]:
                for one in store.passes:
                    one.used = True
                store.stale = store.stale or bool(store.passes)
                store.passes = []
                if optimizer.clears_itself:
                    store.clear(act)

    def _update(self, act: Act) -> None:
        self.told.updates.append(act)
        self._unscaled = {p for p in self._unscaled if act.scaler is not None and p[0] != id(act.scaler)}

    def _handed(self, act: Act) -> None:
        self.told.handed |= {id(o) for o in (*act.optimizers, act.scaler) if o is not None}

    def _written(self, act: Act) -> None:
        """What stands there now is the program's own business: it is used up by nobody."""
        for store in self._every():
            store.stale = False

    def _made(self, act: Act) -> None:
        """A new optimizer over modules of its own turn meets gradients of its own."""
        for optimizer in act.optimizers:
            if optimizer.made_in_a_loop and not optimizer.remade:
                for store in self.stores.get(id(optimizer), ()):
                    store.clear(act)
                    store.cleared = None

    # ---- state

    def _owned(self) -> Iterator[tuple[int, Store]]:
        yield from ((owner, s) for owner, stores in self.stores.items() for s in stores)

    def _every(self) -> Iterator[Store]:
        yield from {id(s): s for _, s in self._owned()}.values()

    def _use(self, act: Act, optimizer: Optimizer) -> Use:
        stores = self.stores[id(optimizer)]
        passes = {id(p): p for s in stores for p in s.passes}
        stale = [s for s in stores if s.stale]
        some = bool(stale) and len(stale) < len(stores)
        last = next((s.cleared for s in stores if s.cleared is not None), None)
        scales = frozenset(b for s in stores for b in s.scales)
        came = frozenset(b for s in stores for b in s.came)
        newest = next((p.act for p in reversed(passes.values()) if not p.used), None)
        foreign = next((p for p in passes.values() if p.used and newest is not None and p.act is not newest), None)
        return Use(act, optimizer, tuple(passes.values()), bool(stale), stale[0].model if some else None, scales, came,
                   last, foreign)


_PLAYS: dict[Moment, Callable[[Player, Act], None]] = {
    Moment.BACKWARD: Player._backward, Moment.CLEAR: Player._clear, Moment.UNSCALE: Player._unscale,
    Moment.CLIP: Player._clip, Moment.STEP: Player._step, Moment.UPDATE: Player._update, Moment.HANDED: Player._handed,
    Moment.MADE: Player._made, Moment.WRITTEN: Player._written,
}


def _reaches(act: Act, store: Store) -> bool:
    """Whether what an act concerns and a store have parameters in common, as far as it is known."""
    if act.models is None or store.model is None:
        return True
    return any(m.inside & store.model.inside or m is store.model for m in act.models)


def reaches(act: Act, optimizer: Optimizer) -> bool:
    """Whether what an act concerns and what an optimizer holds have parameters in common, as far as it is known."""
    return optimizer.holds is None or any(_reaches(act, Store(m)) for m in optimizer.holds)


def turns_of(loop: Section, most: int = TURNS) -> int:
    """How many turns of a loop are played."""
    if not {Moment.BACKWARD, Moment.STEP} & loop.has:
        return 1
    inner = any(isinstance(i, Section) and _trains_in_a_loop(i) for i in loop.items)
    turns = OUTER_TURNS if inner else most
    return turns if loop.count is None else max(1, min(turns, loop.count))


def _trains_in_a_loop(section: Section) -> bool:
    if Moment.BACKWARD not in section.has:
        return False
    return section.kind == "loop" or any(isinstance(i, Section) and _trains_in_a_loop(i) for i in section.items)


def questions_of(run: Section, unasked: frozenset[Moment] = frozenset({Moment.PARAMETERS})
                 ) -> tuple[list[Hashable], dict[Hashable, int]]:
    """The open questions of a run, and its windows with the length that they are played with.

    An arm that holds nothing but `unasked` moments is no question: whether it runs changes nothing for who asks."""
    atoms: dict[Condition, None] = {}
    seen: set[int] = set()
    stack: list[Section] = [run]
    while stack:
        section = stack.pop()
        if id(section) not in seen:
            seen.add(id(section))
            if section.leaves or not section.has or not section.has <= unasked | ASIDE:
                atoms.update(dict.fromkeys(section.condition.atoms()))
            stack += [i for i in section.items if isinstance(i, Section)]
    open_ones = list(dict.fromkeys(a.key for a in atoms if a.kind == "unknown"))
    windows = list(dict.fromkeys(a.key for a in atoms if a.kind == "every"))
    return open_ones, {key: _length(key) or 2 + i % 2 for i, key in enumerate(windows)}


def _length(key: Hashable) -> int | None:
    """How long a window is, where its divisor is a small number."""
    length = key[-1] if isinstance(key, tuple) else None
    return length if isinstance(length, int) and 1 < length <= LONGEST_WINDOW else None


def scenarios_of(questions: list[Hashable]) -> Iterator[dict[Hashable, bool]]:
    """Answers to the open questions: all yes, all no, and each alone otherwise."""
    yes, no = dict.fromkeys(questions, True), dict.fromkeys(questions, False)
    yield yes
    if questions:
        yield no
    if 1 < len(questions) <= MOST_QUESTIONS:
        for key in questions:
            yield {**yes, key: False}
            yield {**no, key: True}


def optimizers_of(run: Section) -> list[Optimizer]:
    """The optimizers that a run steps, clears or unscales."""
    found: list[Optimizer] | None = run.memo.get("optimizers")
    if found is None:
        acts = [a for a, _ in run.acts(Moment.STEP, Moment.CLEAR, Moment.CLIP, Moment.UNSCALE)]
        found = run.memo["optimizers"] = list({id(o): o for a in acts for o in a.optimizers}.values())
    return found


def stores_of(optimizers: list[Optimizer]) -> dict[int, list[Store]]:
    """The gradients of each optimizer; a module that several hold has one store."""
    shared: dict[int, Store] = {}
    found: dict[int, list[Store]] = {}
    for optimizer in optimizers:
        if not optimizer.holds:
            found[id(optimizer)] = [Store(None)]
        else:
            found[id(optimizer)] = [shared.setdefault(id(m), Store(m)) for m in optimizer.holds]
    return found


def played(program: Program, run: Section) -> list[Played]:
    """Every scenario of a run, and for each with a scaler the one in which gradients overflow."""
    memo: dict[int, list[Played]] = program.memo.setdefault("played", {})
    if id(run) not in memo:
        optimizers = optimizers_of(run)
        scales = any(a.scaler for a, _ in run.acts(Moment.STEP, Moment.UNSCALE))
        questions, periods = questions_of(run)
        memo[id(run)] = found = []
        for answers in scenarios_of(questions):
            for overflow in (False, True) if scales else (False,):
                player = Player(answers, periods, optimizers, stores_of(optimizers), overflow)
                player.told.overflows = overflow
                player.play(run)
                found.append(player.told)
    return memo[id(run)]
