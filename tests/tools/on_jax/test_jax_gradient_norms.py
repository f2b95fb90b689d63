"""Norms of gradients, leaf by leaf: from a tree, and measured in a run beside what the jaxpr says."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from watching import watched

from traindx_tools.errors import BadUsage
from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.gradient import gradient_paths
from traindx_tools.on_jax.paths.norms import gradient_norms

P = {"enc": jnp.full((4, 3), 0.3), "dec": jnp.full((3, 4), 0.2)}
X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), jnp.float32)
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def cut(p: Any, x: Any) -> Any:
    q = lax.stop_gradient(jnp.round(x @ p["enc"]))  # <- cut
    return ((q @ p["dec"] - x) ** 2).mean()


def whole(p: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ p["enc"]) @ p["dec"] - x) ** 2).mean()


def frozen_on_purpose(p: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ lax.stop_gradient(p["enc"])) @ p["dec"] - x) ** 2).mean()


def sometimes(p: Any, x: Any) -> Any:
    h = lax.cond(x[0, 0] > 0, lambda w: x @ w, lambda w: jnp.ones((8, 3)), p["enc"])
    return ((h @ p["dec"] - x) ** 2).mean()


def run(loss: Any, folder: Path, steps: int = 20) -> list[Finding]:
    """Gradients are jitted, the update is not."""
    gradient = jax.jit(lambda p, x: jax.value_and_grad(loss)(p, x))

    def program() -> None:
        compiled, p = jax.jit(gradient.__wrapped__), P
        for i in range(steps):
            _, g = compiled(p, X * (-1.0) ** i)
            p = jax.tree_util.tree_map(lambda a, b: a - 0.01 * b, p, g)

    return list(watched(program, Settings(str(folder), ("always",))))


def tables(folder: Path) -> list[dict[str, Any]]:
    """The norms that a run recorded."""
    told = [json.loads(text) for file in folder.rglob("*.jsonl") for text in file.read_text().splitlines()]
    return [t for t in told if "gradient_norms" in t.values()]


@pytest.mark.slow
def test_norms_have_the_paths_and_values_of_the_leaves() -> None:
    g = jax.grad(whole)(P, X)
    found = gradient_norms({**g, "half": jnp.full(4, 3.0, jnp.bfloat16), "step": jnp.int32(3)})
    assert list(found) == ["['dec']", "['enc']", "['half']"]
    assert found["['half']"] == pytest.approx(6.0)
    assert found["['enc']"] == pytest.approx(float(jnp.linalg.norm(g["enc"])), rel=1e-5)


@pytest.mark.parametrize("grads", [{}, {"a": jnp.int32(1)}, None])
def test_a_tree_without_gradients_is_refused(grads: Any) -> None:
    with pytest.raises(BadUsage, match="tree of gradients"):
        gradient_norms(grads)


def test_inside_a_trace_it_says_what_to_do() -> None:
    with pytest.raises(BadUsage, match="inside jit"):
        jax.jit(lambda g: gradient_norms(g)["value"])(jnp.ones(3))


@pytest.mark.slow
def test_norms_stand_beside_the_paths_of_a_function() -> None:
    found = gradient_paths(cut, P, X, gradients=jax.grad(cut)(P, X))
    assert [(f.rule, f.measured["norms"]) for f in found] == [("J301", (("p['enc']", 0.0),))]
    assert found[0].measured["largest_norm"] > 0
    assert "measured norm of their gradient is at most 0" in found[0].statement
    assert "norms" not in gradient_paths(cut, P, X)[0].measured
    with pytest.raises(BadUsage, match="structure of argument 0"):
        gradient_paths(cut, P, X, gradients=jnp.ones(3))


@pytest.mark.slow
def test_a_run_measures_the_parameters_that_are_cut_off(tmp_path: Path) -> None:
    found = [f for f in run(cut, tmp_path) if f.severity.rank >= 1]
    assert [(f.rule, f.where.line, f.measured["norms"]) for f in found] == [("J301", line("cut"), (("p['enc']", 0.0),))]
    assert found[0].measured["largest_norm"] > 0


@pytest.mark.slow
def test_a_branch_is_remarked_with_the_calls_in_which_it_was_not_taken(tmp_path: Path) -> None:
    found = run(sometimes, tmp_path)
    assert [(f.rule, f.severity.value) for f in found] == [("J302", "info")]
    zeros = found[0].measured["zero_calls"]
    assert isinstance(zeros, int)
    assert 0 < zeros < 6


@pytest.mark.slow
@pytest.mark.parametrize("loss", [whole, frozen_on_purpose], ids=lambda f: f.__name__)
def test_losses_that_train_what_they_should_are_silent(loss: Any, tmp_path: Path) -> None:
    assert run(loss, tmp_path) == []


def test_a_few_calls_prove_nothing(tmp_path: Path) -> None:
    assert run(cut, tmp_path, steps=6) == []


@pytest.mark.parametrize("kind", ["grad", "value_and_grad"])
def test_norms_of_eager_gradients_are_recorded(kind: str, tmp_path: Path) -> None:
    def program() -> None:
        for _ in range(4):
            getattr(jax, kind)(whole)(P, X)
        gradient = getattr(jax, kind)(whole)
        for _ in range(4):
            gradient(P, X)

    assert watched(program, Settings(str(tmp_path), ("always",))) == ()
    told = tables(tmp_path)
    assert [sorted(t["norms"]) for t in told] == [["p['dec']", "p['enc']"]]
    assert told[0]["norms"]["p['enc']"] == pytest.approx(gradient_norms(jax.grad(whole)(P, X))["['enc']"], rel=1e-5)


@pytest.mark.slow
@pytest.mark.parametrize(("argnums", "names"), [(1, [["p['dec']", "p['enc']"]]), ((0, 1), [])])
def test_the_argument_that_is_differentiated_gives_the_names(argnums: Any, names: Any, tmp_path: Path) -> None:
    def program() -> None:
        gradient = jax.grad(lambda x, p: whole(p, x), argnums=argnums)
        for _ in range(4):
            gradient(X, P)

    assert watched(program, Settings(str(tmp_path), ("always",))) == ()
    assert [sorted(t["norms"]) for t in tables(tmp_path)] == names
