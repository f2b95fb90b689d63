"""J601 of static values that are new again and again, by the time that compiling takes; flags and a few sizes."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings

Program = Callable[[], None]


def told(program: Program, folder: Path) -> list[Finding]:
    return [f for f in watched(program, Settings(str(folder), ("compilations",))) if f.rule == "J601"]


def stairs_of_a_rate() -> None:
    """A plain number that is new now and then: hundreds of calls between."""
    step = jax.jit(lambda x, rate: x * rate, static_argnums=1)
    for i in range(600):
        step(jnp.ones(3), 0.1 * 0.5 ** (i // 100))


def a_short_run_of_new_rates() -> None:
    step = jax.jit(lambda x, rate: x * rate, static_argnums=1)
    for i in range(5):
        step(jnp.ones(3), 0.1 / (1 + i))


def a_flag() -> None:
    step = jax.jit(lambda x, training: x * (2 if training else 1), static_argnums=1)
    for i in range(40):
        step(jnp.ones(3), i % 5 != 0)


def three_sizes_of_windows() -> None:
    step = jax.jit(lambda x, width: x[:width].sum(), static_argnums=1)
    for i in range(40):
        step(jnp.ones(64), 16 << (i % 3))


@pytest.mark.slow
@pytest.mark.parametrize("program", [stairs_of_a_rate, a_short_run_of_new_rates])
def test_static_values_that_are_new_again_and_again_take_the_time(program: Program, tmp_path: Path) -> None:
    (found,) = told(program, tmp_path)
    assert found.measured["kind"] == "static value"
    assert "of the time after the first call" in found.statement


@pytest.mark.slow
@pytest.mark.parametrize("program", [a_flag, three_sizes_of_windows])
def test_a_flag_and_a_few_sizes_are_meant(program: Program, tmp_path: Path) -> None:
    assert told(program, tmp_path) == []
