"""Seeds of Python and NumPy, moved by as much wherever they are set; and set where nobody does."""

from __future__ import annotations

import operator
import random
import sys
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.live.import_hook import after_import

UNSEEDED = 20_240
"""What is set where the program sets nothing, before `by` is added."""


class Seeds(Intervening):
    """`random` at once, `numpy.random` once it is imported."""

    def attach(self) -> None:
        self.by = int(self.option("by", 1))
        random.seed(UNSEEDED + self.by)
        self.ledger.held("the start of the process, and each call that sets a seed")
        self.patches.replace(random, "seed", self._moved)
        self.patches.replace(random.Random, "seed", self._of_instances)
        after_import("numpy", self._numpy)

    def _numpy(self) -> None:
        import numpy as np

        np.random.seed(UNSEEDED + self.by)
        self.patches.replace(np.random, "seed", self._moved)
        self.patches.replace(np.random, "default_rng", self._moved)
        for name in ("RandomState", "SeedSequence", "PCG64", "PCG64DXSM", "MT19937", "Philox", "SFC64"):
            if hasattr(np.random, name):
                self.patches.later(_replace_class(np.random, name, self))

    def _moved(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def seeded(*args: Any, **kwargs: Any) -> Any:
            return original(*self.moved(args, kwargs), **kwargs)

        return seeded

    def _of_instances(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def seed(generator: random.Random, *args: Any, **kwargs: Any) -> Any:
            return original(generator, *self.moved(args, kwargs), **kwargs)

        return seed

    def moved(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """The arguments with the seed moved, where it is a number. `kwargs` is changed in place."""
        name = next((k for k in ("seed", "a", "x", "entropy") if k in kwargs), None)
        value = args[0] if args else kwargs.get(name) if name else None
        new = moved_seed(value, self.by)
        if new is value:
            return args
        self.ledger.held()
        if args:
            return (new, *args[1:])
        kwargs[str(name)] = new
        return args


def moved_seed(value: Any, by: int) -> Any:
    """A seed so many further on, within 32 bits where it was; anything else as it is (None asks for chance).

    Traced numbers of JAX have no value yet: they too come back as they are.
    """
    if isinstance(value, bool):
        return value
    if not isinstance(value, int) and not (hasattr(value, "__index__") and getattr(value, "ndim", 0) == 0):
        return value
    try:
        number = operator.index(value)
    except TypeError:
        return value
    return (number + by) % 2**32 if 0 <= number < 2**32 else number + by


def _replace_class(owner: Any, name: str, seeds: Seeds) -> Callable[[], None]:
    """The class of generators becomes one that moves its seed; what is one of the original is one of it too."""
    original = getattr(owner, name)

    class _Kind(type(original)):  # type: ignore[misc]
        def __instancecheck__(cls, instance: Any) -> bool:
            return isinstance(instance, original)

        def __subclasscheck__(cls, subclass: type) -> bool:
            return issubclass(subclass, original)

        def __call__(cls, *args: Any, **kwargs: Any) -> Any:
            if cls is ours:
                return original(*seeds.moved(args, kwargs), **kwargs)
            return super().__call__(*args, **kwargs)

    ours = _Kind(name, (original,), {"__module__": original.__module__, "__doc__": original.__doc__})
    setattr(owner, name, ours)
    return lambda: setattr(owner, name, original) if getattr(owner, name) is ours else None


class Placebo(Intervening):
    """Takes hold at once and changes nothing."""

    def attach(self) -> None:
        self.ledger.held(sys.argv[0] if sys.argv and sys.argv[0] else "the process")
