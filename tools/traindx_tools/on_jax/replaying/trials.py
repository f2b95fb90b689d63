"""Runs of a kept call: as it is, and with one change, from its jaxpr. Nothing of the program is called or changed."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from traindx_tools.experiments.replaying.changes import CHANGES, NOWHERE, ROWS, ZEROED
from traindx_tools.experiments.replaying.judging import Measured, shows
from traindx_tools.experiments.replaying.study import PASS, UPDATE
from traindx_tools.experiments.replaying.trying import NotReplayable
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.replaying.again import DOUBLE, PLAIN, SINGLE, Conditions, Took, function_of
from traindx_tools.on_jax.replaying.kept import Scenario

CONDITIONS: Mapping[str, Conditions] = {
    "float32": Conditions(precision=SINGLE), "float64": Conditions(precision=DOUBLE),
    "matmul-precision": Conditions(exact_products=True), "no-jit": Conditions(compiled=False),
    "clip-gradients": Conditions(clip=1.0)}
RATES = {"learning-rate:times=0.1": 0.1, "learning-rate:times=10": 10.0}
RESOLUTION = {"float64": 1e-9, "float32": 1e-4, "float16": 1e-2, "bfloat16": 5e-2}
"""Relative differences that are rounding, as for torch: sums in another order, some hundred times the resolution."""
EARLIER = ("the parameters before the last update show it as well: an earlier step, the batch or the forward pass is "
           "the cause")
_MOMENTS = (".mu", ".nu", ".trace", ".count", ".v_row", ".v_col", ".m[", ".v[", ".momentum", ".sum_of_squares")
"""Names of the state of optax's optimizers that is zero at the start; no counters of schedules by themselves."""


@dataclass(frozen=True)
class _Gave:
    outputs: Sequence[Any]
    loss: float
    norm: float | None


class JaxTrials:
    """Everything that is run of one scenario."""

    framework = "jax"

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.runs = 0
        self.at: str = PASS
        self.exact = True
        self.difference = 0.0
        self.no_update = scenario.no_update
        self._before = scenario.before
        self._loss_before: float | None = None
        self._made: dict[Conditions, tuple[Any, Took]] = {}

    # ---- as it is

    def control(self) -> Measured:
        """The call as it is. Raises NotReplayable where it is not the program's own."""
        scenario = self.scenario
        self._check_update()
        gave = self._call(scenario.now)
        self._check_loss(gave.loss)
        measured = self._of_parameters(gave, gave.outputs) if scenario.symptom.kind == "parameters" else replace(
            self._measured(gave), update_norm=self._update_norm())
        if not shows(scenario.symptom, measured) and scenario.symptom.kind != "loss-rise":
            raise NotReplayable("what was seen is not there when the call is made again")
        return measured

    def placed(self, control: Measured) -> Measured | None:
        """With the state before the last update; None without one."""
        symptom = self.scenario.symptom
        if symptom.kind == "parameters":
            self.at = UPDATE
            return None
        if self._before is None:
            return None
        gave = self._call(self._with_state({i: self._before[i] for i in self.scenario.state}))
        self._loss_before = gave.loss
        measured = replace(self._measured(gave), update_norm=0.0)
        self.at = PASS if shows(symptom, measured) else UPDATE
        return measured

    def _check_update(self) -> None:
        """The call before has to give the state that this one was given."""
        scenario = self.scenario
        if self._before is None or not scenario.fed:
            return
        outputs = self._call(self._before).outputs
        pairs = [(outputs[o], scenario.now[i]) for o, i in scenario.fed.items()]
        if not all(_close(a, b) for a, b in pairs):
            self.no_update, self._before = "the state is not what the last call alone made of it", None
            return
        self.exact = all(_same(a, b) for a, b in pairs)

    def _check_loss(self, now: float) -> None:
        was = self.scenario.value
        same = now == was or (math.isnan(now) and math.isnan(was))
        dtype = str(self.scenario.function.traced.jaxpr.out_avals[self.scenario.function.loss].dtype)
        off = 0.0 if same else abs(now - was) / max(abs(was), 1e-12)
        if not same and not (math.isfinite(off) and off <= RESOLUTION.get(dtype, 1e-4)):
            raise NotReplayable(f"its loss is {now:.6g} when it is run again, and was {was:.6g}")
        self.exact, self.difference = self.exact and same, off

    # ---- with a change

    def changed(self, name: str, rows: Sequence[int] | None = None) -> Measured:
        """The call, or the update before it, with a change of the table. Raises NotReplayable with why not."""
        if self.at == PASS:
            if CHANGES[name].part == "update":
                raise NotReplayable(self.no_update or EARLIER)
            return self._measured(self._run(name, self.scenario.now, rows))
        return self._updated(name, rows)

    def _updated(self, name: str, rows: Sequence[int] | None) -> Measured:
        scenario = self.scenario
        source = scenario.now if scenario.symptom.kind == "parameters" else self._before
        assert source is not None
        if name == ZEROED:
            raise NotReplayable("an update from inputs of zeros is no update of this kind")
        if not scenario.fed:
            return self._outside(name, source)
        gave = self._run(name, source, rows)
        outputs = list(gave.outputs)
        if name in RATES and not self._rates():
            for o, i in scenario.fed.items():
                if i in scenario.function.parameters:
                    outputs[o] = _moved(source[i], outputs[o], RATES[name])
        if scenario.symptom.kind == "parameters":
            return self._of_parameters(gave, outputs)
        state = {i: outputs[o].astype(scenario.now[i].dtype) if outputs[o].dtype != scenario.now[i].dtype
                 else outputs[o] for o, i in scenario.fed.items()}
        return replace(self._measured(self._call(self._with_state(state))),
                       update_norm=self._norm_of_update(state, source), parameters_finite=_finite(state.values()))

    def _outside(self, name: str, source: Sequence[Any]) -> Measured:
        """The program makes the update itself: all that can be changed is how far it went."""
        if name not in RATES:
            raise NotReplayable("the update is made outside of the function")
        state = {i: _moved(source[i], self.scenario.now[i], RATES[name]) for i in self.scenario.state}
        return replace(self._measured(self._call(self._with_state(state))),
                       update_norm=self._norm_of_update(state, source), parameters_finite=_finite(state.values()))

    def _run(self, name: str, source: Sequence[Any], rows: Sequence[int] | None) -> _Gave:
        """One call with the change made to its arguments or to how it runs."""
        leaves = list(source)
        if name == ROWS and rows is not None:
            for i in self.scenario.rows()[1]:
                leaves[i] = leaves[i][np.asarray(rows)]
        elif name == ZEROED:
            zeroed = [i for i in self.scenario.batch if _is_float(leaves[i])]
            self._held(name, len(zeroed))
            for i in zeroed:
                leaves[i] = _zeros(leaves[i])
        elif name == "other-key":
            self._held(name, len(self.scenario.keys))
            for i in self.scenario.keys:
                leaves[i] = _other(leaves[i])
        elif name == "fresh-state":
            moments = self._moments()
            self._held(name, len(moments))
            for i in moments:
                leaves[i] = _zeros(leaves[i])
        elif name in RATES:
            if not self._rates() and not self.scenario.function.parameters:
                raise NotReplayable("the parameters cannot be told from the rest of the state")
            for i in self._rates():
                leaves[i] = leaves[i] * RATES[name]
        conditions = CONDITIONS.get(name, PLAIN)
        gave = self._call(leaves, conditions)
        if conditions.precision or conditions.exact_products or conditions.clip:
            self._held(name, self._made[conditions][1].count)
        return gave

    def _rates(self) -> list[int]:
        """Inputs that `optax.inject_hyperparams` keeps the learning rate in."""
        names = self.scenario.function.traced.inputs
        return [i for i in self.scenario.state if "hyperparams" in names[i] and "learning_rate" in names[i]
                and "_states" not in names[i]]

    def _moments(self) -> list[int]:
        names = self.scenario.function.traced.inputs
        return [i for i in self.scenario.state if i not in self.scenario.function.parameters
                and any(word in names[i] for word in _MOMENTS)]

    def _held(self, name: str, took: int) -> None:
        if not took and name in NOWHERE:
            raise NotReplayable(NOWHERE[name])

    # ---- rows

    def row_count(self) -> int:
        """Of the batch. Raises NotReplayable."""
        return self.scenario.rows()[0]

    def row_numbers(self, rows: Sequence[int]) -> tuple[int, ...]:
        """No loader says them."""
        return ()

    # ---- runs

    def _call(self, leaves: Sequence[Any], conditions: Conditions = PLAIN) -> _Gave:
        self.runs += 1
        function = self.scenario.function
        if conditions not in self._made:
            took = Took()
            self._made[conditions] = function_of(function.traced.jaxpr, conditions, took), took
        try:
            with internals.wide() if conditions.precision == DOUBLE else contextlib.nullcontext():
                outputs, norm = self._made[conditions][0](*leaves)
                loss = float(np.asarray(outputs[function.loss]).astype(np.float64))
                told = float(norm)
        except Exception as error:
            raise NotReplayable(f"{type(error).__name__}: {str(error)[:200]}") from error
        return _Gave(outputs, loss, told if self._measures(function.traced.jaxpr) else None)

    def _measures(self, jaxpr: Any) -> bool:
        from traindx_tools.on_jax.paths.marked import marked_in

        return bool(marked_in(jaxpr))

    def _with_state(self, state: Mapping[int, Any]) -> list[Any]:
        return [state.get(i, v) for i, v in enumerate(self.scenario.now)]

    def _measured(self, gave: _Gave) -> Measured:
        return Measured(self._loss_before, gave.loss, gave.norm)

    def _of_parameters(self, gave: _Gave, outputs: Sequence[Any]) -> Measured:
        """What the call made of the state, and the loss of the batch with it."""
        scenario = self.scenario
        state = {i: outputs[o].astype(scenario.now[i].dtype) if _is_float(outputs[o]) else outputs[o]
                 for o, i in scenario.fed.items()}
        after = self._call(self._with_state(state))
        return Measured(gave.loss, after.loss, gave.norm, self._norm_of_update(state, scenario.now),
                        _finite(state.values()))

    def _update_norm(self) -> float | None:
        if self._before is None:
            return None
        return self._norm_of_update({i: self.scenario.now[i] for i in self.scenario.state}, self._before)

    def _norm_of_update(self, state: Mapping[int, Any], source: Sequence[Any]) -> float | None:
        """Of the parameters alone, where they are known."""
        chosen = [i for i in self.scenario.function.parameters if i in state]
        return _norm([_wide(state[i]) - _wide(source[i]) for i in chosen]) if chosen else None


def _moved(before: Any, after: Any, factor: float) -> Any:
    """As far from `before` as the update went, times the factor: what another learning rate does in optax."""
    import jax.numpy as jnp

    if not _is_float(before):
        return after
    return (before + factor * (jnp.asarray(after) - before)).astype(before.dtype)


def _zeros(value: Any) -> Any:
    import jax.numpy as jnp

    return jnp.zeros_like(value)


def _other(key: Any) -> Any:
    import jax

    return jax.random.fold_in(key, 1)


def _is_float(value: Any) -> bool:
    import jax.numpy as jnp

    return hasattr(value, "dtype") and bool(jnp.issubdtype(value.dtype, jnp.floating))


def _wide(value: Any) -> Any:
    return np.asarray(value).astype(np.float64)


def _norm(arrays: Sequence[Any]) -> float:
    with np.errstate(all="ignore"):
        return float(math.sqrt(sum(float(np.sum(np.square(a))) for a in arrays)))


def _finite(values: Any) -> bool:
    return all(bool(np.isfinite(_wide(v)).all()) for v in values if _is_float(v))


def _plain(value: Any) -> Any:
    import jax

    return np.asarray(jax.random.key_data(value) if internals.is_typed_key(value) else value)


def _same(one: Any, other: Any) -> bool:
    a, b = _plain(one), _plain(other)
    return bool(a.shape == b.shape and a.tobytes() == b.tobytes())


def _close(one: Any, other: Any) -> bool:
    """Equal but for rounding; what is not finite has to be so in both."""
    if _same(one, other):
        return True
    if not _is_float(one):
        return False
    a, b = _wide(one), _wide(other)
    finite = np.isfinite(b)
    if not np.array_equal(np.isfinite(a), finite):
        return False
    a, b = np.where(finite, a, 0.0), np.where(finite, b, 0.0)
    return _norm([a - b]) <= RESOLUTION.get(str(other.dtype), 1e-4) * _norm([b]) + 1e-30
