"""A step of many parameters costs what they cost: what the probes do beside it grows with their number, not faster."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
from watching import watched

from traindx_tools.live.settings import Settings


def python_calls(count: int, folder: Path) -> int:
    """Calls of our own functions while a step of so many parameters is watched: no clock is asked."""
    seen: Counter[str] = Counter()

    def counting(frame: Any, event: str, _: Any) -> None:
        if event == "call" and "traindx_tools" in frame.f_code.co_filename:
            seen["calls"] += 1

    def program() -> None:
        p = {f"w{i}": jnp.full(3, float(i)) for i in range(count)}

        @jax.jit
        def step(p: Any, x: Any) -> Any:
            g = jax.grad(lambda p: x * sum(jnp.sum(v**2) for v in p.values()))(p)
            return jax.tree_util.tree_map(lambda a, b: a - 0.001 * b, p, g)

        for _ in range(4):
            p = step(p, 1.0)
        sys.setprofile(None)

    sys.setprofile(counting)
    try:
        assert watched(program, Settings(str(folder), ("always",))) == ()
    finally:
        sys.setprofile(None)
    return seen["calls"]


@pytest.mark.slow
def test_four_times_the_parameters_is_not_much_more_than_four_times_the_work(tmp_path: Path) -> None:
    few, many = python_calls(30, tmp_path / "few"), python_calls(120, tmp_path / "many")
    assert many < 6 * few
