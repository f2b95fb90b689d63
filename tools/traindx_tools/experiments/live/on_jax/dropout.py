"""Dropout layers of flax and equinox hand on what they get."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.live.import_hook import after_import

LAYERS = {"flax.linen": ("deterministic", "rate"), "flax.nnx": ("deterministic", "rate"),
          "equinox.nn": ("inference", "p")}
"""By package: the word that switches dropout off, and the attribute that holds its rate."""


class NoDropout(Intervening):
    """`Dropout.__call__` returns its input where it would drop something."""

    def attach(self) -> None:
        self.ledger.unseen = ("no dropout layer of flax or equinox was on: nothing is dropped, or by the program's own "
                              "code")
        for package in LAYERS:
            after_import(package, lambda p=package: self.guarded(self._imported, p))  # type: ignore[misc]

    def _imported(self, package: str) -> None:
        kind = getattr(sys.modules[package], "Dropout", None)
        if kind is not None:
            word, rate = LAYERS[package]
            self.patches.replace(kind, "__call__", lambda original: self._made(original, word, rate))

    def _made(self, original: Callable[..., Any], word: str, rate: str) -> Callable[..., Any]:
        def call(layer: Any, inputs: Any, *args: Any, **kwargs: Any) -> Any:
            told = kwargs.get(word, args[0] if args and word == "deterministic" else None)
            off = told if told is not None else getattr(layer, word, None)
            if self.ledger.off or off is None or not isinstance(off, bool) or off or not getattr(layer, rate, 0):
                return original(layer, inputs, *args, **kwargs)
            self.ledger.held()
            return inputs

        return call
