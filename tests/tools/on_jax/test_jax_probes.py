"""What the always-on JAX probes say of running programs: keys, state, compilations, errors; healthy ones are silent."""

from __future__ import annotations

import functools
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

X = jnp.asarray(np.random.default_rng(1).normal(size=(8, 4)), jnp.float32)
TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
Program = Callable[[], Any]


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def seen(program: Program, folder: Path) -> list[Finding]:
    return list(watched(program, Settings(str(folder), ("all",))))


def training(step: Callable[..., Any], state: Any, steps: int = 20, *more: Any) -> None:
    for _ in range(steps):
        *state, _ = step(*state, *more)


# ---- keys


def same_key_each_step() -> None:
    @jax.jit
    def step(p: Any, key: Any) -> Any:
        def loss(p: Any) -> Any:
            return ((X * jax.random.bernoulli(key, 0.8, X.shape)) @ p).sum()  # <- same_key_each_step

        value, g = jax.value_and_grad(loss)(p)
        return p - 0.01 * g, value

    p, key = jnp.ones(4), jax.random.key(0)
    for _ in range(8):
        p, _ = step(p, key)


def key_made_inside() -> None:
    @jax.jit
    def step(p: Any) -> Any:
        noise = jax.random.normal(jax.random.PRNGKey(7), p.shape)  # <- key_made_inside
        value, g = jax.value_and_grad(lambda p: ((p + noise) ** 2).sum())(p)
        return p - 0.01 * g, value

    training(step, (jnp.ones(4),), 8)


def fresh_keys() -> None:
    @jax.jit
    def step(p: Any, key: Any) -> Any:
        value, g = jax.value_and_grad(lambda p: ((p + jax.random.normal(key, p.shape)) ** 2).sum())(p)
        return p - 0.01 * g, value

    p, key = jnp.ones(4), jax.random.key(0)
    for _ in range(8):
        key, sub = jax.random.split(key)
        p, _ = step(p, sub)


def key_in_the_state() -> None:
    @jax.jit
    def step(p: Any, key: Any) -> Any:
        key, sub = jax.random.split(key)
        value, g = jax.value_and_grad(lambda p: ((p + jax.random.normal(sub, p.shape)) ** 2).sum())(p)
        return p - 0.01 * g, key, value

    training(step, (jnp.ones(4), jax.random.PRNGKey(0)), 8)


def sampler_with_a_fixed_key() -> None:
    sample = jax.jit(lambda p, key: p + jax.random.normal(key, p.shape))
    for i in range(8):
        sample(jnp.ones(4) * i, jax.random.key(3))


def counted(held: int, steps: int = 20, donate: bool = False) -> None:
    """The key of a step is folded from a counter that moves on after `held` calls."""
    base = jax.random.key(0)

    def step(p: Any, count: Any) -> Any:
        key = jax.random.fold_in(base, count)
        noise = jax.random.normal(key, p.shape)  # <- counted
        value, g = jax.value_and_grad(lambda p: ((p + noise) ** 2).sum())(p)
        return p - 0.01 * g, count + 0, value

    jitted = jax.jit(step, donate_argnums=(0, 1) if donate else ())
    p, count = jnp.ones(4), jnp.zeros((), jnp.int32)
    for i in range(steps):
        p, count, _ = jitted(p, count + 1 if i % held == 0 and i else count)


@pytest.mark.slow
@pytest.mark.parametrize("donate", [False, True])
def test_a_counter_that_never_moves_gives_the_same_key(donate: bool, tmp_path: Path) -> None:
    found = [f for f in seen(lambda: counted(10**6, donate=donate), tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.where.line, f.measured["argument"]) for f in found] == [("J203", line("counted"), "count")]


@pytest.mark.slow
@pytest.mark.parametrize("held", [1, 4, 8])
def test_a_counter_that_moves_on_is_silent(held: int, tmp_path: Path) -> None:
    assert [f for f in seen(lambda: counted(held), tmp_path) if f.severity.rank >= 1] == []


@pytest.mark.slow
def test_one_key_for_all_steps_is_named(tmp_path: Path) -> None:
    found = [f for f in seen(same_key_each_step, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.where.line) for f in found] == [("J203", line("same_key_each_step"))]


@pytest.mark.slow
def test_a_key_made_inside_a_step_is_named(tmp_path: Path) -> None:
    found = [f for f in seen(key_made_inside, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.where.line) for f in found] == [("J203", line("key_made_inside"))]


@pytest.mark.slow
@pytest.mark.parametrize("program", [fresh_keys, key_in_the_state, sampler_with_a_fixed_key], ids=lambda f: f.__name__)
def test_keys_used_right_are_silent(program: Program, tmp_path: Path) -> None:
    assert [f for f in seen(program, tmp_path) if f.severity.rank >= 1] == []


def test_the_key_of_the_initialisation_again_is_told(tmp_path: Path) -> None:
    def program() -> None:
        key = jax.random.PRNGKey(0)
        p = jax.random.normal(key, (4,))
        jax.jit(lambda p, k: p * jax.random.bernoulli(k, 0.5, p.shape))(p, key)

    found = [f for f in seen(program, tmp_path) if f.rule == "J204"]
    assert len(found) == 1
    assert (found[0].severity.value, found[0].measured["first"]) == ("low", "jax.random.normal")


# ---- state


def loss_of(p: Any, x: Any) -> Any:
    return (jnp.tanh(x @ p["a"]) @ p["b"]).mean() ** 2


PARAMS = {"a": jnp.ones((4, 3)), "b": jnp.ones((3, 2))}
TX = optax.adam(1e-2)


def optimizer_state_dropped() -> None:
    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(loss_of)(p, x)
        updates, _ = TX.update(g, s, p)  # <- optimizer_state_dropped
        return optax.apply_updates(p, updates), s, value

    training(step, (PARAMS, TX.init(PARAMS)), 5, X)


def state_never_fed_back() -> None:
    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(loss_of)(p, x)
        updates, s = TX.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    p, s = PARAMS, TX.init(PARAMS)
    for _ in range(15):
        _, s, _ = step(p, s, X)


def encoder_cut_off() -> None:
    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            z = jnp.tanh(x @ p["a"])
            q = lax.stop_gradient(z + (jnp.round(z) - z))  # <- encoder_cut_off
            return ((q @ p["b"]) ** 2).mean()

        value, g = jax.value_and_grad(loss)(p)
        updates, s = TX.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    training(step, (PARAMS, TX.init(PARAMS)), 20, X)


def nothing_moves() -> None:
    tx = optax.adam(0.0)

    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(loss_of)(p, x)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    training(step, (PARAMS, tx.init(PARAMS)), 20, X)


def plain_training(donate: bool = False) -> None:
    @functools.partial(jax.jit, donate_argnums=(0, 1) if donate else ())
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(loss_of)(p, x)
        updates, s = TX.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    p = jax.tree_util.tree_map(jnp.copy, PARAMS)
    training(step, (p, TX.init(p)), 60, X)


def frozen_and_target_parameters() -> None:
    @jax.jit
    def step(p: Any, frozen: Any, target: Any, s: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            wanted = lax.stop_gradient(jnp.tanh(x @ target["a"]) @ target["b"])
            return (((jnp.tanh(x @ p["a"]) + x @ frozen) @ p["b"] - wanted + 1.0) ** 2).mean()

        value, g = jax.value_and_grad(loss)(p)
        updates, s = TX.update(g, s, p)
        p = optax.apply_updates(p, updates)
        return p, frozen, optax.incremental_update(p, target, 0.05), s, value

    training(step, (PARAMS, jnp.ones((4, 3)), PARAMS, TX.init(PARAMS)), 20, X)


def gradients_apart_from_the_update() -> None:
    gradient = jax.jit(jax.value_and_grad(loss_of))
    p, s = PARAMS, TX.init(PARAMS)
    for i in range(60):
        _, g = gradient(p, X)
        if i % 4 == 3:
            updates, s = TX.update(g, s, p)
            p = optax.apply_updates(p, updates)


def biases_of_zero_that_never_get_a_gradient() -> None:
    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(lambda p: jax.nn.relu(x @ p["a"] - 100.0 + p["c"]).mean() + loss_of(p, x))(p)
        updates, s = TX.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    p = {**PARAMS, "c": jnp.zeros(3)}
    training(step, (p, TX.init(p)), 20, X)


STATE = [(optimizer_state_dropped, "J702"), (encoder_cut_off, "J301")]


@pytest.mark.slow
@pytest.mark.parametrize(("program", "rule"), STATE, ids=lambda v: getattr(v, "__name__", v))
def test_faults_of_the_state_are_named_with_their_line(program: Program, rule: str, tmp_path: Path) -> None:
    found = [f for f in seen(program, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.where.line) for f in found] == [(rule, line(program.__name__))]


@pytest.mark.slow
def test_a_state_that_is_never_passed_back_is_named(tmp_path: Path) -> None:
    found = [f for f in seen(state_never_fed_back, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.measured["argument"]) for f in found] == [("J701", "p")]


def test_a_step_that_changes_nothing_is_named(tmp_path: Path) -> None:
    found = [f for f in seen(nothing_moves, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.measured["everything"]) for f in found] == [("J703", True)]


def frozen_body(loaded: bool) -> None:
    """A mask of the optimizer freezes the first matrix, which is a draw of LeCun's initialiser or was trained."""
    first = jax.nn.initializers.lecun_normal()(jax.random.PRNGKey(0), (4, 128))
    p = {"body": first + 0.3 * jnp.outer(jnp.arange(4.0), jnp.ones(128)) if loaded else first,
         "head": jnp.zeros((128, 3))}
    tx = optax.multi_transform({"train": optax.adam(1e-2), "freeze": optax.set_to_zero()},
                               {"body": "freeze", "head": "train"})

    @jax.jit
    def step(p: Any, s: Any, x: Any) -> Any:
        value, g = jax.value_and_grad(lambda p: ((jnp.tanh(x @ p["body"]) @ p["head"] - 1.0) ** 2).mean())(p)
        updates, s = tx.update(g, s, p)
        return optax.apply_updates(p, updates), s, value

    training(step, (p, tx.init(p)), 60, X)


@pytest.mark.slow
@pytest.mark.parametrize("loaded", [False, True])
def test_a_body_that_a_mask_freezes_as_it_was_drawn_is_no_remark(loaded: bool, tmp_path: Path) -> None:
    (found,) = [f for f in seen(functools.partial(frozen_body, loaded), tmp_path) if f.rule == "J703"]
    assert found.severity.value == ("info" if loaded else "low")
    assert found.measured["kind"] == ("part" if loaded else "frozen-fresh")
    assert ("neither trained nor loaded" in found.statement) is not loaded


@pytest.mark.slow
@pytest.mark.parametrize("program", [plain_training, functools.partial(plain_training, True),
                                     frozen_and_target_parameters, gradients_apart_from_the_update,
                                     biases_of_zero_that_never_get_a_gradient],
                         ids=lambda f: getattr(f, "__name__", "donated"))
def test_trainings_that_keep_their_state_are_silent(program: Program, tmp_path: Path) -> None:
    assert [f for f in seen(program, tmp_path) if f.severity.rank >= 1] == []


# ---- compilations


def varying_lengths() -> None:
    step = jax.jit(lambda p, x: (p * x.sum(), x.mean()))
    for n in range(1, 12):
        step(jnp.ones(3), jnp.ones((n, 2)))


def varying_static() -> None:
    step = jax.jit(lambda x, i: x * i, static_argnums=1)
    for i in range(12):
        step(jnp.ones(3), i)


def jit_in_the_loop() -> None:
    for i in range(10):
        jax.jit(lambda x, i=i: x + i)(jnp.ones(3))  # <- jit_in_the_loop


def few_shapes() -> None:
    step = jax.jit(lambda x: x.mean())
    for n in (32, 32, 32, 7, 32, 32, 32, 7, 64, 64):
        step(jnp.ones((n, 2)))


@pytest.mark.slow
@pytest.mark.parametrize(("program", "prop"), [(varying_lengths, "shape"), (varying_static, "static value")],
                         ids=lambda v: getattr(v, "__name__", v))
def test_recompilations_name_the_argument_and_the_property(program: Program, prop: str, tmp_path: Path) -> None:
    found = [f for f in seen(program, tmp_path) if f.rule == "J601"]
    assert [f.measured["kind"] for f in found] == [prop]
    assert found[0].measured["argument"] in ("x", "i")


@pytest.mark.slow
def test_a_jit_in_a_loop_is_named(tmp_path: Path) -> None:
    found = [f for f in seen(jit_in_the_loop, tmp_path) if f.severity.rank >= 2]
    assert [(f.rule, f.where.line) for f in found] == [("J602", line("jit_in_the_loop"))]


@pytest.mark.slow
def test_a_few_shapes_are_normal(tmp_path: Path) -> None:
    assert seen(few_shapes, tmp_path) == []


def test_large_captured_constants_are_told(tmp_path: Path) -> None:
    table = jnp.ones((2**23, 2))
    found = seen(lambda: jax.jit(lambda i: table[i])(3), tmp_path)
    assert [f.rule for f in found] == ["J603"]


def test_a_callback_in_a_loop_body_is_told(tmp_path: Path) -> None:
    def program() -> None:
        def body(c: Any, x: Any) -> tuple[Any, Any]:
            return c + jax.pure_callback(lambda v: np.float32(v), jax.ShapeDtypeStruct((), jnp.float32), x), None

        jax.jit(lambda xs: lax.scan(body, 0.0, xs)[0])(jnp.ones(3))

    assert [(f.rule, f.severity.value) for f in seen(program, tmp_path)] == [("J604", "low")]


def test_identifiers_that_wrap_are_told(tmp_path: Path) -> None:
    def program(ids: Any) -> None:
        jax.jit(lambda i: i % 7)(ids)

    found = seen(lambda: program(np.array([1, 2**40])), tmp_path / "a")
    assert [f.rule for f in found] == ["J503"]
    assert seen(lambda: program(np.array([1, 2**20])), tmp_path / "b") == []
    assert seen(lambda: program(np.array([0.1, 1e30])), tmp_path / "c") == []


# ---- errors


def test_a_carry_that_changes_its_type_is_told_leaf_by_leaf(tmp_path: Path) -> None:
    def program() -> None:
        def body(c: Any, _: Any) -> tuple[Any, None]:
            return {"pos": c["pos"], "work": c["work"] + 0.5}, None

        lax.scan(body, {"pos": jnp.ones(2), "work": jnp.zeros((), int)}, None, length=3)  # <- carry

    found = [f for f in seen(program, tmp_path) if f.rule == "J501"]
    assert len(found) == 1
    assert (found[0].where.line, found[0].measured["before"], found[0].measured["after"]) == (
        line("carry"), "int32[]", "float32[]")
    assert "jnp.float32" in found[0].statement


def test_axes_of_vmap_and_donated_buffers_are_told(tmp_path: Path) -> None:
    def axes() -> None:
        jax.vmap(jnp.dot)(jnp.ones((3, 2)), jnp.ones((4, 2)))  # <- axes

    def donated() -> None:
        x = jnp.ones(3)
        jax.jit(lambda v: v + 1, donate_argnums=0)(x)
        print(x + 1)  # <- donated

    found = [f for f in seen(axes, tmp_path / "a") if f.rule == "J402"]
    assert [f.where.line for f in found] == [line("axes")]
    late = [f for f in seen(donated, tmp_path / "b") if f.rule == "J605"]
    assert [f.where.line for f in late] == [line("donated")]
