"""Leaves of a `multi_transform` of optax that `set_to_zero` holds are trained."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.on_jax.package import OnPackage

NAMES = ("partition", "multi_transform")


class Thawed(OnPackage):
    """They get the first other transformation that the same call names, with a state of their own."""

    def imported(self) -> None:
        self.ledger.unseen = "no multi_transform of optax has a set_to_zero: nothing is held by one"
        if self.option("module") not in (None, "*"):
            self.ledger.cannot("optax knows labels and no modules: module=* thaws all that is held")
            return
        self._holding: list[Any] = []
        self.replace("set_to_zero", self._noted)
        optax: Any = sys.modules["optax"]
        functions = [getattr(optax, n, None) for n in NAMES]
        for place, name in enumerate(NAMES):
            if functions[place] is not None and functions[place] not in functions[:place]:
                self.replace(name, self._thawing)

    def _noted(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def set_to_zero() -> Any:
            made = original()
            self._holding.append(made)
            return made

        return set_to_zero

    def _thawing(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def multi_transform(transforms: Any, *args: Any, **kwargs: Any) -> Any:
            given = self.guarded(self._thawed, transforms)
            return original(transforms if given is None else given, *args, **kwargs)

        return multi_transform

    def _thawed(self, transforms: Any) -> dict[Any, Any] | None:
        held = [label for label, made in transforms.items() if any(made is h for h in self._holding)]
        others = [made for label, made in transforms.items() if label not in held]
        if not held or not others:
            return None
        self.ledger.held()
        return {label: others[0] if label in held else made for label, made in transforms.items()}
