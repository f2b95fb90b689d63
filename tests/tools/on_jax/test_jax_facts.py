"""What a JAX program is made of and does, as facts: the functions, what they are given, what never changes."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
import optax
from watching import watched

from traindx_tools.live.reading import read_folder
from traindx_tools.live.settings import Settings
from traindx_tools.program_texts.of_run import MOST_CHARACTERS

PROBES = ("jax-program", "jax-losses", "schedules")


def facts(run: Any, folder: Path, probes: tuple[str, ...] = PROBES) -> str:
    watched(run, Settings(str(folder), probes))
    return read_folder(folder).facts


def trained(split: bool = True, calls: int = 80, error: bool = False) -> None:
    optimizer = optax.sgd(optax.linear_schedule(0.1, 0.0, 1000))
    params = {"w": jnp.ones((4, 1)), "b": jnp.zeros(1), "c": jnp.zeros(2)}
    state, key, random = optimizer.init(params), jax.random.PRNGKey(0), np.random.default_rng(0)

    @jax.jit
    def update(params: Any, state: Any, key: Any, batch: Any) -> Any:
        def loss(p: Any) -> Any:
            noise = 0.01 * jax.random.normal(key, (8, 1))
            return optax.l2_loss(batch["x"] @ p["w"] + p["b"] + noise, batch["y"][:, None]).mean()

        value, gradient = jax.value_and_grad(loss)(params)
        updates, state = optimizer.update(gradient, state, params)
        return optax.apply_updates(params, updates), state, value

    for n in range(calls):
        if split:
            key, own = jax.random.split(key)
        else:
            own = key
        x = random.normal(size=(8, 4)).astype(np.float32)
        params, state, _ = update(params, state, own, {"x": x, "y": (n % 3) * np.ones(8, np.int32)})
    if error:
        raise ValueError


def test_functions_arguments_and_the_schedule(tmp_path: Path) -> None:
    told = facts(trained, tmp_path)
    (line,) = [x for x in told.splitlines() if x.startswith("function update")]
    given = "; ".join(x for x in told.splitlines() if x.startswith("update is given"))
    assert "takes gradients, called 80 times" in line
    assert "key: uint32[2]" in given
    assert "batch['x']: float32[8, 4] -" in given
    assert "batch['y']: int32[8] all 0, changes" in given
    assert "params['c']: float32[2] all 0, never changes" in given
    assert "schedule of the updates" in told
    assert "count 80 at the end" in told
    assert "loss l2_loss" in told
    assert str(tmp_path.parent) not in line


def test_a_key_that_never_changes_is_told(tmp_path: Path) -> None:
    told = facts(lambda: trained(split=False), tmp_path).replace("update is given ", "").replace("\n", "; ")
    key = next(part for part in told.split("; ") if part.startswith("key:"))
    assert key.endswith("never changes")


def test_a_program_that_fails_tells_what_it_was(tmp_path: Path) -> None:
    assert facts(lambda: trained(calls=5, error=True), tmp_path).count("called 5 times") == 1


@pytest.mark.parametrize("calls", [1, 2])
def test_two_calls_do_not_tell_what_stays(tmp_path: Path, calls: int) -> None:
    told = facts(lambda: trained(calls=calls), tmp_path)
    assert "change" not in told
    assert ("called once" if calls == 1 else "called 2 times") in told


def test_typed_keys_plain_numbers_donated_and_large_arguments(tmp_path: Path) -> None:
    def run() -> None:
        step = jax.jit(lambda state, key, scale, big: (state * scale + jax.random.normal(key) + big.sum(), 0),
                       donate_argnums=0)
        state, big = jnp.ones(3), jnp.zeros((1100, 1000))
        for n in range(9):
            state, _ = step(state, jax.random.key(n), 0.5, big)

    told = facts(run, tmp_path)
    assert "key: a key, changes" in told
    assert "scale: 0.5, never changes" in told
    assert "big: float32[1100, 1000], never changes" in told
    assert "state: float32[3] all 1, changes" in told


def test_many_functions_and_leaves_stay_within_the_bound(tmp_path: Path) -> None:
    def run() -> None:
        tree = {f"layer{n}": {"w": jnp.ones(2 + n % 3), "b": jnp.ones(1)} for n in range(30)}
        for n in range(16):
            step = jax.jit(lambda t, n=n: jax.tree_util.tree_map(lambda x: x + n, t))
            for _ in range(4):
                step(tree)

    told = facts(run, tmp_path)
    assert len(told) <= MOST_CHARACTERS
    assert "more" in told
