"""Generated faulty runs, other numbers every time: at least 95 % of each kind are found by the rule that is meant."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from numerics_builder import run, series, serious

from traindx_tools.on_logs.run import Run

N_SEEDS = 40
Maker = Callable[[np.random.Generator], Run]


def size(rng: np.random.Generator) -> tuple[int, int]:
    return int(rng.choice([12, 25, 60, 200, 800])), int(rng.choice([1, 2, 5, 10, 50]))


def falling(rng: np.random.Generator, n: int) -> np.ndarray:
    loss = rng.uniform(0.1, 0.8) + rng.uniform(0.7, 6) * np.exp(-np.arange(n) / n * rng.uniform(2, 8))
    return loss * np.exp(rng.normal(0, 0.02, n))


def abrupt_nan(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    loss = falling(rng, n)
    loss[int(rng.integers(3, n - 1)):] = np.nan
    return run(series("loss", loss, every=every))


def exploding(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    loss, grad = falling(rng, n), 1.5 * np.exp(rng.normal(0, 0.2, n))
    start, length = int(rng.integers(4, n - 6)), int(rng.integers(3, 6))
    grow = np.exp(np.linspace(1.5, rng.uniform(6, 20), length))
    grad[start: start + length] *= grow
    loss[start: start + length] *= 1 + grow / 50
    grad[start + length:] = np.nan
    loss[start + length:] = np.nan
    return run(series("loss", loss, every=every), series("grad_norm", grad, every=every))


def exploding_and_staying(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    start = int(rng.integers(n // 4, n // 2))
    grad = rng.uniform(0.5, 40) * np.exp(rng.normal(0, 0.2, n))
    up = np.minimum(np.arange(n - start) * 1.2, 6)
    grad[start:] *= np.exp(up) * 3
    loss = falling(rng, n)
    loss[start:] = loss[start] * np.exp(up / 2)
    return run(series("loss", loss, every=every), series("grad_norm", grad, every=every))


def diverging(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    loss = falling(rng, n)
    turn = int(rng.integers(n // 4, int(0.7 * n)))
    loss[turn:] = loss[turn] + (loss[0] - loss.min()) * rng.uniform(1, 6) * np.sqrt(np.linspace(0.05, 1, n - turn))
    return run(series("loss", loss * np.exp(rng.normal(0, 0.02, n)), every=every))


def rising_from_start(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    loss = rng.uniform(0.5, 5) * np.exp(np.linspace(0, rng.uniform(1, 4), n)) * np.exp(rng.normal(0, 0.05, n))
    return run(series("loss", loss, every=every))


def jumping(rng: np.random.Generator) -> Run:
    n, every = int(rng.integers(25, 400)), int(rng.choice([1, 10]))
    loss = falling(rng, n)
    at = int(rng.integers(n // 3, int(0.8 * n)))
    loss[at:] = loss[at - 1] * rng.uniform(2.2, 5) * np.exp(rng.normal(0, 0.02, n - at))
    return run(series("loss", loss, every=every))


def scale_walks_down(rng: np.random.Generator) -> Run:
    n, every = int(rng.integers(15, 100)), int(rng.choice([1, 4, 10]))
    start = int(rng.integers(2, n // 2))
    fall = np.maximum(0, np.arange(n) - start) * rng.integers(1, 5)
    scale = np.maximum(2.0 ** (int(rng.integers(8, 17)) - fall), float(rng.choice([1e-30, 1.0])))
    loss = falling(rng, n)
    if rng.random() < 0.7:
        loss[start:] = np.nan
    if scale[-1] > 1:
        scale[-3:] = 1.0
    return run(series("loss", loss, every=every), series("loss_scale", scale, every=every))


def zero_gradient(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    return run(series("loss", rng.uniform(0.5, 4) + rng.normal(0, 0.01, n), every=every),
               series("grad_norm", np.zeros(n), every=every))


def vanished_gradient(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    grad = 10 ** rng.uniform(-12, -7) * np.exp(rng.normal(0, 0.3, n))
    return run(series("loss", rng.uniform(0.5, 4) + rng.normal(0, 0.003, n), every=every),
               series("grad_norm", grad, every=every))


def decay_times(rng: np.random.Generator, k: int, shape: str, n: int, every: int) -> np.ndarray:
    steps = np.arange(1, n + 1) * every
    u = np.clip(steps * k / (n * every), 0, 1)
    peak = 10 ** rng.uniform(-5, -1)
    return peak * (1 - u if shape == "linear" else 0.5 * (1 + np.cos(np.pi * u)))


def too_fast(rng: np.random.Generator) -> Run:
    n, every = int(rng.integers(30, 300)), int(rng.choice([1, 5, 8, 10]))
    k = int(rng.integers(2, 5))
    shape = str(rng.choice(["linear", "cosine"]))
    lr = decay_times(rng, k, shape, n, every)
    if rng.random() < 0.5:
        lr = np.array([float(f"{v:.3e}") for v in lr])
    return run(series("loss", falling(rng, n), every=every), series("learning_rate", lr, every=every),
               planned_steps=float(n * every) if rng.random() < 0.7 else None, world_size=k)


def too_slow(rng: np.random.Generator) -> Run:
    n, every = int(rng.integers(30, 300)), int(rng.choice([1, 5, 10]))
    k = int(rng.integers(2, 9))
    steps = np.arange(1, n + 1) * every
    u = steps / (n * every * k)
    shape = str(rng.choice(["linear", "cosine"]))
    lr = 1e-3 * (1 - u if shape == "linear" else 0.5 * (1 + np.cos(np.pi * u)))
    return run(series("loss", falling(rng, n), every=every), series("learning_rate", lr, every=every),
               planned_steps=float(n * every), config={"gradient_accumulation_steps": k})


def geometric(rng: np.random.Generator) -> Run:
    n, every = int(rng.integers(20, 200)), int(rng.choice([1, 5, 10]))
    start = int(rng.integers(1, n // 4 + 1))
    total = n * every
    decades = rng.uniform(10, 60)
    lr = np.full(n, 10 ** rng.uniform(-4, -1))
    lr[:start] *= np.linspace(0.1, 1, start)
    lr[start:] *= 10 ** (-decades * np.arange(1, n - start + 1) / n)
    return run(series("loss", falling(rng, n), every=every), series("learning_rate", lr, every=every),
               planned_steps=float(total) if rng.random() < 0.5 else None)


def lr_back_at_resume(rng: np.random.Generator) -> Run:
    from numerics_builder import note

    n, every = int(rng.integers(15, 200)), int(rng.choice([1, 10]))
    lr = 0.1 * 0.5 * (1 + np.cos(np.pi * np.arange(n) / n))
    at = int(rng.integers(int(0.4 * n), int(0.85 * n)))
    stays = rng.random() < 0.5
    lr[at: (n if stays else at + 1)] = lr[: n - at] if stays else lr[0]
    loss = falling(rng, n)
    loss[at] *= 1.5
    return run(series("loss", loss, every=every), series("learning_rate", lr, every=every),
               notes=(note("resume", "resumed from checkpoint", at),) if rng.random() < 0.6 or not stays else ())


def lr_extreme(rng: np.random.Generator) -> Run:
    n = int(rng.integers(8, 60))
    loss = np.exp(np.arange(n, dtype=float) * rng.uniform(2, 8))
    loss[min(n - 2, int(rng.integers(4, 8))):] = np.nan
    return run(series("loss", loss), series("learning_rate", np.full(n, rng.uniform(5, 1000))),
               config={"optimizer": str(rng.choice(["SGD", "AdamW", "sgd"]))} if rng.random() < 0.5 else {})


def memory_grows(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    base = rng.uniform(200, 50000)
    memory = base * (1 + rng.uniform(0.3, 3) * np.arange(n) / n) + rng.normal(0, 0.003 * base, n)
    return run(series("memory", memory, every=every), series("loss", falling(rng, n), every=every))


def waits_for_data(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    step = rng.uniform(0.05, 3) * np.exp(rng.normal(0, 0.2, n))
    return run(series("step_time", step, every=every),
               series("data_time", step * np.clip(rng.uniform(0.6, 0.97) + rng.normal(0, 0.02, n), 0.55, 0.99),
                      every=every))


def stands_still(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    gaps = rng.uniform(1, 20) * np.exp(rng.normal(0, 0.2, n))
    gaps[int(rng.integers(3, n - 1))] = rng.uniform(2000, 40000)
    return run(series("loss", falling(rng, n), every=every, time=np.cumsum(gaps)))


def slows_down(rng: np.random.Generator) -> Run:
    n, every = size(rng)
    return run(series("step_time", rng.uniform(0.1, 2) * (1 + rng.uniform(1.5, 6) * np.arange(n) / n)
                      * np.exp(rng.normal(0, 0.1, n)), every=every))


KINDS: list[tuple[Maker, str]] = [
    (abrupt_nan, "L101"), (exploding, "L101"), (exploding, "L102"), (exploding_and_staying, "L102"),
    (diverging, "L106"), (rising_from_start, "L106"), (jumping, "L107"), (scale_walks_down, "L105"),
    (zero_gradient, "L104"), (vanished_gradient, "L103"), (too_fast, "L306"), (too_fast, "L301"), (too_slow, "L306"),
    (geometric, "L303"), (lr_back_at_resume, "L302"), (lr_extreme, "L307"), (memory_grows, "L401"),
    (waits_for_data, "L402"), (stands_still, "L403"), (slows_down, "L404"),
]


@pytest.mark.parametrize(("make", "rule"), KINDS, ids=[f"{m.__name__}-{r}" for m, r in KINDS])
def test_generated_faults_are_found(make: Maker, rule: str) -> None:
    missed = [seed for seed in range(N_SEEDS)
              if rule not in {f.rule for f in serious(make(np.random.default_rng(seed)))}]
    assert len(missed) <= 0.05 * N_SEEDS, missed
