"""What a step measures of itself inside jit reaches the run's record once an interval, and changes nothing."""

from __future__ import annotations

import json
import re
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

from traindx_tools.finding import Finding
from traindx_tools.live.settings import Settings
from traindx_tools.on_jax import measures

SIZE = 64
KEY = jax.random.PRNGKey(0)


def recorded(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "rank00000.jsonl").read_text(encoding="utf-8").splitlines()
    metrics = (r for r in map(json.loads, lines) if r["kind"] == "metrics")
    return [r for r in metrics if any("/" in k or "_" in k for k in r)]


@pytest.mark.slow
def test_codes_are_counted_as_numpy_counts_them() -> None:
    indices = jnp.asarray(np.random.default_rng(0).integers(-1, 9, (5, 7)))
    told = jax.jit(lambda i: measures.codes(i, 8, "top"))(indices)
    counts = np.bincount(np.asarray(indices)[(indices >= 0) & (indices < 8)], minlength=8)
    share = counts[counts > 0] / counts.sum()
    assert float(told["codebook_perplexity/top"]) == pytest.approx(np.exp(-(share * np.log(share)).sum()), rel=1e-5)
    assert float(told["codebook_used/top"]) == (counts > 0).sum()
    nothing = measures.codes(jnp.full(3, -1), 8)
    assert (float(nothing["codebook_perplexity"]), float(nothing["codebook_used"])) == (1.0, 0.0)


@pytest.mark.slow
def test_terms_that_pull_apart_have_a_cosine_of_minus_one() -> None:
    def terms(p: Any) -> dict[str, Any]:
        return {"a": 2.0 * p["w"].sum(), "b": -p["w"].sum(), "none": jnp.float32(3.0)}

    told = jax.jit(lambda p: measures.term_gradients(terms, p))({"w": jnp.ones(4)})
    assert float(told["grad_norm/a"]) == pytest.approx(4.0)
    assert float(told["cosine/a|b"]) == pytest.approx(-1.0)
    assert float(told["cosine/a|none"]) == 0.0
    assert float(measures.loss_terms({"a": jnp.float32(3)})["loss/a"]) == 3.0


@pytest.mark.slow
def test_activations_tell_dead_units_saturation_and_samples_that_are_alike() -> None:
    dead = jnp.concatenate([jnp.zeros((6, 3)), jnp.arange(1.0, 7.0)[:, None]], axis=1)
    told = measures.activations({"h": dead, "same": jnp.broadcast_to(jnp.arange(4.0), (6, 4)),
                                 "tanh": jnp.ones((2, 2))})
    assert float(told["activation/h/dead_share"]) == pytest.approx(0.75)
    assert float(told["activation/h/largest"]) == 6.0
    assert float(told["activation/same/sample_spread"]) == 0.0
    assert float(told["activation/tanh/saturated_share"]) == 1.0


@pytest.mark.slow
def test_memory_is_known_from_the_types() -> None:
    tree = {"w": jnp.zeros((512, 512)), "half": jnp.zeros((512, 1024), jnp.bfloat16)}
    assert float(measures.held({"parameters": tree})["memory/parameters"]) == pytest.approx(2.0)


def training(report: bool, spread: bool, steps: int = 60) -> Any:
    @jax.jit
    def step(p: Any, i: Any, x: Any) -> Any:
        def loss(p: Any) -> Any:
            z = x @ p
            indices = jnp.argmax(z + (jax.random.gumbel(jax.random.fold_in(KEY, i), z.shape) * 1e3 if spread else 0.0),
                                 axis=-1)
            if report:
                measures.report(i, measures.codes(indices, SIZE) | measures.activations({"z": z})
                                | measures.loss_terms({"recon": (z ** 2).mean()}), every=10)
            return (z ** 2).mean()

        value, g = jax.value_and_grad(loss)(p)
        return p - 0.01 * g, i + 1, value

    p, i = jnp.ones((4, SIZE)), jnp.int32(0)
    x = jnp.asarray(np.random.default_rng(0).normal(size=(128, 4)), jnp.float32)
    for _ in range(steps):
        p, i, value = step(p, i, x)
    return np.asarray(p).tobytes(), float(value)


def findings(tmp_path: Path, spread: bool) -> tuple[Finding, ...]:
    kept: list[Any] = []
    found = watched(lambda: kept.append(training(True, spread)), Settings(str(tmp_path), ("always",)))
    assert kept == [training(False, spread)]
    return found


@pytest.mark.slow
def test_a_collapsed_codebook_is_told_and_the_results_stay_the_same(tmp_path: Path) -> None:
    found = [f for f in findings(tmp_path, spread=False) if f.severity.rank >= 2]
    assert [f.rule for f in found] == ["J801"]
    assert found[0].measured["size"] == SIZE
    reports = recorded(tmp_path)
    assert [r["step"] for r in reports] == [0, 10, 20, 30, 40, 50]
    assert {"codebook_perplexity", "activation/z/rms", "loss/recon", "memory"} <= set(reports[0])


@pytest.mark.slow
def test_a_codebook_in_use_is_silent(tmp_path: Path) -> None:
    assert [f for f in findings(tmp_path, spread=True) if f.severity.rank >= 1] == []


def test_without_a_run_nothing_is_compiled_in() -> None:
    def step(i: Any, x: Any) -> Any:
        measures.report(i, {"rms": x.std()}, every=10)
        return x * 2

    assert "io_callback" not in str(jax.make_jaxpr(step)(0, jnp.ones(3)))


def test_one_unordered_transfer_an_interval_also_inside_scan(tmp_path: Path) -> None:
    told: list[str] = []

    def program() -> None:
        def body(c: Any, i: Any) -> tuple[Any, None]:
            measures.report(i, {"carry_rms": c, "double_rms": 2 * c}, every=25)
            return c + 1.0, None

        run = jax.jit(lambda: lax.scan(body, 0.0, jnp.arange(100))[0])
        told.append(str(jax.make_jaxpr(run)()))
        jax.block_until_ready(run())

    watched(program, Settings(str(tmp_path), ("always",)))
    assert told[0].count("io_callback[") == 1
    assert "ordered=False" in told[0]
    assert sorted(r["step"] for r in recorded(tmp_path)) == [0, 25, 50, 75]


@pytest.mark.parametrize(("values", "every", "message"), [
    ({"x": jnp.ones(3)}, 1, r"takes scalars, got x of shape \(3,\)"), ({"x": 1.0}, 0, "at least 1, got 0")])
def test_what_cannot_be_reported_is_said(values: Any, every: int, message: str, tmp_path: Path) -> None:
    errors: list[str] = []

    def program() -> None:
        try:
            measures.report(0, values, every=every)
        except ValueError as error:
            errors.append(str(error))

    watched(program, Settings(str(tmp_path), ("always",)))
    assert re.search(message, errors[0])
