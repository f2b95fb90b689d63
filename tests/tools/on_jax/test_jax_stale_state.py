"""What is evaluated is an old copy of the state: captured, passed or not read; and the copies that are meant."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
from watching import watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings

TEXT = Path(__file__).read_text(encoding="utf-8").splitlines()
WIDTH, HIDDEN, CLASSES = 8, 16, 3


def line(mark: str) -> int:
    return next(i for i, text in enumerate(TEXT, 1) if text.endswith(f"# <- {mark}"))


def seen(program: Callable[[], Any], folder: Path) -> list[Finding]:
    return list(watched(program, Settings(str(folder), ("stale",))))


def batches(seed: int, n: int = 6) -> list[tuple[Any, Any]]:
    random = np.random.default_rng(seed)
    x = random.normal(size=(n, 20, WIDTH)).astype(np.float32)
    return [(a, (np.abs(a).argmax(1) % CLASSES).astype(np.int32)) for a in x]


def init(seed: int = 0) -> dict[str, Any]:
    random = np.random.default_rng(seed)
    values = {"in": {"w": 0.5 * random.normal(size=(WIDTH, HIDDEN)), "b": np.zeros(HIDDEN)},
              "out": {"w": 0.5 * random.normal(size=(HIDDEN, CLASSES)), "b": np.zeros(CLASSES)}}
    return jax.tree_util.tree_map(lambda v: jnp.asarray(v, jnp.float32), values)


def apply(params: Any, x: Any) -> Any:
    return jnp.tanh(x @ params["in"]["w"] + params["in"]["b"]) @ params["out"]["w"] + params["out"]["b"]


def loss_of(params: Any, x: Any, y: Any) -> Any:
    return -jax.nn.log_softmax(apply(params, x))[jnp.arange(len(y)), y].mean()


def new_step(extra: Callable[[Any], Any] = lambda p: 0.0, **options: Any) -> Any:
    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(lambda p: loss_of(p, x, y) + extra(p))(params)
        return jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient), value

    return jax.jit(step, **options)


def training(evaluated: Callable[[Any, int], Any], step: Any = None, params: Any = None, epochs: int = 4) -> Any:
    """`evaluated` is called with the newest parameters after each epoch."""
    step, params = step or new_step(), params or init()
    for epoch in range(epochs):
        for x, y in batches(0):
            params, value = step(params, x, y)
        float(value)
        evaluated(params, epoch)
    return params


def accuracy(function: Callable[..., Any], *first: Any) -> float:
    return float(np.mean([np.mean(np.asarray(function(*first, x)).argmax(1) == y) for x, y in batches(1, 3)]))


# ---- faulty


def captured() -> None:
    params = init()

    def predict(x: Any) -> Any:
        return apply(params, x)  # <- captured

    compiled = jax.jit(predict)
    training(lambda *_: accuracy(compiled), params=params)


def not_read() -> None:
    first = init()

    def predict(params: Any, x: Any) -> Any:
        return apply(first, x)  # <- not_read

    compiled = jax.jit(predict)
    training(lambda params, _: accuracy(compiled, params), params=first)


def passed() -> None:
    first = init()
    compiled = jax.jit(apply)
    training(lambda *_: accuracy(compiled, first), params=first)


def passed_equal() -> None:
    """Made again from the same key: other objects with the same values; the step gives its arguments away."""
    compiled = jax.jit(apply)
    training(lambda *_: accuracy(compiled, init()), step=new_step(donate_argnums=0))


def in_a_loop() -> None:
    """Closed over in a scan, within a function that is jitted inside of another one."""
    first = init()

    @jax.jit
    def one(carry: Any, x: Any) -> Any:
        return carry + 1, apply(first, x).argmax(-1)  # <- in_a_loop

    @jax.jit
    def predict(xs: Any) -> Any:
        return jax.lax.scan(lambda c, x: one(c, x), 0, xs)[1]

    training(lambda *_: np.asarray(predict(np.stack([x for x, _ in batches(1)]))), params=first)


def first_epoch() -> None:
    """Traced after the first epoch: it keeps what the variable held then."""
    live = {"params": init()}

    def predict(x: Any) -> Any:
        return apply(live["params"], x)  # <- first_epoch

    compiled = jax.jit(predict)

    def ask(params: Any, _: int) -> None:
        live["params"] = params
        accuracy(compiled)

    training(ask, params=live["params"], epochs=5)


def gradients_alone() -> None:
    """The gradient is compiled, the update is not; the captured ones are numpy's."""
    params = init()
    first = jax.tree_util.tree_map(np.asarray, params)

    def predict(x: Any) -> Any:
        return apply(first, x)  # <- gradients_alone

    compiled, gradient = jax.jit(predict), jax.jit(jax.grad(loss_of))
    for _ in range(4):
        for x, y in batches(0):
            params = jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, params, gradient(params, x, y))
        accuracy(compiled)


FAULTY = [(captured, "captured"), (not_read, "unread"), (passed, "passed"), (passed_equal, "passed"),
          (in_a_loop, "captured"), (first_epoch, "captured"),
          pytest.param(gradients_alone, "captured", marks=pytest.mark.slow)]


@pytest.mark.parametrize(("program", "kind"), FAULTY, ids=lambda v: getattr(v, "__name__", v))
def test_an_old_state_is_named_with_its_distance(program: Any, kind: str, tmp_path: Path) -> None:
    (found,) = seen(program, tmp_path)
    assert (found.rule, found.measured["kind"], found.bearing.value, found.severity.value) == (
        "J705", kind, "cause", "high")
    assert found.measured["moved"] > 0.01
    if kind != "passed":
        assert found.where.line == line(program.__name__)
    assert "['in']['w']" in found.statement


@pytest.mark.slow
def test_the_statement_says_what_when_and_how_far(tmp_path: Path) -> None:
    (found,) = seen(captured, tmp_path)
    assert "predict computes with params['in']['w'], params['out']['w'] as they were at the first call of step" in (
        found.statement)
    assert "it was called 12 times, after 4 different steps of 24; training has moved them by" in found.statement
    (found,) = seen(first_epoch, tmp_path / "later")
    assert "as they were after 6 calls of step" in found.statement


def test_once_at_the_end_is_a_sign(tmp_path: Path) -> None:
    def program() -> None:
        first = init()
        compiled = jax.jit(lambda x: apply(first, x))
        training(lambda _, epoch: accuracy(compiled) if epoch == 3 else None, params=first)

    (found,) = seen(program, tmp_path)
    assert (found.bearing.value, found.severity.value) == ("sign", "medium")


def test_one_of_two_evaluations_is_a_remark(tmp_path: Path) -> None:
    def program() -> None:
        first = init()
        old, new = jax.jit(lambda params, x: apply(first, x)), jax.jit(apply)
        training(lambda params, _: (accuracy(old, params), accuracy(new, params)), params=first)

    (found,) = seen(program, tmp_path)
    assert (found.bearing.value, found.severity.value, found.measured["evaluated"]) == ("companion", "low", True)


def test_statistics_that_the_step_itself_captured(tmp_path: Path) -> None:
    mean = jnp.asarray(np.random.default_rng(3).normal(size=WIDTH), jnp.float32)

    def program() -> None:
        @jax.jit
        def step(state: Any, x: Any, y: Any) -> Any:
            value, gradient = jax.value_and_grad(lambda p: loss_of(p, x - mean, y))(state["params"])  # <- training
            new = 0.9 * mean + 0.1 * x.mean(0)
            return {"params": jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, state["params"], gradient),
                    "mean": new}, value

        training(lambda *_: None, step=step, params={"params": init(), "mean": mean})

    (found,) = seen(program, tmp_path)
    assert (found.measured["kind"], found.where.line, found.bearing.value) == ("training", line("training"), "cause")
    assert "state['mean']" in found.statement


# ---- healthy


def arguments() -> None:
    compiled = jax.jit(apply)
    training(lambda params, _: accuracy(compiled, params))


def baseline() -> None:
    first = init()
    untrained, compiled = jax.jit(lambda x: apply(first, x)), jax.jit(apply)
    training(lambda params, _: (accuracy(untrained), accuracy(compiled, params)), params=first)


def before_the_first_step() -> None:
    first = init()
    untrained, compiled = jax.jit(lambda x: apply(first, x)), jax.jit(apply)
    accuracy(untrained)
    training(lambda params, _: accuracy(compiled, params), params=first)


def compared_with_the_start() -> None:
    first = init()
    drift = jax.jit(lambda p: sum(jnp.abs(a - b).sum() for a, b in zip(
        jax.tree_util.tree_leaves(p), jax.tree_util.tree_leaves(first), strict=True)))
    training(lambda params, _: float(drift(params)), params=first)


def penalty_in_the_step() -> None:
    first = init()

    def far(p: Any) -> Any:
        return 0.01 * sum(jnp.square(a - b).sum() for a, b in zip(
            jax.tree_util.tree_leaves(p), jax.tree_util.tree_leaves(first), strict=True))

    training(lambda *_: None, step=new_step(far), params=first)


def reference_policy() -> None:
    """The frozen reference's log-probabilities go into each step, as numpy arrays made new."""
    params = init()
    reference = jax.jit(lambda x: jax.nn.log_softmax(apply(params, x)))

    @jax.jit
    def step(p: Any, x: Any, y: Any, told: Any) -> Any:
        def loss(q: Any) -> Any:
            now = jax.nn.log_softmax(apply(q, x))
            return loss_of(q, x, y) + 0.1 * (jnp.exp(now) * (now - told)).sum(-1).mean()

        gradient = jax.grad(loss)(p)
        return jax.tree_util.tree_map(lambda a, g: a - 0.1 * g, p, gradient)

    live = params
    for _ in range(3):
        for x, y in batches(0):
            live = step(live, x, y, np.array(reference(x)))


def target_network() -> None:
    """One jitted function for both networks; the target is set anew now and then."""
    live = target = init()
    q, step = jax.jit(apply), new_step()
    for k in range(5):
        for x, _ in batches(0):
            best = np.asarray(q(target, x)).argmax(1)
            np.asarray(q(live, x))
            live, _ = step(live, x, best.astype(np.int32))
        target = live if k == 2 else target


def average() -> None:
    followed = {"ema": init()}
    compiled = jax.jit(apply)
    update = jax.jit(lambda e, p: jax.tree_util.tree_map(lambda a, b: 0.9 * a + 0.1 * b, e, p))

    def ask(params: Any, _: int) -> None:
        followed["ema"] = update(followed["ema"], params)
        accuracy(compiled, followed["ema"])

    training(ask, params=followed["ema"])


def frozen_embedding() -> None:
    """Captured, and a part of the parameters that a mask keeps from moving."""
    first = init()
    body = first["in"]

    @jax.jit
    def step(params: Any, x: Any, y: Any) -> Any:
        value, gradient = jax.value_and_grad(loss_of)(params, x, y)
        return {"in": params["in"], "out": jax.tree_util.tree_map(
            lambda p, g: p - 0.1 * g, params["out"], gradient["out"])}, value

    predict = jax.jit(lambda head, x: apply({"in": body, "out": head}, x))
    training(lambda params, _: accuracy(predict, params["out"]), step=step, params=first)


def rewinding() -> None:
    """Lottery tickets: the captured first values, masked, go back into the training."""
    first = init()
    rewind = jax.jit(lambda mask: jax.tree_util.tree_map(lambda p, m: p * m, first, mask))
    compiled, step = jax.jit(apply), new_step()
    params = first
    for _ in range(3):
        params = training(lambda p, _: accuracy(compiled, p), step=step, params=params, epochs=2)
        params = rewind(jax.tree_util.tree_map(lambda p: (jnp.abs(p) > 0.1).astype(p.dtype), params))


def compiled_anew() -> None:
    """A closure over the newest parameters, made for each evaluation."""
    training(lambda params, _: accuracy(jax.jit(lambda x: apply(params, x))))


def constants_of_the_data() -> None:
    mean, scale = jnp.asarray(batches(0)[0][0].mean(0)), jnp.asarray(batches(0)[0][0].std(0))
    predict = jax.jit(lambda params, x: apply(params, (x - mean) / scale))
    training(lambda params, _: accuracy(predict, params))


def reset_state() -> None:
    """A carried state that starts anew in each evaluation, beside the newest parameters."""
    start = jnp.asarray(np.random.default_rng(5).normal(size=(20, HIDDEN)), jnp.float32)

    def run(state: Any, x: Any) -> Any:
        h = jnp.tanh(x @ state["p"]["in"]["w"] + state["h"])
        return h, h @ state["p"]["out"]["w"]

    @jax.jit
    def step(state: Any, x: Any, y: Any) -> Any:
        def loss(p: Any) -> Any:
            h, logits = run({"p": p, "h": state["h"]}, x)
            return -jax.nn.log_softmax(logits)[jnp.arange(len(y)), y].mean(), h

        (value, h), gradient = jax.value_and_grad(loss, has_aux=True)(state["p"])
        return {"p": jax.tree_util.tree_map(lambda p, g: p - 0.1 * g, state["p"], gradient), "h": h}, value

    predict = jax.jit(lambda p, x: run({"p": p, "h": start}, x)[1])
    training(lambda state, _: accuracy(predict, state["p"]), step=step, params={"p": init(), "h": start})


def other_paths() -> None:
    """The evaluated parameters come as a flat list beside the first ones."""
    first = init()
    both = jax.jit(lambda leaves, x: apply(jax.tree_util.tree_unflatten(jax.tree_util.tree_structure(first), leaves),
                                           x))
    old = jax.jit(lambda x: apply(first, x))
    training(lambda params, _: (accuracy(both, jax.tree_util.tree_leaves(params)), accuracy(old)), params=first)


HEALTHY = [arguments, baseline, before_the_first_step, compared_with_the_start, penalty_in_the_step, reference_policy,
           target_network, average, frozen_embedding, pytest.param(rewinding, marks=pytest.mark.slow), compiled_anew,
           constants_of_the_data, reset_state, other_paths]


@pytest.mark.parametrize("program", HEALTHY, ids=lambda f: f.__name__)
def test_copies_that_are_meant_are_silent(program: Any, tmp_path: Path) -> None:
    assert seen(program, tmp_path) == []


@pytest.mark.slow
def test_nothing_of_the_program_changes(tmp_path: Path) -> None:
    told: list[Any] = []

    def program() -> None:
        first = init()
        compiled = jax.jit(lambda x: apply(first, x))
        params = training(lambda *_: accuracy(compiled), params=first)
        told.append([np.asarray(p).tobytes() for p in jax.tree_util.tree_leaves(params)])

    program()
    seen(program, tmp_path)
    assert told[0] == told[1]


def test_arguments_that_are_no_arrays_are_passed_over(tmp_path: Path) -> None:
    def program() -> None:
        step = jax.jit(jax.grad(lambda p, n, flag: (p["w"] * n).sum() * (1.0 if flag is None else 2.0)))
        params = {"w": jnp.zeros((0, 3)), "key": jax.random.key(0)}
        for _ in range(4):
            step(params, 2.0, None)

    assert seen(program, tmp_path) == []
