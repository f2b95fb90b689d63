"""Changes to what optax makes and applies: rate, schedule, clipping, decay, algorithm, averages."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.on_jax.package import OnPackage
from traindx_tools.live.import_hook import after_import

CLIPS = ("clip", "clip_by_global_norm", "clip_by_block_rms", "adaptive_grad_clip")
FACTORIES = ("adam", "adamw", "sgd", "rmsprop", "adagrad", "lion", "lamb", "lars", "adabelief", "adamax", "adamaxw",
             "nadam", "nadamw", "radam", "amsgrad", "yogi", "novograd", "adafactor", "adadelta", "noisy_sgd")


AHEAD = (*range(129), *(round(128 * 2 ** (k / 4)) for k in range(1, 49)))
"""Counts at which a schedule is asked for its peak."""


class LearningRate(OnPackage):
    """Updates are applied `times` over: what they are is the rate times a direction, whatever made them."""

    def attach(self) -> None:
        super().attach()
        after_import("equinox", lambda: self.guarded(self._equinox))

    def imported(self) -> None:
        self.replace("apply_updates", self._scaled_second)

    def _equinox(self) -> None:
        self.replace("apply_updates", self._scaled_second, "equinox")

    def _scaled_second(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def apply_updates(*args: Any, **kwargs: Any) -> Any:
            given = self.guarded(self._scaled, args, kwargs)
            if given is None:
                return original(*args, **kwargs)
            return original(*given[0], **given[1])

        return apply_updates

    def _scaled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        import jax

        times = float(self.option("times"))

        def scale(tree: Any) -> Any:
            return jax.tree_util.tree_map(lambda u: None if u is None else (u * times).astype(u.dtype), tree,
                                          is_leaf=lambda u: u is None)

        self.ledger.held()
        if len(args) > 1:
            return (args[0], scale(args[1]), *args[2:]), kwargs
        return args, {**kwargs, "updates": scale(kwargs["updates"])}


class ScheduleFixed(OnPackage):
    """Schedules give one value at each step."""

    def imported(self) -> None:
        self.replace("scale_by_learning_rate", self._rate)
        self.replace("scale_by_schedule", self._schedule)
        self.ledger.unseen = "no schedule was handed to optax: the rate is one number already"

    def _rate(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale_by_learning_rate(learning_rate: Any, *args: Any, **kwargs: Any) -> Any:
            fixed = self.guarded(self._fixed, learning_rate) if callable(learning_rate) else None
            self._inside = True
            try:
                return original(learning_rate if fixed is None else fixed, *args, **kwargs)
            finally:
                self._inside = False

        return scale_by_learning_rate

    _inside = False

    def _schedule(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def scale_by_schedule(step_size_fn: Any, *args: Any, **kwargs: Any) -> Any:
            fixed = None if self._inside else self.guarded(self._fixed, step_size_fn)
            return original(step_size_fn if fixed is None else fixed, *args, **kwargs)

        return scale_by_schedule

    def _fixed(self, schedule: Any) -> Any:
        values = [float(schedule(count)) for count in AHEAD]
        at = max(range(len(values)), key=lambda i: abs(values[i]) if math.isfinite(values[i]) else -1.0)
        peak, value = values[at], self.option("value")
        if at == len(values) - 1 and abs(peak) > abs(values[-2]):  # it never ends to rise
            at, peak = 0, values[0]
        if value is None and peak == 0:
            self.ledger.cannot(f"the schedule is 0 at each of {len(AHEAD)} counts up to {AHEAD[-1]:,}; value=... says "
                               "which rate")
            return None
        rate = peak if value is None else math.copysign(float(value), peak)
        what = "the rate that was given" if value is not None else f"the peak of the schedule, at update {AHEAD[at]:,}"
        self.ledger.held(f"a schedule, at a rate of {abs(rate):.4g}: {what}")
        return lambda count: rate


class NoClipping(OnPackage):
    """Transformations that clip gradients hand them on."""

    def imported(self) -> None:
        optax: Any = sys.modules["optax"]

        def make(original: Callable[..., Any]) -> Callable[..., Any]:
            def unclipped(*args: Any, **kwargs: Any) -> Any:
                self.ledger.held()
                return optax.identity()

            return unclipped

        for name in CLIPS:
            self.replace(name, make)


class NoDecay(OnPackage):
    """Weights are decayed by 0; the state of the transformation keeps its form."""

    def imported(self) -> None:
        self.replace("add_decayed_weights", self._make)
        self.ledger.unseen = "no weight decay of optax was made: there is none to leave out"

    def _make(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def add_decayed_weights(weight_decay: Any = 0.0, *args: Any, **kwargs: Any) -> Any:
            if isinstance(weight_decay, (int, float)) and weight_decay == 0:
                return original(weight_decay, *args, **kwargs)
            self.ledger.held()
            return original(0.0, *args, **kwargs)

        return add_decayed_weights


class AnotherOptimizer(OnPackage):
    """The factories make one algorithm, at the rate that they are given."""

    def imported(self) -> None:
        optax: Any = sys.modules["optax"]
        name = str(self.option("name"))
        target = getattr(optax, "sgd" if name == "momentum" else name)
        self._momentum = {"momentum": 0.9} if name == "momentum" else {}
        for factory in FACTORIES:
            if factory != name:
                self.replace(factory, lambda original, t=target, n=name: self._make(original, t, n))  # type: ignore[misc]
        self.ledger.unseen = f"no factory of optax but that of {name} was called"

    def _make(self, original: Callable[..., Any], target: Callable[..., Any], name: str) -> Callable[..., Any]:
        times = float(self.option("times", 1.0))

        def factory(learning_rate: Any = None, *args: Any, **kwargs: Any) -> Any:
            if learning_rate is None:
                self.ledger.cannot(f"{original.__name__} was given no learning rate")
                return original(learning_rate, *args, **kwargs)
            if name == "momentum" and original.__name__ == "sgd" and kwargs.get("momentum") == 0.9:
                return original(learning_rate, *args, **kwargs)
            rate = (lambda count: learning_rate(count) * times) if callable(learning_rate) else learning_rate * times
            decay = {k: kwargs[k] for k in ("weight_decay", "mask") if k in kwargs and name == "adamw"}
            self.ledger.held()
            return target(rate, **self._momentum, **decay)

        return factory


class NoAverage(OnPackage):
    """Averages take the new values whole."""

    def imported(self) -> None:
        self.replace("incremental_update", self._make)

    def _make(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def incremental_update(new_tensors: Any, old_tensors: Any, step_size: Any) -> Any:
            self.ledger.held()
            return original(new_tensors, old_tensors, 1.0)

        return incremental_update
