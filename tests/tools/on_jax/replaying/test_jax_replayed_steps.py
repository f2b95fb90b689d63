"""A JAX step that goes wrong is run again with one change at a time, in the process and from disk."""

from __future__ import annotations

import contextlib
import json
import stat
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import jax_steps
import numpy as np
import optax
import pytest
from jax_steps import Program

from traindx_tools.finding import Finding, Severity
from traindx_tools.live.reading import read_folder
from traindx_tools.live.session import close_session, open_session
from traindx_tools.live.settings import Settings
from traindx_tools.live.step_file import RESULT, steps_in
from traindx_tools.on_jax import internals
from traindx_tools.on_jax.attachment import attach, detach
from traindx_tools.on_jax.replaying.again import Conditions, Took, function_of


def watched(run: Callable[[], Any], folder: Path, *probes: str, **options: Any) -> tuple[Any, tuple[Finding, ...]]:
    """What a run gives with these probes, and what they say."""
    attach(open_session(Settings(str(folder), probes, options={"step_seconds": 600.0, **options})))
    try:
        end = run()
    finally:
        close_session()
        detach()
    return end, read_folder(folder).findings


def replayed(step: Path, run: Callable[[], Any], folder: Path) -> dict[str, Any]:
    """What comes of a stored step in another start of a program."""
    folder.mkdir()
    watched(run, folder, "stored-step", step_file=str(step))
    told: dict[str, Any] = json.loads((folder / RESULT).read_text())
    return told


def table(told: dict[str, Any]) -> dict[str, str]:
    return {t["change"]: t["word"] for t in told["tried"]}


@dataclass(frozen=True)
class Case:
    """What is to be found."""

    run: Program
    kind: str
    at: str
    removes: tuple[str, ...]
    stays: tuple[str, ...] = ()
    untried: tuple[str, ...] = ()


CASES = (
    Case(jax_steps.bad_row, "loss", "pass", ("rows-left-out", "inputs-zeroed"), ("float64", "no-jit", "other-key")),
    Case(jax_steps.bad_row_donated, "loss", "pass", ("rows-left-out",), ("float64",)),
    Case(jax_steps.outlying_row, "loss-jump", "pass", ("rows-left-out",), ("float64", "no-jit")),
    Case(jax_steps.high_rate, "loss-jump", "update", ("learning-rate:times=0.1",), (), ("float32",)),
    Case(jax_steps.injected_rate, "loss-jump", "update", ("learning-rate:times=0.1",)),
    Case(jax_steps.half_overflow, "loss", "pass", ("float32", "float64"), ("no-jit",)),
    Case(jax_steps.wrong_state, "loss-jump", "update", ("fresh-state",), ("float64",)),
    Case(jax_steps.outside_update, "loss-jump", "update", ("learning-rate:times=0.1",), (), ("float64", "no-jit")),
    Case(jax_steps.dead_moments, "parameters", "update", (), ("learning-rate:times=0.1",)),
    Case(jax_steps.flax_linen, "loss", "pass", ("rows-left-out", "inputs-zeroed"), ("float64",)),
    Case(jax_steps.equinox_module, "loss", "pass", ("rows-left-out", "inputs-zeroed"), ("float64",)),
)
NEEDS = {"flax_linen": "flax", "equinox_module": "equinox"}


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.run.__name__)
def test_the_change_that_undoes_the_fault_takes_it_away(case: Case, tmp_path: Path) -> None:
    """In the process and, bit for bit the same, from disk; the run's own results stay as they are."""
    pytest.importorskip(NEEDS.get(case.run.__name__, "jax"))
    bare = case.run()
    end, found = watched(case.run, tmp_path / "run", "snapshot")
    assert end == bare
    step = next(s for s in steps_in(tmp_path / "run") if f"-{case.kind}.step" in s.name)
    before = json.loads((tmp_path / "run/replays" / step.name.replace(".step.npz", ".json")).read_text())
    words = table(before)
    assert before["at"] == case.at
    assert {c for c in case.removes if words.get(c) != "removes"} == set()
    assert {c for c in case.stays if words.get(c) not in ("no-effect", "moves")} == set()
    assert {c for c in case.untried if words.get(c) != "untried"} == set()
    assert any(f.rule == ("X301" if case.removes else "X302") for f in found)

    told = replayed(step, case.run, tmp_path / "again")
    assert told["why"] == ""
    assert [(t["change"], t["word"], json.dumps(t["measured"])) for t in told["study"]["tried"]] == [
        (t["change"], t["word"], json.dumps(t["measured"])) for t in before["tried"]]
    assert told["study"]["exact"] == before["exact"]


@pytest.mark.slow
def test_nothing_is_said_of_a_healthy_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bare = jax_steps.healthy()
    end, found = watched(jax_steps.healthy, tmp_path / "run", "snapshot")
    assert end == bare
    assert [f for f in found if f.severity is not Severity.INFO] == []
    assert steps_in(tmp_path / "run") == []
    assert capsys.readouterr().err == ""


@pytest.mark.slow
def test_another_program_is_said_to_be_another_one(tmp_path: Path) -> None:
    watched(jax_steps.bad_row, tmp_path / "run", "snapshot")
    (step,) = steps_in(tmp_path / "run")
    assert stat.S_IMODE(step.stat().st_mode) == 0o600

    def wider() -> list[str]:
        p = jax_steps.parameters()
        p["a"] = {"w": jnp.ones((8, 16)), "b": jnp.zeros(16)}
        p["b"]["w"] = jnp.ones((16, 1))
        return jax_steps.loop(optax.adam(1e-3), params=p, steps=3)

    told = replayed(step, wider, tmp_path / "again")
    assert told["why"].startswith("the program ended before the step could be put in: the program's function has "
                                  "other inputs: params['a']['b'] is float32[16] and was float32[32]")


@pytest.mark.slow
def test_what_a_function_closes_over_is_told_where_it_changed(tmp_path: Path) -> None:
    """The trace holds the value of its start: another start of the program, another value."""
    scales = iter((3.0, 1.0))

    def closing() -> list[str]:
        scale = jnp.full((8,), next(scales))
        x, y = jax_steps.data()
        x[203, 3], y[410] = 0.0, 3_000.0
        return jax_steps.loop(optax.sgd(1e-3), x=x, y=y, forward=lambda p, x: jax_steps.network(p, x * scale))

    watched(closing, tmp_path / "run", "snapshot")
    told = replayed(steps_in(tmp_path / "run")[0], closing, tmp_path / "again")
    assert "when it is run again, and was" in told["why"]
    assert "values that the function closes over are those of this start" in told["why"]


# ---- a jaxpr in another precision


def again(function: Callable[..., Any], *args: Any, **conditions: Any) -> tuple[list[Any], int]:
    took = Took()
    jaxpr = jax.make_jaxpr(function)(*args)
    with internals.wide() if conditions.get("precision") == "float64" else contextlib.nullcontext():
        outputs, _ = function_of(jaxpr, Conditions(**conditions), took)(*args)
    return outputs, took.count


@pytest.mark.slow
def test_loops_and_branches_are_raised_with_what_is_in_them() -> None:
    def function(x: Any) -> Any:
        def step(carry: Any, row: Any) -> Any:
            carry = carry * jnp.float16(2.0) + jnp.sum(row)
            return carry, jax.lax.cond(carry > 1, lambda c: c / 3, lambda c: c * 3, carry)

        last, rows = jax.lax.scan(step, jnp.float16(1.0), x)
        return jax.lax.while_loop(lambda v: v < 100, lambda v: v * v + 1, last), rows

    x = jnp.linspace(0.1, 1.0, 12, dtype=jnp.float16).reshape(4, 3)
    (last, rows), took = again(function, x, precision="float32")
    assert took > 0
    assert (last.dtype, rows.dtype) == (jnp.float32, jnp.float32)
    plain = again(function, x)[0]
    assert float(last) == pytest.approx(float(plain[0]), rel=1e-2)


@pytest.mark.slow
def test_the_bits_of_random_numbers_stay_what_they_are() -> None:
    def function(key: Any) -> Any:
        return jax.random.normal(key, (64,)), jax.random.randint(key, (4,), 0, 9)

    key = jax.random.key(3)
    (values, whole), took = again(function, key, precision="float64")
    assert took > 0
    assert np.allclose(np.asarray(values), np.asarray(function(key)[0]), rtol=1e-5)
    assert np.array_equal(np.asarray(whole), np.asarray(function(key)[1]))


def test_nothing_of_less_precision_is_nothing_to_take_hold_of() -> None:
    outputs, took = again(lambda x: jnp.sin(x) * 2, jnp.arange(3.0), precision="float32")
    assert took == 0
    assert np.array_equal(np.asarray(outputs[0]), np.asarray(jnp.sin(jnp.arange(3.0)) * 2))


@pytest.mark.slow
def test_operation_by_operation_is_the_same_function() -> None:
    def function(x: Any) -> Any:
        return jnp.sum(jax.nn.softmax(x) ** 2)

    x = jnp.linspace(-3, 3, 10)
    assert float(again(function, x, compiled=False)[0][0]) == pytest.approx(float(function(x)), rel=1e-6)
