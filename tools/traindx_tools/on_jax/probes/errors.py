"""Always on: the error that ends a program, where JAX's words for it need the user's line and leaves."""

from __future__ import annotations

from collections.abc import Iterable

from traindx_tools.finding import Finding
from traindx_tools.on_jax.probe import JaxProbe
from traindx_tools.on_jax.rules import j402_mapped_axes, j501_carry_mismatch, j605_donated_buffer

RULES = (j402_mapped_axes, j501_carry_mismatch, j605_donated_buffer)


class Errors(JaxProbe):
    """Explains carry mismatches leaf by leaf, axes of vmap, donated buffers."""

    name = "jax-errors"
    always_on = True

    def failed(self, error: BaseException) -> Iterable[Finding]:
        """What the error says."""
        for rule in RULES:
            yield from rule.check(error)
