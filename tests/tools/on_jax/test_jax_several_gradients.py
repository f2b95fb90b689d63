"""Several gradients in one program: each is recorded under its own name, beside the total."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
pytest.importorskip("optax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
import numpy as np
from jax import lax
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.norms import gradient_norms
from traindx_tools.on_jax.probes.inner_gradients import titles

X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), jnp.float32)
G, D = {"w": jnp.full((4, 4), 0.3)}, {"v": jnp.full((4,), 0.2)}
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
HERE = Path(__file__).stem
Records = list[dict[str, Any]]


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def score(d: Any, x: Any) -> Any:
    return jnp.tanh(x) @ d["v"]


def d_loss(d: Any, g: Any, x: Any) -> Any:
    return jax.nn.softplus(-score(d, x)).mean() + jax.nn.softplus(score(d, x @ g["w"])).mean()


def g_loss(g: Any, d: Any, x: Any) -> Any:
    return jax.nn.softplus(-score(d, x @ g["w"])).mean()


def down(p: Any, g: Any) -> Any:
    return jax.tree_util.tree_map(lambda a, b: a - 0.01 * b, p, g)


def seen(run: Callable[[], None], folder: Path) -> tuple[list[Finding], Records]:
    found = list(watched(run, Settings(str(folder), ("inner-gradients",))))
    return found, [json.loads(t) for f in folder.rglob("*.jsonl") for t in f.read_text().splitlines()]


def metrics(records: Records, step: int) -> dict[str, float]:
    return {k: v for r in records if r.get("kind") == "metrics" and r["step"] == step for k, v in r.items()
            if k.startswith("grad_norm")}


def tables(records: Records) -> dict[str, dict[str, float]]:
    return {r.get("gradient", ""): r["norms"] for r in records if r.get("kind") == "gradient_norms"}


def norm(tree: Any) -> float:
    return float(np.sqrt(sum(v ** 2 for v in gradient_norms(tree).values())))


@pytest.mark.slow
def test_two_networks_in_one_step_are_told_apart(tmp_path: Path) -> None:
    def step(g: Any, d: Any, x: Any) -> Any:
        of_d = jax.grad(d_loss)(d, g, x)
        value, of_g = jax.value_and_grad(g_loss)(g, d, x)
        return down(g, of_g), down(d, of_d), value

    def run() -> None:
        compiled, g, d = jax.jit(step), G, D
        for _ in range(4):
            g, d, _ = compiled(g, d, X)

    found, records = seen(run, tmp_path)
    assert found == []
    g, d, _ = step(G, D, X)
    of_d, of_g = norm(jax.grad(d_loss)(d, g, X)), norm(jax.grad(g_loss)(g, d, X))
    assert metrics(records, 2) == pytest.approx({
        "grad_norm/d_loss": of_d, "grad_norm/g_loss": of_g, "grad_norm": float(np.hypot(of_d, of_g))}, rel=1e-4)
    assert {k: list(v) for k, v in tables(records).items()} == {"d_loss": ["d['v']"], "g_loss": ["g['w']"]}


@pytest.mark.slow
def test_two_jitted_steps_do_not_share_a_series(tmp_path: Path) -> None:
    def run() -> None:
        of_d = jax.jit(lambda d, g, x: down(d, jax.grad(d_loss)(d, g, x)))
        of_g = jax.jit(lambda g, d, x: down(g, jax.grad(g_loss)(g, d, x)))
        g, d = G, D
        for _ in range(4):
            d = of_d(d, g, X)
            g = of_g(g, d, X)

    _, records = seen(run, tmp_path)
    told = metrics(records, 3)
    assert set(told) == {"grad_norm", "grad_norm/d_loss", "grad_norm/g_loss"}
    assert told["grad_norm"] == told["grad_norm/d_loss"] != told["grad_norm/g_loss"]


def task_loss(w: Any, x: Any) -> Any:
    return ((x @ w["w"] - x) ** 2).mean()


def adapted(w: Any, x: Any) -> Any:
    inner = jax.grad(task_loss)(w, x)  # <- inner
    return task_loss(down(w, inner), x)


@pytest.mark.slow
@pytest.mark.parametrize("mapped", [False, True], ids=["one task", "vmap"])
def test_an_inner_and_an_outer_loop_are_told_apart(mapped: bool, tmp_path: Path) -> None:
    def meta(w: Any, xs: Any) -> Any:
        return jax.vmap(adapted, (None, 0))(w, xs).mean() if mapped else adapted(w, xs[0])

    def run() -> None:
        compiled, w = jax.jit(lambda w, xs: down(w, jax.grad(meta)(w, xs))), G
        for _ in range(4):
            w = compiled(w, jnp.stack([X, 2 * X]))

    found, records = seen(run, tmp_path)
    assert found == []
    told = metrics(records, 2)
    assert set(told) == {"grad_norm", "grad_norm/meta", "grad_norm/task_loss"}
    xs, w = jnp.stack([X, 2 * X]), G
    w = down(w, jax.grad(meta)(w, xs))
    assert told["grad_norm/meta"] == pytest.approx(norm(jax.grad(meta)(w, xs)), rel=1e-4)
    inner = [jax.grad(task_loss)(w, x) for x in xs[:2 if mapped else 1]]
    assert told["grad_norm/task_loss"] == pytest.approx(float(np.sqrt(sum(norm(i) ** 2 for i in inner))), rel=1e-4)


def test_one_function_at_two_lines_has_the_lines(tmp_path: Path) -> None:
    def step(w: Any, x: Any) -> Any:
        first = jax.grad(task_loss)(w, x)  # <- first
        second = jax.grad(task_loss)(w, -2 * x)  # <- second
        return down(down(w, first), second)

    def run() -> None:
        compiled, w = jax.jit(step), G
        for _ in range(4):
            w = compiled(w, X)

    _, records = seen(run, tmp_path)
    assert set(metrics(records, 2)) == {"grad_norm", f"grad_norm/task_loss:{line('first')}",
                                        f"grad_norm/task_loss:{line('second')}"}


@pytest.mark.slow
def test_one_gradient_needs_no_name(tmp_path: Path) -> None:
    def run() -> None:
        def part(w: Any, x: Any) -> Any:
            return down(w, jax.grad(task_loss)(w, x)), None

        for rows in (8, 6):  # two signatures, and a scan
            compiled, w = jax.jit(lambda w, xs: lax.scan(part, w, xs)[0]), G
            for _ in range(4):
                w = compiled(w, jnp.stack([X[:rows], X[:rows]]))

    _, records = seen(run, tmp_path)
    assert set(metrics(records, 2)) == {"grad_norm"}
    assert set(tables(records)) == {""}


def test_a_gradient_of_one_loss_that_is_zero_is_no_fault_where_another_trains(tmp_path: Path) -> None:
    def only_second(p: Any, x: Any) -> Any:
        return ((x @ lax.stop_gradient(p["a"]) @ p["b"]) ** 2).mean()

    def both(p: Any, x: Any) -> Any:
        return ((x @ p["a"] @ p["b"] - x) ** 2).mean()

    def run() -> None:
        p = {"a": jnp.full((4, 3), 0.3), "b": jnp.full((3, 4), 0.2)}

        def step(p: Any, x: Any) -> Any:
            one, first = jax.value_and_grad(only_second)(p, x)
            two, second = jax.value_and_grad(both)(p, x)
            return down(down(p, first), second), one + two

        compiled = jax.jit(step)
        for _ in range(20):
            p, _ = compiled(p, X)

    found, records = seen(run, tmp_path)
    assert found == []
    assert tables(records)["only_second"]["p['a']"] == 0.0


def test_names_are_one_s_own() -> None:
    here, there = ("a.py", 3), ("b.py", 3)
    taken = titles([("loss", here, ("p",)), ("<lambda>", ("a.py", 9), ("p",))], {})
    assert list(taken.values()) == ["loss", "lambda"]
    more = titles([("loss", there, ("p",)), ("loss", there, ("q",)), ("loss", None, ("p",))], taken)
    assert len({*taken.values(), *more.values()}) == 5
    assert titles([("loss", here, ("p",))], taken) == {}
    assert titles([], taken) == {}
