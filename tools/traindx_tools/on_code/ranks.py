"""Conditions on the rank: code that runs in some processes of a distributed run only."""

from __future__ import annotations

from traindx_tools.on_code.containers import depends_on_rank
from traindx_tools.on_code.values import Operation, Symbol, Value, number, parts


def tests_rank(test: Value) -> bool:
    """Whether a condition holds in some processes only."""
    if isinstance(test, Operation) and test.op == "compare":
        if any((number(o) or 0.0) < 0 for o in test.operands):
            return False  # rank > -1: whether the run is distributed at all
        return depends_on_rank(test) and not any(isinstance(p, Symbol) and "world_size" in p.name for p in parts(test))
    return isinstance(test, Symbol) and test.name in (
        "is_main_process",
        "is_local_main_process",
        "is_global_zero",
        "is_world_process_zero",
        "is_last_process",
    )
