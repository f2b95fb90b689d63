"""Every planted origin in a JAX function is named with its equation, line, path and reason; healthy ones are silent."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent / "planted"))

import jax
import jax.numpy as jnp
from jax_healthy import HEALTHY
from jax_origins import PLANTED, Planted

from traindx_tools.on_jax.nonfinite.origin import find_nonfinite, find_overflows


def test_there_are_enough_of_every_family() -> None:
    assert len(PLANTED) >= 55
    assert {p.family for p in PLANTED} >= {"forward", "half", "gradient", "gradient of gradient", "scan", "while",
                                           "cond", "vmap", "custom", "mask", "integer", "matrix", "optimizer",
                                           "shard_map"}


QUICK = {"log_of_zero", "cast_to_half", "where_log", "second_derivative_of_sqrt", "scan_backward_where",
         "while_doubling", "cond_in_scan", "per_example_gradient", "custom_vjp_backward", "custom_jvp_rule",
         "nested_jit", "shard_map_forward", "softmax_of_masked_row", "pairs_overflow", "adam_in_half"}  # fmt: skip
CASES = [p if p.name in QUICK else pytest.param(p, marks=pytest.mark.slow) for p in PLANTED]


@pytest.mark.slow
@pytest.mark.parametrize("case", CASES, ids=lambda p: p.name)
def test_the_equation_and_the_line_are_named(case: Planted) -> None:
    found = find_nonfinite(*case.make())
    assert found is not None
    told = found.measured
    assert (told["op"], told["line"], told["reason"]) == (case.op, case.line, case.reason)
    assert Path(str(told["file"])).name == case.file
    assert set(case.path) <= set(told["path"] or ())  # type: ignore[arg-type]


HEALTHY_CASES = [m if i < 5 else pytest.param(m, marks=pytest.mark.slow) for i, m in enumerate(HEALTHY)]


@pytest.mark.slow
@pytest.mark.parametrize("make", HEALTHY_CASES, ids=lambda m: m.__name__)
def test_healthy_functions_are_silent(make: Callable[[], tuple[Any, ...]]) -> None:
    assert find_nonfinite(*make()) is None


def _line(mark: str) -> int:
    text = (Path(__file__).parent / "planted" / "jax_networks.py").read_text(encoding="utf-8")
    return next(i for i, x in enumerate(text.splitlines(), 1) if f"# <- {mark}" in x)


@pytest.mark.slow
def test_flax_linen_is_silent_when_healthy_and_named_when_not() -> None:
    pytest.importorskip("flax")
    from jax_networks import linen_step

    assert find_nonfinite(*linen_step()) is None
    found = find_nonfinite(*linen_step(epsilon=0.0, zero=True))
    assert found is not None
    assert (found.where.line, found.measured["reason"]) == (_line("block"), "zero-by-zero")


@pytest.mark.slow
def test_flax_nnx_is_silent_when_healthy_and_named_when_not() -> None:
    pytest.importorskip("flax.nnx")
    from jax_networks import nnx_step

    assert find_nonfinite(*nnx_step()) is None
    found = find_nonfinite(*nnx_step(broken=True))
    assert found is not None
    assert (found.where.line, found.measured["reason"]) == (_line("nnx"), "zero-by-zero")


@pytest.mark.slow
def test_an_argument_that_is_nan_already_is_named_by_its_path() -> None:
    def loss(params: Any, batch: Any) -> Any:
        return (params["w"] * batch["x"]).sum()

    batch = {"x": jnp.array([1.0, jnp.nan])}
    found = find_nonfinite(jax.jit(jax.value_and_grad(loss)), {"w": jnp.ones(2)}, batch)
    assert found is not None
    assert found.measured["reason"] == "data"
    assert "batch['x']" in found.statement
    state = find_nonfinite(loss, {"w": jnp.array([1.0, jnp.nan])}, {"x": jnp.ones(2)})
    assert state is not None
    assert state.measured["reason"] == "parameter"


@pytest.mark.slow
def test_the_example_of_a_vmap_is_named() -> None:
    case = next(p for p in PLANTED if p.name == "vmap_forward")
    found = find_nonfinite(*case.make())
    assert found is not None
    assert found.measured["index"] == (2,)
    assert "first at index (2,)" in found.statement


@pytest.mark.slow
def test_the_device_of_a_shard_map_is_named() -> None:
    found = find_nonfinite(*next(p for p in PLANTED if p.name == "shard_map_forward").make())
    assert found is not None
    last = jax.device_count() - 1
    assert f"shard_map device data {last}" in found.measured["path"]  # type: ignore[operator]
    assert found.measured["index"] == (4 // (last + 1) - 1,)


@pytest.mark.slow
def test_integers_that_wrap_are_told_also_where_everything_is_finite() -> None:
    def tokens(batches: Any) -> Any:
        return (batches * 65536).astype(jnp.float32).sum()

    found = find_overflows(tokens, jnp.arange(40_000, dtype=jnp.int32))
    assert [(f.rule, f.measured["op"], f.measured["exact"]) for f in found] == [("J502", "mul", 39_999 * 65536)]
    assert find_nonfinite(tokens, jnp.arange(40_000, dtype=jnp.int32)) is None
    assert find_overflows(tokens, jnp.arange(30_000, dtype=jnp.int32)) == []


def test_python_numbers_that_decide_about_shapes_stay_numbers() -> None:
    def f(x: Any, n: int) -> Any:
        return jnp.log(jnp.zeros(n)).sum() + x.sum()

    found = find_nonfinite(f, jnp.ones(2), 3)
    assert found is not None
    assert found.measured["op"] == "log"


def test_an_error_of_the_function_is_its_own() -> None:
    with pytest.raises(TypeError):
        find_nonfinite(lambda x: jnp.dot(x, jnp.ones((9, 9))), jnp.ones(3))
