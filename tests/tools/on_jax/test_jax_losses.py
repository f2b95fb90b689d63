"""Shapes of what optax losses are given: a broadcast that nobody meant, and those that are meant."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

jax = pytest.importorskip("jax")
optax = pytest.importorskip("optax")
import jax.numpy as jnp  # noqa: E402

from traindx_tools.on_jax.attachment import Attachment  # noqa: E402
from traindx_tools.on_jax.probe import Scene  # noqa: E402
from traindx_tools.on_jax.probes.losses import Losses  # noqa: E402
from traindx_tools.on_jax.rules.j403_target_broadcast import Compared, check  # noqa: E402


class Notes:
    rank = 0

    def __init__(self) -> None:
        self.findings: list[Any] = []

    def finding(self, finding: Any) -> None:
        self.findings.append(finding)

    def mark(self, kind: str, **fields: Any) -> None:
        pass

    def facts(self, text: str) -> None:
        pass


def seen(program: Any) -> list[Any]:
    notes = Notes()
    scene: Any = Scene(notes)  # type: ignore[arg-type]
    session: Any = SimpleNamespace(asleep=False, at_step=[], note_files=lambda: None)
    attachment = Attachment(scene, [Losses(scene)], session)
    attachment.patch()
    try:
        program()
    finally:
        attachment.finish()
        attachment.unpatch()
    return notes.findings


def step(loss_of: Any) -> Any:
    def program() -> None:
        @jax.jit
        def update(w: Any, x: Any, y: Any) -> Any:
            return jax.value_and_grad(lambda w: loss_of(x @ w, y).mean())(w)

        update(jnp.ones((3, 1)), jnp.ones((8, 3)), jnp.ones(8))

    return program


def test_a_broadcast_within_a_trace_is_named_at_its_line() -> None:
    found = seen(step(lambda p, y: optax.huber_loss(p, y)))
    assert [f.rule for f in found] == ["J403"]
    assert found[0].where.file == __file__
    assert found[0].measured["result"] == "[8, 8]"


@pytest.mark.slow
def test_an_eager_call_and_keywords_are_seen() -> None:
    found = seen(lambda: optax.losses.sigmoid_binary_cross_entropy(logits=jnp.ones((4, 1)), labels=jnp.ones(4)))
    assert [f.measured["loss"] for f in found] == ["sigmoid_binary_cross_entropy"]


@pytest.mark.parametrize("loss_of", [
    lambda p, y: optax.l2_loss(p[:, 0], y),
    lambda p, y: optax.huber_loss(p, jnp.zeros((1,))),
    lambda p, y: optax.squared_error(p),
    lambda p, y: optax.huber_loss(p[:, 0][:, None], p[:, 0][None]),
    lambda p, y: optax.softmax_cross_entropy(jnp.ones((8, 3)) * p, jnp.ones((3,)) / 3),
])
def test_shapes_that_are_meant_are_left_alone(loss_of: Any) -> None:
    assert seen(step(loss_of)) == []


def test_the_patches_are_taken_out_again() -> None:
    before = optax.huber_loss
    seen(lambda: None)
    assert optax.huber_loss is before


def test_shapes_that_do_not_fit_are_no_broadcast() -> None:
    calls = [Compared("l2_loss", (4, 1), (3, 5, 2), "a.py", 1), Compared("l2_loss", (), (3,), None, None)]
    assert list(check(calls)) == []
