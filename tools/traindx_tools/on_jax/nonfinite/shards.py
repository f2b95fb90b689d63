"""`shard_map`: which equation of its body, on which device, gave the value that is not finite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from traindx_tools.on_jax import internals
from traindx_tools.on_jax.nonfinite.interpret import Interpreter, Level, Marked
from traindx_tools.on_jax.nonfinite.marks import Mark


def shard_map(run: Interpreter, eqn: Any, values: Sequence[Any], marks: Sequence[Mark], level: Level) -> Marked | None:
    """Runs it as a whole."""
    outputs = internals.bind(eqn, values)
    return outputs, run.judge(eqn, values, marks, outputs, level)
