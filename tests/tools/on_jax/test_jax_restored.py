"""J711: an entry of a checkpoint that the next functions are not given; complete and deliberate restores are silent."""

from __future__ import annotations

import io
import pickle
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("flax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from flax import serialization
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.stale.restored import Restored

RNG = np.random.default_rng(0)
X = RNG.normal(size=(6, 5)).astype(np.float32)


def fresh(seed: int) -> dict[str, Any]:
    rng = np.random.default_rng(seed)
    params = {f"Dense_{k}": {"kernel": jnp.asarray(rng.normal(size=(5, 5)), jnp.float32)} for k in range(3)}
    return {"params": params, "batch_stats": {"Norm_0": {"mean": jnp.zeros(5), "var": jnp.ones(5)}},
            "opt_state": {"mu": jax.tree_util.tree_map(jnp.zeros_like, params)}, "step": 0}


def trained() -> dict[str, Any]:
    state = fresh(1)
    state["batch_stats"]["Norm_0"] = {"mean": jnp.arange(5.0) + 3, "var": jnp.arange(5.0) * 2 + 1}
    state["opt_state"]["mu"] = jax.tree_util.tree_map(lambda p: 0.1 * p + 1, state["params"])
    return state | {"step": 700}




def told(tmp_path: Path, restore: Any, *, read: str = "flax") -> list[Finding]:
    blob = serialization.msgpack_serialize(jax.device_get(trained()))
    pickled = pickle.dumps(jax.device_get(trained()))

    def program() -> None:
        def loss(params: Any, stats: Any, x: Any) -> Any:
            h = x
            for layer in params.values():
                h = jnp.tanh((h - stats["Norm_0"]["mean"]) @ layer["kernel"])
            return (h ** 2).mean()

        step = jax.jit(lambda s, x: {**s, "params": jax.tree_util.tree_map(
            lambda p, g: p - 0.1 * g, s["params"], jax.grad(loss)(s["params"], s["batch_stats"], x))})
        tree = serialization.msgpack_restore(blob) if read == "flax" else pickle.load(io.BytesIO(pickled))
        state = restore(fresh(2), tree)
        for _ in range(4):
            state = step(state, X)

    return [f for f in watched(program, Settings(str(tmp_path), ("restored",))) if f.rule == "J711"]


@pytest.mark.parametrize("read", ["flax", "pickle"])
def test_statistics_that_are_left_on_the_way(read: str, tmp_path: Path) -> None:
    (finding,) = told(tmp_path, lambda state, tree: state | {k: tree[k] for k in ("params", "opt_state", "step")},
                      read=read)
    assert (finding.severity.value, finding.bearing.value) == ("high", "cause")
    assert (finding.measured["target"], finding.measured["arrays"]) == ("batch_stats", 2)
    assert Path(str(finding.where.file)).name == Path(__file__).name


def test_moments_that_are_left_are_often_meant(tmp_path: Path) -> None:
    (finding,) = told(tmp_path, lambda state, tree: state | {k: tree[k] for k in ("params", "batch_stats")})
    assert (finding.severity.value, finding.measured["kind"]) == ("low", "per-parameter")


def new_head(state: Any, tree: Any) -> Any:
    params = tree["params"] | {"Dense_2": state["params"]["Dense_2"]}
    return state | {"params": params, "batch_stats": tree["batch_stats"], "opt_state": tree["opt_state"]}


@pytest.mark.parametrize("restore", [lambda state, tree: tree, new_head, lambda state, tree: state],
                         ids=["all of it", "a new head", "nothing: read for something else"])
def test_what_is_whole_or_meant(restore: Any, tmp_path: Path) -> None:
    assert told(tmp_path, restore) == []


def test_broken_inputs_and_patches_that_are_taken_out(tmp_path: Path) -> None:
    before = pickle.load, serialization.msgpack_restore
    assert told(tmp_path, lambda state, tree: tree) == []
    assert (pickle.load, serialization.msgpack_restore) == before
    seen = Restored()
    for tree in ({}, [], None, "text", {"a": np.zeros(0)}, {"a": np.full(9, np.nan)}, {"a": object()}):
        seen.read(tree, None)
    assert seen.waiting == []
    seen.read({"a": {k: RNG.normal(size=4).astype(np.float32) for k in "xyz"}}, None)
    for _ in range(80):
        seen.called("f", [], [])
    assert seen.waiting == []
    assert seen.lost == []
