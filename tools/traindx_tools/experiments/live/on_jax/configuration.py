"""Settings of JAX itself, made after its import, and looked at again at the end."""

from __future__ import annotations

import os
from typing import Any

from traindx_tools.experiments.live.intervening import Intervening


def _config() -> Any:
    import jax

    return jax.config


class _Setting(Intervening):
    """One setting at one value for the whole run."""

    name = ""
    value: Any = True

    def attach(self) -> None:
        config = _config()
        before = getattr(config, self.name)
        if before == self.value:
            self.ledger.not_here(f"{self.name} is {self.value} already")
            return
        config.update(self.name, self.value)
        self.patches.later(lambda: config.update(self.name, before))
        self.ledger.held(self.name)

    def finish(self) -> None:
        now = getattr(_config(), self.name)
        if now != self.value:
            self.ledger.cannot(f"the program set {self.name} to {now} itself")


class Double(_Setting):
    """Floating arrays that name no type are float64."""

    name = "jax_enable_x64"


class NoJit(_Setting):
    """Functions run operation by operation."""

    name = "jax_disable_jit"


class StopAtNan(_Setting):
    """A result with a NaN is an error."""

    name = "jax_debug_nans"


class FullProducts(_Setting):
    """Matrix products of float32 use float32 throughout."""

    name = "jax_default_matmul_precision"
    value = "highest"


class Deterministic(Intervening):
    """The flag of XLA was set before the import; here it is looked whether it stands."""

    def attach(self) -> None:
        if "--xla_gpu_deterministic_ops=true" in os.environ.get("XLA_FLAGS", ""):
            self.ledger.held("XLA_FLAGS")
        else:
            self.ledger.unseen = "JAX was imported before XLA_FLAGS could be set"
