"""Healthy runs of many kinds: none of the numerics, learning-rate, resource and rank rules says more than a remark."""

from __future__ import annotations

import math

import numpy as np
import pytest
from numerics_builder import run, series, serious

from traindx_tools.on_logs.run import Run

N_SEEDS = 300


def cosine(n: int, floor: float, warm: int) -> np.ndarray:
    t = np.arange(1, n + 1)
    u = np.clip((t - warm) / max(1, n - warm), 0, 1)
    return np.where(t < warm, t / max(1, warm), floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * u)))


def linear(n: int, floor: float, warm: int) -> np.ndarray:
    t = np.arange(1, n + 1)
    return np.where(t < warm, t / max(1, warm), np.maximum(floor, 1 - (t - warm) / max(1, n - warm)))


def polynomial(n: int, floor: float, warm: int) -> np.ndarray:
    return np.maximum(floor, linear(n, 0.0, warm) ** 2)


def constant(n: int, floor: float, warm: int) -> np.ndarray:
    return np.ones(n)


def inverse_sqrt(n: int, floor: float, warm: int) -> np.ndarray:
    t, w = np.arange(1, n + 1), max(1, warm)
    return np.minimum(t / w, np.sqrt(w / t))


def wsd(n: int, floor: float, warm: int) -> np.ndarray:
    t, down = np.arange(1, n + 1), int(0.8 * n)
    return np.where(t < warm, t / max(1, warm), np.where(t < down, 1.0, np.maximum(floor, (n - t) / (n - down))))


def one_cycle(n: int, floor: float, warm: int) -> np.ndarray:
    t, up = np.arange(1, n + 1), max(1, int(0.3 * n))
    rise = 0.04 + 0.96 * 0.5 * (1 - np.cos(np.pi * np.minimum(t / up, 1)))
    fall = 1e-5 + 0.5 * (1 + np.cos(np.pi * np.clip((t - up) / (n - up), 0, 1)))
    return np.where(t <= up, rise, fall)


def step_decay(n: int, floor: float, warm: int) -> np.ndarray:
    t = np.arange(1, n + 1)
    return 0.1 ** ((t > 0.5 * n).astype(float) + (t > 0.75 * n))


def restarts(n: int, floor: float, warm: int) -> np.ndarray:
    t, period = np.arange(n), max(4, n // 4)
    return floor + (1 - floor) * 0.5 * (1 + np.cos(np.pi * (t % period) / period))


def growing_restarts(n: int, floor: float, warm: int) -> np.ndarray:
    out, length = np.empty(0), max(4, n // 7)
    while len(out) < n:
        out = np.concatenate([out, 0.5 * (1 + np.cos(np.pi * np.arange(length) / length))])
        length *= 2
    return out[:n]


def triangular(n: int, floor: float, warm: int) -> np.ndarray:
    phase = (np.arange(n) / max(8, n // 5)) % 1.0
    return 0.1 + 0.9 * (1 - np.abs(2 * phase - 1))


def exponential(n: int, floor: float, warm: int) -> np.ndarray:
    return 10 ** (-2.0 * np.arange(n) / n)


SCHEDULES = (cosine, linear, polynomial, constant, inverse_sqrt, wsd, one_cycle, step_decay, restarts, growing_restarts,
             triangular, exponential)


def printed(values: np.ndarray, how: int) -> np.ndarray:
    """As a log prints them: full, three digits in scientific form, or a fixed number of decimals."""
    if how == 0:
        return values
    if how == 1:
        return np.array([float(f"{v:.3e}") for v in values])
    return np.round(values, 7)


def healthy(seed: int) -> Run:
    """A run that learns: power-law or exponential decay of the loss, noise, a common schedule, all usual metrics."""
    rng = np.random.default_rng(seed)
    planned = int(rng.choice([40, 100, 300, 1000, 5000, 20000]))
    every = int(rng.choice([1, 5, 10, 50])) if planned >= 300 else 1
    every = max(every, planned // 1500)
    warm = int(rng.choice([0, 0.02 * planned, 0.1 * planned]))
    shape = SCHEDULES[seed % len(SCHEDULES)]
    peak = 10 ** rng.uniform(-5, -1)
    floor = float(rng.choice([0.0, 0.0, 0.01, 0.1]))
    stopped = rng.random() < 0.3
    logged = np.arange(every, (int(planned * rng.uniform(0.3, 1)) if stopped else planned) + 1, every)
    u = logged / planned
    if rng.random() < 0.5:
        loss = rng.uniform(0.05, 1) + rng.uniform(1, 10) * (1 + 50 * u) ** -rng.uniform(0.3, 1.0)
    else:
        loss = rng.uniform(0.01, 1) + rng.uniform(1, 8) * np.exp(-u * rng.uniform(2, 12))
    if rng.random() < 0.1:
        loss = loss * 10 ** rng.uniform(-3, 4)
    loss = loss * np.exp(rng.normal(0, rng.choice([0.005, 0.03, 0.1]), len(u)))
    if rng.random() < 0.3 and len(loss) > 30:
        loss[int(rng.integers(10, len(loss) - 5))] *= rng.uniform(2, 6)
    grad = rng.uniform(0.1, 20) * (0.3 + np.exp(-5 * u)) * np.exp(rng.normal(0, 0.3, len(u)))
    lr = printed(peak * shape(planned, floor, warm)[logged - 1], int(rng.integers(0, 3)) if peak > 1e-4 else 1)
    memory = rng.uniform(500, 40000) * (1 - 0.6 * np.exp(-np.arange(len(u)) / 2)) * (1 + rng.normal(0, 0.01, len(u)))
    step_time = rng.uniform(0.01, 2) * np.exp(rng.normal(0, 0.2, len(u)))
    step_time[0] *= 30
    data_time = step_time * rng.uniform(0.01, 0.2)
    data_time[0] = step_time[0] * 0.9
    scale = 2.0 ** (16 - np.minimum(np.arange(len(u)), 3)) * np.where(u > 0.7, 2.0, 1.0)
    steps = {"step": logged.astype(float), "time": np.cumsum(step_time * every)}
    known = {"planned_steps": float(planned)} if rng.random() < 0.6 or stopped else {}
    return run(series("loss", loss, **steps), series("grad_norm", grad, **steps),
               series("learning_rate", lr, **steps), series("memory", memory, **steps),
               series("step_time", step_time, **steps), series("data_time", data_time, **steps),
               series("loss_scale", scale, **steps), **known)


@pytest.mark.parametrize("block", [*range(4), *(pytest.param(n, marks=pytest.mark.slow) for n in range(4, 10))])
def test_generated_healthy_runs_are_left_alone(block: int) -> None:
    size = N_SEEDS // 10
    alarms = {seed: [f"{f.rule}: {f.statement}" for f in serious(healthy(seed))]
              for seed in range(block * size, (block + 1) * size)}
    assert {s: a for s, a in alarms.items() if a} == {}


def test_the_generator_makes_runs_of_every_schedule_and_size() -> None:
    sizes = {len(healthy(seed).series[0]) for seed in range(60)}
    assert min(sizes) < 40
    assert max(sizes) > 500


def test_gan_losses_that_oscillate() -> None:
    t = np.arange(200)
    rng = np.random.default_rng(1)
    d = 1.2 + 0.3 * np.sin(t / 9) + rng.normal(0, 0.1, 200)
    g = 0.9 + 0.5 * np.sin(t / 9 + 2) + rng.normal(0, 0.1, 200) + t / 300
    assert serious(run(series("discriminator_loss", d), series("generator_loss", g))) == []


def test_policy_loss_around_zero() -> None:
    rng = np.random.default_rng(2)
    loss = np.cumsum(rng.normal(0, 0.01, 150))
    loss[:10] = 0.0
    assert serious(run(series("loss", loss), series("reward", np.linspace(0.1, 0.6, 150)),
                       series("grad_norm", 0.2 + 0.1 * rng.random(150)),
                       series("learning_rate", np.full(150, 1e-6)))) == []


def test_log_likelihood_below_zero() -> None:
    rng = np.random.default_rng(3)
    nll = 2 - 6 * (1 - np.exp(-np.arange(120) / 25)) + rng.normal(0, 0.1, 120)
    assert serious(run(series("nll", nll))) == []


def test_gradient_that_shrinks_as_the_loss_converges() -> None:
    loss = 2.3 * np.exp(-np.arange(100) / 8)
    assert serious(run(series("loss", loss), series("grad_norm", 3 * loss))) == []


def test_rounded_loss_and_gradient_at_the_end_of_a_descent() -> None:
    loss = np.round(2.3 * np.exp(-np.arange(60) / 4), 4)
    assert serious(run(series("loss", loss), series("grad_norm", np.round(loss, 4)))) == []


def test_learning_rate_that_is_printed_as_zero_near_its_end() -> None:
    n = 40
    lr = np.round(3e-4 * 0.5 * (1 + np.cos(np.pi * np.arange(1, n + 1) / n)), 4)
    loss = 2 * np.exp(-np.arange(n) / 10) + 0.3
    assert lr[-8:].max() == 0
    assert serious(run(series("loss", loss), series("learning_rate", lr), planned_steps=float(n))) == []


def test_constant_small_learning_rate_printed_as_zero() -> None:
    loss = 2 * np.exp(-np.arange(40) / 10) + 0.3
    assert serious(run(series("loss", loss), series("learning_rate", np.zeros(40)))) == []


def test_overflowing_gradient_norm_at_the_first_scaled_steps() -> None:
    grad = np.full(50, 1.2)
    grad[:2] = np.inf
    scale = np.full(50, 16384.0)
    scale[:2] = 65536, 32768
    loss = 2 * np.exp(-np.arange(50) / 10) + 0.3
    assert serious(run(series("loss", loss), series("grad_norm", grad), series("loss_scale", scale))) == []


def test_bfloat16_scale_of_one() -> None:
    loss = 2 * np.exp(-np.arange(50) / 10) + 0.3
    assert serious(run(series("loss", loss), series("loss_scale", np.ones(50)))) == []


def test_large_targets_that_are_learned() -> None:
    loss = 5e9 * np.exp(-np.arange(60) / 12) + 1e8
    assert serious(run(series("loss", loss), series("grad_norm", 1e5 * np.exp(-np.arange(60) / 12) + 2e3))) == []


@pytest.mark.parametrize("epochs", [5, 10, 30])
def test_one_record_an_epoch_with_a_decay_on_time(epochs: int) -> None:
    e = np.arange(1, epochs + 1, dtype=float)
    lr = 5e-4 * (1 - (e - 0.5) / epochs)
    loss = 0.45 + 0.2 / e
    kw = {"step": None, "epoch": e}
    assert serious(run(series("loss", loss, **kw), series("learning_rate", lr, **kw), planned_steps=float(epochs),
                       planned_unit="epoch")) == []


def test_step_counter_that_starts_again_every_epoch() -> None:
    per, epochs = 36, 5
    steps = np.tile(np.arange(6, per + 1, 6.0), epochs)
    n = len(steps)
    u = np.arange(n) / (n - 1)
    assert serious(run(series("loss", 2 * np.exp(-3 * u) + 0.3, step=steps),
                       series("learning_rate", 1e-3 * 0.5 * (1 + np.cos(math.pi * u)), step=steps),
                       planned_steps=float(per))) == []


def test_ranks_with_their_own_losses() -> None:
    rng = np.random.default_rng(5)
    loss = 2 * np.exp(-np.arange(40) / 10) + 0.3
    both = [series(name, values, rank=r) for r in (0, 1)
            for name, values in (("loss", loss + rng.normal(0, 0.02, 40)), ("learning_rate", np.full(40, 1e-3)),
                                 ("grad_norm", 1 / (1 + np.arange(40.0))))]
    assert serious(run(*both, world_size=2)) == []


def test_log_of_one_machine_of_two() -> None:
    loss = 2 * np.exp(-np.arange(40) / 10) + 0.3
    assert serious(run(*(series("loss", loss, rank=r) for r in range(8)), world_size=16)) == []


def test_evaluation_pauses() -> None:
    gaps = np.full(100, 5.0)
    gaps[19::20] = 700.0
    loss = 2 * np.exp(-np.arange(100) / 10) + 0.3
    assert serious(run(series("loss", loss, time=np.cumsum(gaps)))) == []
