"""Transformations of functions that are left out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening


class NoRemat(Intervening):
    """`jax.checkpoint` and `jax.remat` give back the function."""

    def attach(self) -> None:
        import jax

        for name in ("checkpoint", "remat"):
            self.patches.replace(jax, name, self._plain)
        module = getattr(jax, "ad_checkpoint", None)
        if hasattr(module, "checkpoint"):  # JAX 0.10 has the module without it
            self.patches.replace(module, "checkpoint", self._plain)
        self.ledger.unseen = "neither jax.checkpoint nor jax.remat was called"

    def _plain(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def checkpoint(fun: Any = None, **options: Any) -> Any:
            if fun is None:
                return lambda given: checkpoint(given, **options)
            self.ledger.held()
            return fun

        return checkpoint
