"""Norms of gradients that never leave a jitted step: the same as those outside, and the step is not changed."""

from __future__ import annotations

import functools
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
import optax
from jax import lax
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.paths.norms import gradient_norms

X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), jnp.float32)
P = {"enc": jnp.full((4, 3), 0.3), "dec": jnp.full((3, 4), 0.2)}
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
TX = optax.adam(1e-2)
PROBE = ("inner-gradients",)
Norms = dict[str, float]


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def loss_of(p: Any, x: Any) -> Any:
    return ((jnp.tanh(x @ p["enc"]) @ p["dec"] - x) ** 2).mean()


def plain(p: Any, x: Any) -> Any:
    return jax.value_and_grad(loss_of)(p, x)


def with_aux(p: Any, x: Any) -> Any:
    (value, _), g = jax.value_and_grad(lambda p, x: (loss_of(p, x), x.sum()), has_aux=True)(p, x)
    return value, g


def grad_alone(p: Any, x: Any) -> Any:
    return loss_of(p, x), jax.grad(loss_of)(p, x)


def grad_with_aux(p: Any, x: Any) -> Any:
    g, _ = jax.grad(lambda p, x: (loss_of(p, x), x.sum()), has_aux=True)(p, x)
    return loss_of(p, x), g


def second_argument(p: Any, x: Any) -> Any:
    value, g = jax.value_and_grad(lambda x, p: loss_of(p, x), argnums=1)(x, p)
    return value, g


def rematerialised(p: Any, x: Any) -> Any:
    return jax.value_and_grad(jax.checkpoint(loss_of))(p, x)


def within_jit(p: Any, x: Any) -> Any:
    return jax.jit(lambda p, x: plain(p, x))(p, x)  # a function of its own: an earlier trace would answer


def in_a_scan(p: Any, x: Any) -> Any:
    def part(total: Any, rows: Any) -> Any:
        _, g = jax.value_and_grad(loss_of)(p, rows)
        return jax.tree_util.tree_map(jnp.add, total, g), None

    total, _ = lax.scan(part, jax.tree_util.tree_map(jnp.zeros_like, p), jnp.stack([x, x]))
    return loss_of(p, x), jax.tree_util.tree_map(lambda g: g / 2, total)


def in_a_while_loop(p: Any, x: Any) -> Any:
    zero = jax.tree_util.tree_map(jnp.zeros_like, p)
    _, g = lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, jax.grad(loss_of)(p, x)), (0, zero))
    return loss_of(p, x), g


def in_a_branch(p: Any, x: Any) -> Any:
    g = lax.cond(x.shape[0] > 0 * x[0, 0].astype(jnp.int32) - 1, lambda: jax.grad(loss_of)(p, x),
                 lambda: jax.tree_util.tree_map(jnp.zeros_like, p))
    return loss_of(p, x), g


FORMS = (plain, with_aux, grad_alone, grad_with_aux, second_argument, rematerialised, within_jit, in_a_scan,
         in_a_while_loop, in_a_branch)


def training(form: Callable[..., Any], steps: int = 10, *, donate: bool = False,
             inputs: Callable[[int], Any] = lambda i: X) -> list[str]:
    """The losses, exactly."""

    @functools.partial(jax.jit, donate_argnums=(0, 1) if donate else ())
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = form(p, x)
        updates, s = TX.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    p, s, told = jax.tree_util.tree_map(jnp.copy, P), TX.init(P), []
    for i in range(steps):
        p, s, value = step(p, s, inputs(i))
        told.append(float(value).hex())
    return told


def seen(run: Callable[[], Any], folder: Path) -> tuple[list[Finding], list[dict[str, Any]]]:
    """The findings and the records."""
    found = list(watched(run, Settings(str(folder), PROBE)))
    return found, [json.loads(t) for f in folder.rglob("*.jsonl") for t in f.read_text().splitlines()]


def of_kind(records: list[dict[str, Any]], kind: str) -> list[dict[str, Any]]:
    return [r for r in records if r.get("kind") == kind]


@pytest.mark.slow
@pytest.mark.parametrize("form", FORMS, ids=lambda f: f.__name__)
def test_the_norms_are_those_of_the_gradient_and_the_losses_stay_the_same(form: Any, tmp_path: Path) -> None:
    alone, told = training(form), []
    found, records = seen(lambda: told.extend(training(form)), tmp_path)
    assert told == alone
    assert found == []
    table = of_kind(records, "gradient_norms")
    assert [(t["function"], t["call"], sorted(t["norms"])) for t in table] == [("step", 9, ["p['dec']", "p['enc']"])]
    first = next(r for r in of_kind(records, "metrics") if r["step"] == 2 and "grad_norm" in r)

    state, p = TX.init(P), P
    g = jax.grad(loss_of)(p, X)
    updates, state = TX.update(g, state, p)
    p = optax.apply_updates(p, updates)
    expected = gradient_norms(jax.grad(loss_of)(p, X))
    assert first["grad_norm"] == pytest.approx(float(np.sqrt(sum(v**2 for v in expected.values()))), rel=1e-4)


@pytest.mark.slow
def test_arguments_that_are_donated_are_still_there_when_it_looks(tmp_path: Path) -> None:
    alone, told = training(plain, donate=True), []
    found, records = seen(lambda: told.extend(training(plain, donate=True)), tmp_path)
    assert (told, found) == (alone, [])
    assert len([r for r in of_kind(records, "metrics") if "grad_norm" in r]) == 4


def cut(p: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        q = lax.stop_gradient(jnp.round(x @ p["enc"]))  # <- cut
        return ((q @ p["dec"] - x) ** 2).mean()

    return jax.value_and_grad(loss)(p)


def sometimes(p: Any, x: Any) -> Any:
    def loss(p: Any) -> Any:
        h = lax.cond(x[0, 0] > 0, lambda w: x @ w, lambda w: jnp.ones((8, 3)), p["enc"])
        return ((h @ p["dec"] - x) ** 2).mean()

    return jax.value_and_grad(loss)(p)


@pytest.mark.slow
def test_parameters_that_no_gradient_reaches_are_named_with_their_norm(tmp_path: Path) -> None:
    found, _ = seen(lambda: training(cut, 20), tmp_path)
    assert [(f.rule, f.where.line, f.measured["norms"]) for f in found] == [("J301", line("cut"), (("p['enc']", 0.0),))]
    assert "measured norm" in found[0].statement


@pytest.mark.slow
def test_a_branch_that_is_not_always_taken_is_remarked(tmp_path: Path) -> None:
    found, _ = seen(lambda: training(sometimes, 60, inputs=lambda i: X * (1.0 if i in (1, 2, 8) else -1.0)), tmp_path)
    assert [(f.rule, f.severity.value) for f in found] == [("J302", "info")]


@pytest.mark.slow
def test_a_step_of_two_signatures_is_measured_in_both(tmp_path: Path) -> None:
    sizes = {1: 8, 2: 6}
    found, records = seen(lambda: training(plain, 14, inputs=lambda i: X[:sizes.get(i % 3, 8)]), tmp_path)
    assert found == []
    assert len(of_kind(records, "gradient_norms")) == 1


def test_a_step_that_asks_the_host_for_numbers_is_left_alone(tmp_path: Path, capsys: Any) -> None:
    from jax.experimental import io_callback

    asked: list[int] = []

    def number() -> Any:
        asked.append(1)
        return np.float32(1.0)

    def form(p: Any, x: Any) -> Any:
        scale: Any = io_callback(number, jax.ShapeDtypeStruct((), jnp.float32))
        return jax.value_and_grad(lambda p: loss_of(p, x) * scale)(p)

    found, records = seen(lambda: training(form, 6), tmp_path)
    assert (found, of_kind(records, "gradient_norms"), len(asked)) == ([], [], 6)
    assert "are not measured: it calls the host" in capsys.readouterr().err


def test_what_a_step_prints_is_printed_once(tmp_path: Path, capsys: Any) -> None:
    def form(p: Any, x: Any) -> Any:
        jax.debug.print("printed {}", x[0, 0])
        return plain(p, x)

    found, records = seen(lambda: (training(form, 6), jax.effects_barrier()), tmp_path)
    assert found == []
    assert len(of_kind(records, "gradient_norms")) == 1
    assert capsys.readouterr().out.count("printed") == 6


def test_programs_without_gradients_within_jit_have_nothing_to_measure(tmp_path: Path) -> None:
    def run() -> None:
        for _ in range(6):
            jax.value_and_grad(loss_of)(P, X)
            jax.jit(loss_of)(P, X)

    found, records = seen(run, tmp_path)
    assert (found, of_kind(records, "gradient_norms")) == ([], [])


@pytest.mark.slow
def test_flax_nnx_and_equinox_names(tmp_path: Path) -> None:
    nnx, eqx = pytest.importorskip("flax.nnx"), pytest.importorskip("equinox")

    def with_nnx() -> None:
        model = nnx.Linear(4, 4, rngs=nnx.Rngs(0))
        optimizer = nnx.Optimizer(model, TX, wrt=nnx.Param)

        @nnx.jit
        def step(model: Any, optimizer: Any, x: Any) -> Any:
            value, g = nnx.value_and_grad(lambda m: ((m(x) - x) ** 2).mean())(model)
            optimizer.update(model, g)
            return value

        for _ in range(6):
            step(model, optimizer, X)

    def with_equinox() -> None:
        model = eqx.nn.MLP(4, 4, 8, 1, key=jax.random.key(0))
        state = TX.init(eqx.filter(model, eqx.is_array))

        @eqx.filter_jit
        def step(model: Any, state: Any, x: Any) -> Any:
            value, g = eqx.filter_value_and_grad(lambda m: ((jax.vmap(m)(x) - x) ** 2).mean())(model)
            updates, state = TX.update(g, state, model)
            return eqx.apply_updates(model, updates), state, value

        for _ in range(6):
            model, state, _ = step(model, state, X)

    for name, run, words in (("nnx", with_nnx, ("kernel", "bias")), ("equinox", with_equinox, ("weight", "bias"))):
        found, records = seen(run, tmp_path / name)
        assert found == []
        told = [n for t in of_kind(records, "gradient_norms") for n in t["norms"]]
        assert all(any(w in n for n in told) for w in words), (name, told)
