"""Keys of JAX that are made from a number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening
from traindx_tools.experiments.live.on_python.seeds import moved_seed


class Seeds(Intervening):
    """`jax.random.key` and `PRNGKey` get a seed so many further on."""

    def attach(self) -> None:
        import jax

        self._by = int(self.option("by", 1))
        for name in ("key", "PRNGKey"):
            if hasattr(jax.random, name):
                self.patches.replace(jax.random, name, self._moved)

    def _moved(self, original: Callable[..., Any]) -> Callable[..., Any]:
        def key(seed: Any, *args: Any, **kwargs: Any) -> Any:
            new = moved_seed(seed, self._by)
            if new is seed and hasattr(seed, "dtype"):  # a traced or a device's number: the sum is one, too
                new = seed + self._by
            if new is not seed:
                self.ledger.held()
            return original(new, *args, **kwargs)

        return key
