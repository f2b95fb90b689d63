"""J102 says which call was the first bad one, or between which calls it lies, however seldom it looks."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("jax")
sys.path.insert(0, str(Path(__file__).parent))

import jax
import jax.numpy as jnp
from watching import origin_of, watched

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax.probes import nonfinite_sentinel
from traindx_tools.on_jax.probes.call_results import reader
from traindx_tools.on_jax.rules.j102_nonfinite_seen import Shown

SELDOM, ALWAYS = 1e-12, 1e12


def program(bad: int, spoil: Callable[[Any, Any], Any], *, wrap: Callable[[Any], Any] = lambda loss: loss,
            eager: bool = False, steps: int = 330) -> Callable[[], None]:
    """A training in which call `bad` gets a factor of -1; `spoil(value, factor)` makes the value of it."""

    def run() -> None:
        def loss(w: Any, factor: Any) -> Any:
            return spoil((w ** 2).sum(), factor)

        gradient = jax.value_and_grad(loss)

        def step(w: Any, factor: Any) -> Any:
            value, g = gradient(w, factor)
            return w - 1e-3 * g, wrap(value)

        compiled, w = jax.jit(step), jnp.ones(4)
        for i in range(1, steps + 1):
            factor = jnp.float32(-1.0 if i >= bad else 1.0)
            if eager:
                _, g = gradient(w, factor)
                w = w - 1e-3 * g
            else:
                w, _ = compiled(w, factor)

    return run


def both(value: Any, factor: Any) -> Any:
    return jnp.sqrt(value * factor)  # the value and its gradient


def value_alone(value: Any, factor: Any) -> Any:
    return value + jax.lax.stop_gradient(jnp.sqrt(factor))


def gradient_alone(value: Any, factor: Any) -> Any:
    return value + jnp.sqrt(jnp.maximum(factor, 0.0) * value)  # 0, with a gradient of 0/0


def found(run: Callable[[], None], folder: Path) -> Finding:
    (finding,) = [f for f in watched(run, Settings(str(folder), ("nonfinite",))) if f.rule == "J102"]
    return finding


def told(finding: Finding) -> tuple[Any, ...]:
    return tuple(finding.measured[k] for k in ("what", "step", "exact", "finite_step"))


@pytest.fixture
def seldom(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite_sentinel, "SHARE", SELDOM)


@pytest.fixture
def always(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite_sentinel, "SHARE", ALWAYS)


@pytest.mark.usefixtures("always")
@pytest.mark.parametrize(("spoil", "what"), [(both, "state"), (value_alone, "loss"), (gradient_alone, "state")],
                         ids=["both", "value", "gradient"])
def test_every_call_is_looked_at_and_the_first_one_is_named(spoil: Any, what: str, tmp_path: Path) -> None:
    finding = found(program(21, spoil, steps=40), tmp_path)
    assert told(finding) == (what, 21, True, 20)
    assert "from its call 21 on" in finding.statement
    assert finding.where.step == 21


WRAPS = {"alone": lambda v: v, "dict": lambda v: {"accuracy": v * 0 + 1, "loss": v}, "nested": lambda v: ([v], v * 0)}


@pytest.mark.usefixtures("seldom")
@pytest.mark.parametrize("wrap", WRAPS)
@pytest.mark.parametrize("bad", [151, 300])
def test_the_loss_of_calls_between_two_looks_is_known(wrap: str, bad: int, tmp_path: Path) -> None:
    """Looked at are the first 8 calls, call 256 and the last one."""
    finding = found(program(bad, both, wrap=WRAPS[wrap]), tmp_path)
    assert (finding.where.step, finding.measured["looked_every"]) == (bad, 256)
    assert (f"is nan by its call {bad} (looked at every 256 calls, finite at call {8 if bad < 256 else 256}, [1]"
            in finding.statement)


@pytest.mark.usefixtures("seldom")
def test_a_call_right_after_a_look_is_known(tmp_path: Path) -> None:
    assert told(found(program(9, both), tmp_path)) == ("state", 9, True, 8)


@pytest.mark.usefixtures("seldom")
def test_where_no_scalar_shows_it_the_look_is_what_is_known(tmp_path: Path) -> None:
    def halves(value: Any) -> Any:
        return jnp.float32(0.5), [value]

    finding = found(program(151, both, wrap=halves, steps=270), tmp_path)
    assert told(finding)[1:] == (256, False, 8)
    assert "is nan by its call 256 (looked at every 256 calls, finite at call 8)" in finding.statement


@pytest.mark.usefixtures("seldom")
def test_a_loss_that_harms_nothing_else_is_named_with_its_first_call(tmp_path: Path) -> None:
    finding = found(program(151, value_alone), tmp_path)
    assert told(finding) == ("loss", 151, True, 150)


@pytest.mark.usefixtures("seldom")
def test_state_that_shows_one_call_later_is_bounded(tmp_path: Path) -> None:
    finding = found(program(151, gradient_alone), tmp_path)
    assert told(finding)[1:3] == (152, False)
    assert finding.measured["call"] == 9
    assert "by its call 152" in finding.statement


@pytest.mark.slow
@pytest.mark.usefixtures("seldom")
def test_an_eager_gradient_is_bounded_by_its_value(tmp_path: Path) -> None:
    assert told(found(program(151, both, eager=True), tmp_path))[1] == 151


@pytest.mark.usefixtures("seldom")
def test_healthy_programs_are_silent(tmp_path: Path) -> None:
    assert watched(program(10_000, both), Settings(str(tmp_path), ("nonfinite",))) == ()


@pytest.mark.slow
@pytest.mark.usefixtures("seldom")
def test_outputs_that_change_their_structure_are_borne(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def run() -> None:
        step = jax.jit(lambda w, full: {"loss": w.sum(), "w": w} if full else {"w": w}, static_argnums=1)
        for i in range(40):
            step(jnp.ones(3), i < 20)

    assert watched(run, Settings(str(tmp_path), ("nonfinite",))) == ()
    assert "is off" not in capsys.readouterr().err


def test_a_leaf_is_taken_by_its_path() -> None:
    output = ({"a": 1.0, "b": [2.0, 3.0]}, 4.0)
    assert [take(output) for i in range(4) if (take := reader(output, i)) is not None] == [1.0, 2.0, 3.0, 4.0]


def test_what_is_said_of_a_call() -> None:
    assert Shown(5, exact=True, finite_at=4, every=1).words == "from its call 5 on"
    assert Shown(5, exact=False, finite_at=0, every=1).words == "by its call 5"
    assert Shown(160, exact=False, finite_at=128, every=32).words == (
        "by its call 160 (looked at every 32 calls, finite at call 128)")


def outside(spoil: Callable[[Any], Any], steps: int, aux: Any = None, *, loop: bool = True) -> Callable[[], None]:
    """A jitted `value_and_grad` whose update is made outside of it; `spoil` is applied to each activation."""

    def run() -> None:
        def loss(params: Any, xs: Any) -> Any:
            def body(h: Any, x: Any) -> Any:
                h = jnp.tanh(h @ params["w"] + x)
                return h, spoil(h).sum()

            total = jax.lax.scan(body, jnp.zeros(3), xs)[1].mean() if loop else spoil(xs @ params["w"]).mean()
            return (total, aux) if aux is not None else total

        compiled = jax.jit(jax.value_and_grad(loss, has_aux=aux is not None))
        params, xs = {"w": jnp.eye(3), "unused": jnp.ones(2)}, jnp.linspace(-1.0, 1.0, 12).reshape(4, 3)
        for _ in range(steps):
            _, gradient = compiled(params, xs)
            params = jax.tree_util.tree_map(lambda p, g: p - 0.01 * g, params, gradient)

    return run


def log_of_clipped(h: Any) -> Any:
    return jnp.log(jnp.maximum(h, 0.0))  # -inf at first, then NaN


def hidden_root(h: Any) -> Any:
    return jnp.where(h > 0, jnp.sqrt(h), 0.0)  # finite at first, with a gradient of NaN


@pytest.mark.slow
@pytest.mark.parametrize("loop", [True, False], ids=["scan", "plain"])
@pytest.mark.parametrize("steps", [1, 2, 5, 20])
@pytest.mark.parametrize("spoil", [log_of_clipped, hidden_root])
def test_gradients_of_a_jitted_function_that_are_nan_from_its_first_call_on(
        spoil: Any, steps: int, loop: bool, tmp_path: Path) -> None:
    run = outside(spoil, steps, loop=loop)
    assert found(run, tmp_path / "seen").measured["call"] == 1
    origin = origin_of(run, tmp_path)
    assert origin is not None
    assert Path(origin.where.file or "").name == Path(__file__).name


@pytest.mark.slow
@pytest.mark.parametrize("aux", [None, jnp.full(3, jnp.nan), {"accuracy": jnp.full((3, 3), jnp.nan)}],
                         ids=["none", "nan", "nan_dict"])
@pytest.mark.parametrize("steps", [2, 20])
def test_finite_gradients_beside_a_metric_of_nan_are_silent(aux: Any, steps: int, tmp_path: Path) -> None:
    run = outside(lambda h: jnp.log(jnp.maximum(h, 0.1)), steps, aux)
    assert [f for f in watched(run, Settings(str(tmp_path), ("nonfinite",))) if f.rule == "J102"] == []


def test_gradients_that_become_finite_as_a_loss_scale_falls_are_silent(tmp_path: Path) -> None:
    def run() -> None:
        compiled = jax.jit(jax.grad(lambda w, scale: (w * scale).sum() * jnp.where(scale > 1.5, jnp.nan, 1.0)))
        for scale in (4.0, 2.0, 1.0, 1.0, 1.0):
            compiled(jnp.ones(3), scale)

    assert [f for f in watched(run, Settings(str(tmp_path), ("nonfinite",))) if f.rule == "J102"] == []


def in_single_calls(bad: frozenset[int], spoil: Callable[[Any, Any], Any], *, named: str = "loss",
                    guard: bool = False, steps: int = 60) -> Callable[[], None]:
    """A training in which some calls get a factor of -1, so that `spoil` makes their value NaN, and go on."""

    def run() -> None:
        def loss(w: Any, factor: Any) -> Any:
            return spoil((w ** 2).sum(), factor)

        def step(w: Any, factor: Any) -> Any:
            value, g = jax.value_and_grad(loss)(w, factor)
            g = jnp.where(jnp.isfinite(g), g, 0.0) if guard else g
            return w - 1e-3 * g, {named: value}

        compiled, w = jax.jit(step), jnp.ones(4)
        for i in range(1, steps + 1):
            w, _ = compiled(w, jnp.float32(-1.0 if i in bad else 1.0))

    return run


@pytest.mark.slow
@pytest.mark.parametrize("share", [SELDOM, ALWAYS], ids=["looked at seldom", "looked at always"])
@pytest.mark.parametrize("guard", [False, True], ids=["its gradient is finite", "the program skips the step"])
def test_a_loss_that_is_nan_in_single_calls_is_told_as_low_and_its_equation_is_found(
        share: float, guard: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nonfinite_sentinel, "SHARE", share)
    run = in_single_calls(frozenset({21, 45}), both if guard else value_alone, guard=guard)
    seen = found(run, tmp_path / "watched")
    assert (seen.severity.value, seen.measured["what"]) == ("low", "passing")
    assert "at its call 21" in seen.statement
    assert "finite again" in seen.statement
    assert "2 calls in all" in seen.statement
    origin = origin_of(run, tmp_path)
    assert origin is not None
    assert origin.where.step == 21


def test_another_value_that_is_nan_in_single_calls_is_nothing_and_so_is_a_finite_loss(tmp_path: Path) -> None:
    for number, run in enumerate((in_single_calls(frozenset({21}), value_alone, named="accuracy_of_rare"),
                                  in_single_calls(frozenset(), value_alone))):
        seen = [f for f in watched(run, Settings(str(tmp_path / str(number)), ("nonfinite",))) if f.rule == "J102"]
        assert [f for f in seen if f.severity.value not in ("info", "low")] == []
        assert number == 0 or seen == []
