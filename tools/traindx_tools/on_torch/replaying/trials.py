"""A scenario run again: as it is, and with one change, in the update before or in the passes."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import torch

from traindx_tools.experiments.replaying.changes import CHANGES, NOWHERE, ROWS
from traindx_tools.experiments.replaying.judging import Measured, shows
from traindx_tools.experiments.replaying.study import PASS, UPDATE
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_torch.captured.trial import RESOLUTION
from traindx_tools.on_torch.replaying.conditions import CONDITIONS, PLAIN, Conditions
from traindx_tools.on_torch.replaying.kept import Passes, Scenario, Update
from traindx_tools.on_torch.replaying.passing import Gave, Pass
from traindx_tools.on_torch.replaying.updating import Stepped, close, norm_of, step_again

CLIPPED = 0.999
"""Of the norm: from there on a gradient was made smaller by its norm."""
GRADIENTS = 1e-3
"""Relative difference of gradients that are the same: sums in another order, over many parameters."""


@dataclass(frozen=True)
class Raw:
    """The gradients of the update before anybody clipped them, and the norm that they were clipped to."""

    gradients: tuple[torch.Tensor | None, ...]
    bound: float | None


class Trials:
    """Everything that is run of one scenario. `set_back` undoes what a run left in what is shared with the program."""

    framework = "torch"

    def __init__(self, scenario: Scenario, set_back: Callable[[], None]) -> None:
        self.scenario, self._set_back = scenario, set_back
        self.runs = 0
        self.at: str = PASS
        self.exact = True
        self.difference = 0.0
        """Of the loss from the program's own, relative to it."""
        self.no_update = scenario.no_update
        self._update: Update | None = scenario.update
        self._raw: Raw | None = None
        self._after: Stepped | None = None
        self._before: float | None = None

    # ---- as it is

    def control(self) -> Measured:
        """The step as it is, which has to be the program's own. Raises NotReplayable with why it is not."""
        symptom = self.scenario.symptom
        self._check_update()
        gave = self._pass(self._values_now())
        self._check_loss(gave)
        if symptom.kind == "parameters" and self._after is not None and self._update is not None:
            self._before = gave.loss
            gave = self._pass(_by_id(self._update, self._after.values))
        measured = self._measured(gave, self._after)
        if symptom.kind.startswith("gradient"):
            self._check_norm(measured)
        if not shows(symptom, measured) and symptom.kind != "loss-rise":
            raise NotReplayable("what was seen is not there when the step is run again")
        return measured

    def placed(self, control: Measured) -> Measured | None:
        """Where the symptom comes from, in `at`: what the passes give without the last update, None without one."""
        if self._update is None:
            return None
        if self.scenario.symptom.kind == "parameters":
            self.at = UPDATE
            return None
        without = replace(self._measured(self._pass(self._update.values), None), update_norm=0.0)
        self._before = without.loss
        self.at = PASS if shows(self.scenario.symptom, replace(without, before=without.loss)) else UPDATE
        return replace(without, before=without.loss)

    def _check_update(self) -> None:
        update = self._update
        if update is None:
            return
        try:
            self._after = step_again(update.kept, update.gradients, "", PLAIN)
            now = [p.detach() for p in update.kept.parameters]
            if not close(self._after.values, now, self._tolerance):
                raise NotReplayable("the parameters are not what the last update alone made of them")
            self.exact = all(map(_same, self._after.values, now))
        except NotReplayable as why:
            if self.scenario.symptom.kind == "parameters":
                raise
            self.no_update, self._update, self._after = str(why), None, None

    def _check_loss(self, gave: Gave) -> None:
        was = self.scenario.passes.value
        same = gave.loss == was or (math.isnan(gave.loss) and math.isnan(was))
        near = math.isfinite(was) and math.isfinite(gave.loss) and abs(gave.loss - was) <= self._tolerance * max(
            abs(was), 1e-12)
        if not same and not near:
            raise NotReplayable(f"its loss is {gave.loss:.6g} when it is run again, and was {was:.6g}")
        self.exact = self.exact and same
        self.difference = 0.0 if same else abs(gave.loss - was) / max(abs(was), 1e-12)

    def _check_norm(self, measured: Measured) -> None:
        was, now = self.scenario.symptom.value, measured.grad_norm
        if now is None or self.scenario.clipped or not math.isfinite(was):
            return
        if not abs(now - was) <= 10 * GRADIENTS * was:
            raise NotReplayable(f"its gradient norm is {now:.6g} when it is run again, and was {was:.6g}: the program "
                                "changes gradients by itself")

    @property
    def _tolerance(self) -> float:
        return RESOLUTION.get(self.scenario.passes.dtype, 1e-4)

    # ---- with a change

    def changed(self, name: str, rows: Sequence[int] | None = None) -> Measured:
        """The step with a change of the table. Raises NotReplayable where it cannot be made, with why."""
        conditions = Conditions(rows=rows) if name == ROWS else CONDITIONS.get(name, PLAIN)
        if self.at == PASS:
            return self._in_passes(name, conditions)
        update = self._update
        assert update is not None
        stepped = self._stepped(update, name, conditions)
        return self._measured(self._pass(_by_id(update, stepped.values)), stepped)

    def _in_passes(self, name: str, conditions: Conditions) -> Measured:
        cleared = name == "clear-gradients" and self.scenario.symptom.kind.startswith("gradient")
        if CHANGES[name].part == "update" and not cleared:
            raise NotReplayable(self.no_update or "the parameters before the last update show it as well: an earlier "
                                                  "step, the batch or the forward pass is the cause")
        passes = self.scenario.passes
        if cleared and (not passes.leftover or passes.accumulates):
            raise NotReplayable(NOWHERE["clear-gradients"])
        gave = self._pass(self._values_now(), conditions, cleared=cleared)
        self._held(name, gave.took if not cleared else 1)
        return self._measured(gave, None)

    def _stepped(self, update: Update, name: str, conditions: Conditions) -> Stepped:
        gradients: Sequence[torch.Tensor | None] = update.gradients
        if name == "inputs-zeroed":
            raise NotReplayable("an update from inputs of zeros is no update of this kind")
        if CHANGES[name].part == "pass":
            gradients = self._clip(self._recomputed(conditions, name=name))
        elif name == "no-clipping":
            raw = self._raw_gradients()
            self._held(name, int(raw.bound is not None))
            gradients = raw.gradients
        elif name == "clear-gradients":
            passes = update.passes
            self._held(name, int(passes is not None and bool(passes.leftover) and not passes.accumulates))
            self._raw_gradients()
            gradients = self._clip(self._recomputed(PLAIN, cleared=True))
        stepped = step_again(update.kept, gradients, name, conditions)
        self._held(name, stepped.took)
        return stepped

    def _held(self, name: str, took: int) -> None:
        if not took and name in NOWHERE:
            raise NotReplayable(NOWHERE[name])

    # ---- rows

    def row_count(self) -> int:
        """Of the batch of the passes in which the symptom comes about. Raises NotReplayable where it has none."""
        return self._their_passes().batch()[0]

    def row_numbers(self, rows: Sequence[int]) -> tuple[int, ...]:
        """In the dataset, where the sampler says them."""
        drawn = self._their_passes().drawn
        return tuple(drawn[i] for i in rows) if len(drawn) == self.row_count() else ()

    def _their_passes(self) -> Passes:
        if self.at == PASS:
            return self.scenario.passes
        update = self.scenario.update
        if update is None or update.passes is None:
            raise NotReplayable("the passes of the step before were not kept")
        return update.passes

    # ---- gradients of the update

    def _recomputed(self, conditions: Conditions, *, cleared: bool = False,
                    name: str = "") -> tuple[torch.Tensor | None, ...]:
        update = self._update
        assert update is not None
        if update.passes is None:
            raise NotReplayable("the passes of the step before were not kept")
        if name:
            self._raw_gradients()  # they have to be the program's own before anything is changed
        gave = self._pass(update.values, conditions, cleared=cleared, passes=update.passes)
        self._held(name, gave.took)
        return tuple(gave.gradients.get(id(p)) for p in update.kept.parameters)

    def _raw_gradients(self) -> Raw:
        """The gradients as the passes give them, compared with those that the optimizer took. Raises NotReplayable."""
        if self._raw is not None:
            return self._raw
        update = self._update
        assert update is not None
        raw = self._recomputed(PLAIN)
        if [r is None for r in raw] != [g is None for g in update.gradients]:
            raise NotReplayable("the gradients of the step before come from elsewhere as well")
        first = [r for r in raw if r is not None]
        second = [g for g in update.gradients if g is not None]
        if close(first, second, GRADIENTS):
            self._raw = Raw(raw, None)
            return self._raw
        bound, whole = norm_of(second), norm_of(first)
        if update.clipped and math.isfinite(whole) and bound < CLIPPED * whole and close(
                [r * (bound / whole) for r in first], second, 10 * GRADIENTS):
            self._raw = Raw(raw, bound)
            return self._raw
        raise NotReplayable("the program changes gradients by itself before the step")

    def _clip(self, gradients: tuple[torch.Tensor | None, ...]) -> tuple[torch.Tensor | None, ...]:
        bound = self._raw_gradients().bound
        norm = norm_of([g for g in gradients if g is not None])
        if bound is None or norm <= bound:
            return gradients
        return tuple(None if g is None else g * (bound / norm) for g in gradients)

    # ---- runs

    def _values_now(self) -> Mapping[int, torch.Tensor]:
        """Parameters that the passes ran with, where those are not the program's present ones."""
        update = self._update
        return update.values if update is not None and self.scenario.symptom.kind == "parameters" else {}

    def _pass(self, values: Mapping[int, torch.Tensor], conditions: Conditions = PLAIN, *, cleared: bool = False,
              passes: Passes | None = None) -> Gave:
        self.runs += 1
        wanted = passes is not None or self.scenario.symptom.kind.startswith("gradient")
        try:
            return Pass(passes or self.scenario.passes, values, conditions, cleared=cleared).run(
                gradients=wanted or self.scenario.symptom.finite)
        finally:
            self._set_back()

    def _measured(self, gave: Gave, stepped: Stepped | None) -> Measured:
        norm = norm_of(list(gave.gradients.values())) if gave.gradients else None
        return Measured(self._before, gave.loss, norm, None if stepped is None else stepped.norm,
                        stepped is None or stepped.finite)


def _by_id(update: Update, values: Sequence[torch.Tensor]) -> dict[int, torch.Tensor]:
    return {id(p): v for p, v in zip(update.kept.parameters, values, strict=True)}


def _same(one: torch.Tensor, other: torch.Tensor) -> bool:
    return bool(torch.equal(torch.nan_to_num(one), torch.nan_to_num(other)))
