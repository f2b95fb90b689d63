"""`find_key_reuse`: from a function and its arguments to the keys that it uses more than once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from traindx_tools.finding import Finding
from traindx_tools.on_jax.keys.course import Flow
from traindx_tools.on_jax.keys.flow import follow
from traindx_tools.on_jax.keys.uses import EVERY_ITERATION
from traindx_tools.on_jax.tracing import Traced, trace


def find_key_reuse(fn: Callable[..., Any], *args: Any, **kwargs: Any) -> list[Finding]:
    """Every key that one call of `fn` uses more than once, as findings (J201, J202) with both places.

    `fn` is traced, not run: the arguments may be types (jax.ShapeDtypeStruct). Typed keys (`jax.random.key`) and raw
    ones (`jax.random.PRNGKey`) are followed. Raises what tracing the function raises.
    """
    traced = trace(fn, args, kwargs)
    return reuse_findings(traced, follow(traced))


def reuse_findings(traced: Traced, flow: Flow) -> list[Finding]:
    """The findings for a function whose keys were followed."""
    from traindx_tools.on_jax.rules import j201_key_reused, j202_key_same_every_iteration

    found: list[Finding] = []
    for reuse in flow.reuses():
        rule = j202_key_same_every_iteration if reuse.kind == EVERY_ITERATION else j201_key_reused
        found += rule.check(reuse, traced.name)
    return found
