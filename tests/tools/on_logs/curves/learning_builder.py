"""Runs with known learning behaviour: series by hand, and families of generated healthy and faulty runs."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Note, Run, Series

Floats = NDArray[np.float64]
Maker = Callable[[np.random.Generator], Run]

RULES = (
    "l201_plateau",
    "l202_arithmetic_constant",
    "l203_overfitting",
    "l204_train_validation_gap",
    "l205_loss_accuracy_contradiction",
    "l206_sawtooth",
    "l207_step_at_boundary",
    "l208_train_good_eval_chance",
    "l209_component_domination",
    "l210_dead_term",
    "l211_accuracy_at_chance",
    "l212_converged",
    "l213_prediction_collapse",
    "l214_component_disparity",
    "l215_metric_unchanged",
    "l216_metric_exactly_constant",
    "l217_never_moves",
    "l218_rise_after_change",
    "l219_weights_shrink",
    "l220_inactive_units",
    "l221_test_below_validation",
    "l222_spike_then_stuck",
    "l223_worse_than_no_skill",
    "l601_codebook_collapse",
    "l602_advantages_zero",
    "l603_entropy_collapse",
    "l604_reward_flat",
    "l605_kl_anomaly",
    "l606_gan_imbalance",
    "l607_posterior_collapse",
    "l608_clip_or_norm_at_bound",
)


def series(
    name: str,
    values: Iterable[float],
    *,
    group: str = "train",
    every: float = 10,
    start: float | None = None,
    epochs: bool = False,
    epoch: Iterable[float] | None = None,
    original: str | None = None,
    source: str = "train.log",
    lines: Iterable[int] | None = None,
) -> Series:
    """A series that counts steps (`every`, 2 * `every`, ...), or epochs 1, 2, ... where `epochs`."""
    v = np.asarray(list(values), dtype=np.float64)
    n = len(v)
    nothing = np.full(n, math.nan)
    counted = (every if start is None else start) + every * np.arange(n)
    given = nothing if epoch is None else np.asarray(list(epoch), dtype=np.float64)
    return Series(
        name=name,
        original=original or name,
        group=group,
        source=source,
        values=v,
        step=nothing if epochs else counted,
        epoch=np.arange(1.0, n + 1) if epochs else given,
        time=nothing,
        line=np.asarray(list(lines), dtype=np.int64) if lines is not None else np.arange(1, n + 1),
    )


def run(*found: Series, notes: tuple[Note, ...] = (), **config: Any) -> Run:
    """A run of these series; keywords are its configuration."""
    return Run(series=found, notes=notes, config=config)


def read(folder: Path, **files: str) -> Run:
    """The run that the readers make of these texts; `log` becomes log.txt, `config` config.yaml, `csv` metrics.csv."""
    names = {"log": "log.txt", "config": "config.yaml", "csv": "metrics.csv", "jsonl": "metrics.jsonl"}
    for kind, text in files.items():
        (folder / names[kind]).write_text(text)
    return read_run([folder])


def check_of(module: str) -> Callable[[Run], Iterator[Finding]]:
    check: Callable[[Run], Iterator[Finding]] = import_module(f"traindx_tools.on_logs.curves.{module}").check
    return check


def findings(r: Run, *modules: str) -> list[Finding]:
    """What these rules find, all rules of learning and of domains by default."""
    return [f for m in modules or RULES for f in check_of(m)(r)]


def serious(r: Run, *modules: str) -> list[Finding]:
    """The findings above INFO."""
    return [f for f in findings(r, *modules) if f.severity is not Severity.INFO]


def only(r: Run, module: str) -> Finding:
    """The single finding of one rule."""
    found = findings(r, module)
    assert len(found) == 1, [f.statement for f in found]
    return found[0]


def decay(rng: np.random.Generator, n: int, first: float, last: float, noise: float, speed: float = 4.0) -> Floats:
    """An exponential course from `first` to `last` with relative noise."""
    t = np.arange(n) / max(1, n - 1)
    course = last + (first - last) * np.exp(-speed * t)
    return np.maximum(course * (1 + noise * rng.standard_normal(n)), 1e-5)


def digits(values: Iterable[float], places: int = 4) -> Floats:
    """What is left of values that a log prints with so many decimal places."""
    return np.round(np.asarray(list(values), dtype=np.float64), places)


# ---- healthy -------------------------------------------------------------------------------------------------------


def classification(rng: np.random.Generator) -> Run:
    classes = int(rng.choice([2, 3, 4, 10, 20, 100]))
    n, chance = int(rng.integers(8, 60)), math.log(classes)
    hard = rng.uniform(0.05, 0.45)
    speed = rng.uniform(2.5, 7)
    train = decay(rng, n, chance * rng.uniform(0.7, 1.02), chance * hard, rng.uniform(0.002, 0.03), speed)
    val = decay(
        rng,
        n,
        chance * rng.uniform(0.75, 1.0),
        chance * (hard + rng.uniform(-0.03, 0.1)),
        rng.uniform(0.002, 0.03),
        speed,
    )
    top = 1 - 0.9 * hard
    acc = np.clip(
        top - (top - 1.3 / classes) * np.exp(-speed * np.arange(n) / n) + 0.005 * rng.standard_normal(n), 0, 1
    )
    config = {"num_classes": classes} if rng.random() < 0.5 else {}
    percent = 100.0 if rng.random() < 0.3 else 1.0
    return run(
        series("loss", digits(train), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(acc * percent), group="validation", epochs=True),
        **config,
    )


def noisy_steps(rng: np.random.Generator) -> Run:
    n = int(rng.integers(40, 400))
    first = rng.uniform(1, 8)
    return run(
        series("loss", digits(decay(rng, n, first, first * rng.uniform(0.2, 0.7), rng.uniform(0.05, 0.25), 3))),
        series("grad_norm", digits(rng.lognormal(0, 0.4, n))),
    )


def slow_progress(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 150))
    first = rng.uniform(1, 9)
    course = np.linspace(first, first * rng.uniform(0.75, 0.9), n) * (1 + 0.005 * rng.standard_normal(n))
    return run(series("loss", digits(course)))


def regression(rng: np.random.Generator) -> Run:
    n, variance = int(rng.integers(10, 60)), 10 ** rng.uniform(-2, 3)
    mse = decay(rng, n, variance, variance * rng.uniform(0.02, 0.4), rng.uniform(0.005, 0.05), rng.uniform(3, 8))
    r2 = np.clip(1 - mse / variance * rng.uniform(1.0, 1.2), -0.2, 1)
    return run(
        series("mse", mse, epochs=True),
        series("r2", digits(r2), group="validation", epochs=True),
        series("prediction_std", np.sqrt(variance * np.maximum(r2, 0.01)), epochs=True),
    )


def language_model(rng: np.random.Generator) -> Run:
    vocabulary = int(rng.choice([65, 1000, 32000, 50257]))
    n, evaluations = int(rng.integers(50, 300)), int(rng.integers(4, 12))
    first = math.log(vocabulary) * rng.uniform(1.0, 1.03)
    last = first * rng.uniform(0.25, 0.5)
    train = decay(rng, n, first, last, rng.uniform(0.005, 0.03), rng.uniform(3, 8))
    val = decay(rng, evaluations, first * 0.9, last * rng.uniform(1.0, 1.05), 0.003, 5)
    config = {"vocab_size": vocabulary} if rng.random() < 0.5 else {}
    return run(
        series("loss", digits(train), every=10),
        series(
            "loss",
            digits(val),
            group="validation",
            every=10 * n / evaluations,
            lines=(np.arange(evaluations) * n // evaluations).tolist(),
        ),
        **config,
    )


def adversarial(rng: np.random.Generator) -> Run:
    n = int(rng.integers(15, 200))
    averaged = 0.5 if rng.random() < 0.4 else 1.0
    d = averaged * 1.386 * rng.uniform(0.6, 1.0) * (1 + rng.uniform(0.03, 0.3) * rng.standard_normal(n))
    g = rng.uniform(0.7, 1.8) * (1 + rng.uniform(0.05, 0.3) * rng.standard_normal(n))
    return run(
        series("discriminator_loss", digits(np.abs(d))),
        series("generator_loss", digits(np.abs(g))),
        series("d_x", np.clip(0.55 + 0.05 * rng.standard_normal(n), 0, 1), original="D(x)"),
        series("d_g_z", np.clip(0.45 + 0.05 * rng.standard_normal(n), 0, 1), original="D(G(z))"),
    )


def policy(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 200))
    t = np.arange(n) / n
    reward = (
        rng.uniform(0.05, 0.3)
        + rng.uniform(0.3, 0.6) * (1 - np.exp(-3 * t))
        + rng.uniform(0.01, 0.06) * rng.standard_normal(n)
    )
    advantages = np.abs(1.5 + 0.3 * rng.standard_normal(n))
    entropy = rng.uniform(0.5, 2) * (1 - rng.uniform(0.2, 0.9) * t) + 0.02 * rng.standard_normal(n)
    kl = digits(0.1 * t * rng.uniform(0.1, 1) + 1e-3 * np.abs(rng.standard_normal(n)), 5)
    kl[0] = 0.0
    loss = 0.02 * rng.standard_normal(n) if rng.random() < 0.7 else np.zeros(n)
    return run(
        series("loss/pg", loss, original="actor/pg_loss"),
        series("grad_norm", np.abs(0.3 + 0.1 * rng.standard_normal(n))),
        series("reward", digits(reward)),
        series("reward_std", np.abs(0.2 + 0.03 * rng.standard_normal(n))),
        series("advantage_max", advantages),
        series("advantage_min", -advantages),
        series("entropy", np.maximum(entropy, 0.05)),
        series("kl", kl),
        vocab_size=50257,
    )


def variational(rng: np.random.Generator) -> Run:
    n = int(rng.integers(10, 80))
    t = np.arange(n) / n
    kl = rng.uniform(3, 30) * (1 - np.exp(-rng.uniform(2, 6) * np.maximum(0, t - rng.uniform(0, 0.3)))) + 0.01
    recon = decay(rng, n, rng.uniform(100, 500), rng.uniform(40, 90), 0.01)
    return run(
        series("loss/recon", recon, epochs=True),
        series("kl", digits(kl), epochs=True),
        series("loss", recon + kl, epochs=True),
        beta=1.0,
    )


def quantized(rng: np.random.Generator) -> Run:
    n, size = int(rng.integers(10, 80)), int(rng.choice([64, 128, 512, 1024]))
    t = np.arange(n) / n
    start = rng.uniform(1, 0.3 * size)
    perplexity = start + (size * rng.uniform(0.3, 0.8) - start) * (1 - np.exp(-6 * t)) + 0.5 * rng.standard_normal(n)
    return run(
        series("loss/recon", decay(rng, n, 1.0, 0.1, 0.02)),
        series("loss/vq", decay(rng, n, 0.3, 0.03, 0.05)),
        series("codebook_perplexity", np.maximum(perplexity, 1)),
        series("codebook_size", np.full(n, size)),
        commitment=0.25,
    )


def fine_tuning(rng: np.random.Generator) -> Run:
    n, level = int(rng.integers(6, 40)), rng.uniform(0.05, 0.3)
    loss = level * (1 + 0.03 * rng.standard_normal(n)) * np.linspace(1, rng.uniform(0.97, 1.0), n)
    acc = np.clip(rng.uniform(0.9, 0.97) + 0.003 * rng.standard_normal(n), 0, 1)
    return run(
        series("loss", digits(loss), epochs=True),
        series("accuracy", digits(acc), epochs=True),
        series("loss", digits(loss * rng.uniform(0.95, 1.2)), group="validation", epochs=True),
        series("accuracy", digits(acc - rng.uniform(0, 0.02)), group="validation", epochs=True),
    )


def preference(rng: np.random.Generator) -> Run:
    n = int(rng.integers(15, 100))
    loss = decay(rng, n, math.log(2), rng.uniform(0.2, 0.55), 0.03)
    return run(
        series("loss", digits(loss)),
        series("reward/margins", np.linspace(0, 2, n), original="rewards/margins"),
        series("reward/chosen", np.linspace(0, 0.5, n), original="rewards/chosen"),
    )


def small_gap(rng: np.random.Generator) -> Run:
    """Training goes on falling; validation loss turns by less than 5 %."""
    n = int(rng.integers(12, 60))
    t = np.arange(n) / (n - 1)
    val = 0.5 + 0.6 * np.exp(-8 * t) + rng.uniform(0.0, 0.02) * t
    return run(
        series("loss", digits(decay(rng, n, 1.1, 0.3, 0.005)), epochs=True),
        series("loss", digits(val * (1 + 0.002 * rng.standard_normal(n))), group="validation", epochs=True),
        series("accuracy", digits(0.85 - 0.3 * np.exp(-6 * t)), group="validation", epochs=True),
    )


def augmented(rng: np.random.Generator) -> Run:
    """Training loss above validation loss throughout: dropout, augmentation, label smoothing in training."""
    n = int(rng.integers(10, 50))
    val = decay(rng, n, 2.0, rng.uniform(0.3, 0.8), rng.uniform(0.01, 0.06))
    train = decay(rng, n, 2.3, rng.uniform(0.9, 1.4), 0.01)
    acc = np.clip(0.85 - 0.6 * np.exp(-4 * np.arange(n) / n) + 0.01 * rng.standard_normal(n), 0, 1)
    return run(
        series("loss", digits(train), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(acc), group="validation", epochs=True),
    )


def smoothed_labels(rng: np.random.Generator) -> Run:
    n, classes, eps = int(rng.integers(10, 50)), int(rng.choice([10, 100, 1000])), 0.1
    right, other = 1 - eps + eps / classes, eps / classes
    floor = -right * math.log(right) - (classes - 1) * other * math.log(other)
    loss = decay(rng, n, math.log(classes), floor * 1.02, 0.003, 7)
    acc = np.clip(0.98 - 0.9 * np.exp(-8 * np.arange(n) / n), 0, 1)
    return run(
        series("loss", digits(loss), epochs=True),
        series("accuracy", digits(acc), epochs=True),
        series("loss", digits(loss * 1.03), group="validation", epochs=True),
        series("accuracy", digits(acc - 0.01), group="validation", epochs=True),
        label_smoothing=eps,
        num_classes=classes,
    )


def diffusion(rng: np.random.Generator) -> Run:
    n = int(rng.integers(30, 300))
    return run(series("loss", digits(decay(rng, n, 1.0, rng.uniform(0.02, 0.1), rng.uniform(0.1, 0.3), 12), 5)))


def multi_task(rng: np.random.Generator) -> Run:
    n = int(rng.integers(10, 100))
    parts = [decay(rng, n, rng.uniform(0.6, 1.0), rng.uniform(0.1, 0.45), 0.04) for _ in range(3)]
    return run(
        series("loss", np.mean(parts, axis=0)), *(series(f"loss/{k}", p) for k, p in zip("abc", parts, strict=True))
    )


def detector(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 100))
    terms = {
        "loss/cls": decay(rng, n, 2.5, 0.4, 0.05),
        "loss/box": 0.3 + 0.2 * np.exp(-np.arange(n) / n) + 0.01 * rng.standard_normal(n),
        "loss/rpn_loc": np.abs(0.08 + 0.01 * rng.standard_normal(n)),
    }
    return run(series("loss", np.sum(list(terms.values()), axis=0)), *(series(k, v) for k, v in terms.items()))


def epochs_of_steps(rng: np.random.Generator) -> Run:
    """Several records an epoch, with the step down that a second pass over the data gives."""
    per, epochs = int(rng.integers(5, 30)), int(rng.integers(4, 9))
    n = per * epochs
    down = 0.9 ** (np.arange(n) // per)
    return run(
        series("loss", digits(decay(rng, n, 3.0, 0.8, rng.uniform(0.01, 0.15)) * down), epoch=np.arange(n) // per)
    )


def long_warm_up(rng: np.random.Generator) -> Run:
    n, classes = int(rng.integers(30, 200)), int(rng.choice([2, 10, 100]))
    up = int(0.3 * n)
    course = np.concatenate(
        [np.full(up, math.log(classes)), decay(rng, n - up, math.log(classes), 0.3 * math.log(classes), 0.01)]
    )
    return run(series("loss", digits(course * (1 + 0.002 * rng.standard_normal(n)))), num_classes=classes)


def resumed(rng: np.random.Generator) -> Run:
    """The later part of a training: nearly flat from its first record."""
    n = int(rng.integers(20, 100))
    loss = rng.uniform(1.5, 3) * np.linspace(1, 0.995, n) * (1 + 0.003 * rng.standard_normal(n))
    return run(
        series("loss", digits(loss), start=50_000, every=100, lines=range(5, 5 + n)),
        notes=(Note("resume", "Resuming from checkpoint-50000", "train.log", 2),),
    )


def resumed_in_between(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 100))
    lines = np.concatenate([np.arange(1, n // 2 + 1), np.arange(n // 2 + 3, n + 3)])
    return run(
        series("loss", digits(decay(rng, n, 3.0, 1.0, rng.uniform(0.005, 0.05))), lines=lines),
        notes=(Note("resume", "Loaded checkpoint", "train.log", n // 2 + 1),),
    )


def pretrained_language_model(rng: np.random.Generator) -> Run:
    n, first = int(rng.integers(30, 200)), rng.uniform(1.5, 3)
    loss = np.linspace(first, first * rng.uniform(0.85, 0.97), n) * (
        1 + rng.uniform(0.02, 0.08) * rng.standard_normal(n)
    )
    return run(
        series("loss", digits(loss)),
        series("grad_norm", np.abs(1 + 0.2 * rng.standard_normal(n))),
        series("loss", digits(first * np.array([0.99, 0.96, 0.94])), group="validation", every=10 * n / 3),
    )


def environment_policy(rng: np.random.Generator) -> Run:
    """Continuous control: returns far below zero that rise through much noise; approx_kl prints as zero at times."""
    n = int(rng.integers(40, 200))
    reward = np.linspace(-1500, rng.uniform(-500, -100), n) + 150 * rng.standard_normal(n)
    kl = digits(np.abs(2e-4 * rng.standard_normal(n)), 4)
    return run(
        series("reward", reward, original="ep_rew_mean"),
        series("kl", kl, original="approx_kl"),
        series("loss/value", np.abs(300 + 50 * rng.standard_normal(n))),
        series("loss/policy_gradient", 0.01 * rng.standard_normal(n), original="policy_gradient_loss"),
        series("clip_fraction", np.abs(0.1 + 0.03 * rng.standard_normal(n))),
        series("entropy", np.linspace(1.4, 0.5, n)),
    )


def sparse_reward(rng: np.random.Generator) -> Run:
    n = int(rng.integers(40, 150))
    found = n // 3
    reward = np.concatenate([np.zeros(found), np.linspace(0, 0.9, n - found)]) + 0.02 * np.abs(rng.standard_normal(n))
    return run(series("reward", digits(reward)), series("advantage_max", np.abs(1 + rng.standard_normal(n) * 0.1)))


def wasserstein(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 100))
    return run(
        series("discriminator_loss", -np.abs(decay(rng, n, 20, 3, 0.1))),
        series("generator_loss", 5 * rng.standard_normal(n)),
    )


def contrastive(rng: np.random.Generator) -> Run:
    n, batch = int(rng.integers(15, 100)), int(rng.choice([64, 256, 4096]))
    return run(series("loss", digits(decay(rng, n, math.log(batch), math.log(batch) * rng.uniform(0.2, 0.7), 0.02))))


def sure_classifier(rng: np.random.Generator) -> Run:
    """A loss of a few hundredths that creeps up beside an accuracy of 99 %."""
    n = int(rng.integers(8, 30))
    t = np.arange(n) / (n - 1)
    val = 0.03 + 0.1 * np.exp(-10 * t) + 0.02 * t
    return run(
        series("loss", digits(decay(rng, n, 0.3, 0.002, 0.02, 6)), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(0.991 - 0.03 * np.exp(-8 * t)), group="validation", epochs=True),
    )


def few_epochs(rng: np.random.Generator) -> Run:
    """Fine-tuning for three epochs: validation is best at the second."""
    train = [0.45, 0.25, 0.14] * (1 + 0.05 * rng.standard_normal(3))
    val = [0.33, 0.30, 0.32] * (1 + 0.01 * rng.standard_normal(3))
    return run(
        series("loss", digits(train), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits([0.86, 0.89, 0.9]), group="validation", epochs=True),
        num_labels=2,
    )


def step_decay(rng: np.random.Generator) -> Run:
    n = 90
    loss = np.concatenate([decay(rng, 30, 2.3, 1.2, 0.02), np.full(30, 0.7), np.full(30, 0.5)]) * (
        1 + 0.02 * rng.standard_normal(n)
    )
    acc = np.clip(1 - loss / 3, 0, 1)
    return run(series("loss", digits(loss), epochs=True), series("accuracy", digits(acc), epochs=True))


def balanced_experts(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 80))
    lm, aux = decay(rng, n, 10.4, 3.2, 0.01), 1.0 + 0.01 * np.abs(rng.standard_normal(n))
    return run(series("loss", lm + 0.01 * aux), series("loss/lm", lm), series("loss/aux", digits(aux, 3)))


def clipped_gradients(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 80))
    return run(
        series("loss", decay(rng, n, 5, 2, 0.02)),
        series("grad_norm", np.minimum(1.0, rng.lognormal(0.7, 0.3, n))),
        max_grad_norm=1.0,
    )


def weighted_sum_of_terms(rng: np.random.Generator) -> Run:
    """A KL term that is summed and weighted: small against the reconstruction."""
    n = int(rng.integers(20, 80))
    recon, kl = decay(rng, n, 0.5, 0.05, 0.02), decay(rng, n, 0.01, 0.2, 0.05)
    return run(series("loss/recon", recon), series("loss/kl", kl), series("loss", recon + 0.1 * kl), kl_weight=0.1)


HEALTHY: tuple[Maker, ...] = (
    classification,
    noisy_steps,
    slow_progress,
    regression,
    language_model,
    adversarial,
    policy,
    variational,
    quantized,
    fine_tuning,
    preference,
    small_gap,
    augmented,
    smoothed_labels,
    diffusion,
    multi_task,
    detector,
    epochs_of_steps,
    long_warm_up,
    resumed,
    resumed_in_between,
    pretrained_language_model,
    environment_policy,
    sparse_reward,
    wasserstein,
    contrastive,
    sure_classifier,
    few_epochs,
    step_decay,
    balanced_experts,
    clipped_gradients,
    weighted_sum_of_terms,
)


# ---- faulty --------------------------------------------------------------------------------------------------------


def uniform_guess(rng: np.random.Generator) -> Run:
    classes = int(rng.choice([2, 3, 5, 10, 37, 100]))
    n = int(rng.integers(8, 60))
    loss = math.log(classes) * (1 + 0.0007 * rng.standard_normal(n)) + 0.02 * np.exp(-np.arange(n))
    acc = (1 + 0.05 * rng.standard_normal(n)) / classes
    return run(series("loss", digits(loss), epochs=True), series("accuracy", digits(acc), epochs=True))


def stuck_vocabulary(rng: np.random.Generator) -> Run:
    vocabulary = int(rng.choice([65, 8192, 32000, 50257]))
    n = int(rng.integers(15, 100))
    return run(
        series("loss", digits(math.log(vocabulary) * (1 + 0.001 * rng.standard_normal(n)))), vocab_size=vocabulary
    )


def coin_flip(rng: np.random.Generator) -> Run:
    n = int(rng.integers(10, 60))
    return run(
        series("loss", digits(math.log(2) * (1 + 0.0006 * rng.standard_normal(n)))),
        series("grad_norm", np.abs(rng.standard_normal(n)) * 1e-6),
    )


def double_softmax(rng: np.random.Generator) -> Run:
    classes, n = int(rng.choice([3, 4, 5, 6, 8, 10])), int(rng.integers(8, 40))
    floor = math.log(math.e + classes - 1) - 1
    acc = 1 - 0.03 * np.exp(-6 * np.arange(n) / n)
    val = floor + (1 - acc) + 0.05 * np.exp(-10 * np.arange(n) / n) + 0.0005
    return run(
        series("loss", digits(decay(rng, n, 0.8, 0.002, 0.02, 7)), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(acc), group="validation", epochs=True),
    )


def double_softmax_in_training(rng: np.random.Generator) -> Run:
    classes, n = int(rng.choice([5, 10, 20, 100])), int(rng.integers(12, 50))
    floor = math.log(math.e + classes - 1) - 1
    acc = 1 / classes + (rng.uniform(0.7, 0.95) - 1 / classes) * (1 - np.exp(-8 * np.arange(n) / n))
    loss = floor + (1 - acc)
    loss[0] = math.log(classes)
    return run(
        series("loss", digits(loss), epochs=True),
        series("accuracy", digits(acc), epochs=True),
        **({"num_classes": classes} if rng.random() < 0.5 else {}),
    )


def predicts_the_mean(rng: np.random.Generator) -> Run:
    n, variance = int(rng.integers(8, 40)), 10 ** rng.uniform(-2, 3)
    return run(
        series("mse", variance * (1 + 0.004 * rng.standard_normal(n)), epochs=True),
        series("r2", digits(0.01 + 0.008 * rng.standard_normal(n)), group="validation", epochs=True),
        series("prediction_std", 0.02 * math.sqrt(variance) * (1 + 0.2 * rng.standard_normal(n)), epochs=True),
    )


def crawls(rng: np.random.Generator) -> Run:
    n = int(rng.integers(15, 60))
    loss = rng.uniform(1, 6) * np.linspace(1, 0.993, n)
    acc = rng.uniform(0.1, 0.3) + np.linspace(0, 0.02, n)
    return run(series("loss", digits(loss), epochs=True), series("accuracy", digits(acc), epochs=True))


def overfits(rng: np.random.Generator) -> Run:
    n = int(rng.integers(8, 60))
    t = np.arange(n) / (n - 1)
    val = 0.5 + 0.4 * np.exp(-12 * t) + rng.uniform(0.2, 1.5) * np.maximum(0, t - 0.2)
    return run(
        series("loss", decay(rng, n, 1.0, 1e-4, 0.02, 8), epochs=True),
        series("loss", digits(val * (1 + 0.01 * rng.standard_normal(n))), group="validation", epochs=True),
        series("accuracy", digits(0.78 - 0.2 * np.exp(-9 * t) - 0.02 * t), group="validation", epochs=True),
    )


def runs_away(rng: np.random.Generator) -> Run:
    n = int(rng.integers(6, 30))
    val = rng.uniform(2, 6) * np.cumprod(1 + rng.uniform(0.2, 0.8, n))
    return run(
        series("loss", digits(decay(rng, n, 0.7, 0.1, 0.02)), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
    )


def apart_from_the_start(rng: np.random.Generator) -> Run:
    n = int(rng.integers(5, 30))
    train = decay(rng, n, 0.4, 0.02, 0.03)
    val = rng.uniform(3, 9) * (1 + 0.1 * rng.standard_normal(n))
    return run(
        series("loss", digits(train), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(0.3 + 0.05 * rng.standard_normal(n)), group="validation", epochs=True),
    )


def floored_validation(rng: np.random.Generator) -> Run:
    n = int(rng.integers(8, 40))
    val = rng.uniform(0.6, 3) * (1 + 0.002 * rng.standard_normal(n))
    return run(
        series("loss", digits(decay(rng, n, 0.8, 0.002, 0.02, 7)), epochs=True),
        series("loss", digits(val), group="validation", epochs=True),
        series("accuracy", digits(0.995 - 0.2 * np.exp(-9 * np.arange(n) / n)), group="validation", epochs=True),
    )


def saw(rng: np.random.Generator) -> Run:
    per, epochs = int(rng.integers(5, 40)), int(rng.integers(5, 10))
    tooth = np.tile(np.linspace(1.0, rng.uniform(0.2, 0.5), per), epochs)
    loss = rng.uniform(1, 5) * tooth * (1 + rng.uniform(0.01, 0.15) * rng.standard_normal(per * epochs))
    return run(series("loss", digits(np.abs(loss)), epoch=np.arange(per * epochs) // per + 1))


def jump_at_resume(rng: np.random.Generator) -> Run:
    n = int(rng.integers(20, 60))
    cut = n // 2
    loss = decay(rng, n, 2.0, 0.5, 0.01)
    loss[cut:] *= 1 + rng.uniform(0.4, 1.5) * np.exp(-np.arange(n - cut) / 5)
    lines = np.concatenate([np.arange(1, cut + 1), np.arange(cut + 2, n + 2)])
    return run(
        series("loss", digits(loss), lines=lines),
        series(
            "learning_rate", np.r_[np.linspace(0.1, 0.05, cut), 0.1, np.linspace(0.05, 0.0, n - cut - 1)], lines=lines
        ),
        notes=(Note("resume", "Resuming from last.ckpt", "train.log", cut + 1),),
    )


def eval_at_chance(rng: np.random.Generator) -> Run:
    n, classes = int(rng.integers(4, 30)), int(rng.choice([4, 8, 10]))
    return run(
        series("loss", digits(decay(rng, n, 0.1, 1e-3, 0.05))),
        series("accuracy", np.clip(0.99 + 0.003 * rng.standard_normal(n), 0, 1)),
        series("loss", digits(np.linspace(4, 8, n)), group="validation"),
        series("accuracy", digits((1 + 0.04 * rng.standard_normal(n)) / classes, 3), group="validation"),
    )


def heavy_commitment(rng: np.random.Generator) -> Run:
    n, weight = int(rng.integers(10, 60)), float(rng.choice([25.0, 50.0, 100.0]))
    return run(
        series("loss/recon", decay(rng, n, 0.9, 0.6, 0.03)),
        series("loss/commit", decay(rng, n, 0.3, 0.06, 0.05)),
        commitment_weight=weight,
    )


def summed_regulariser(rng: np.random.Generator) -> Run:
    n = int(rng.integers(10, 60))
    return run(series("loss/recon", decay(rng, n, 0.2, 0.1, 0.03)), series("kl", decay(rng, n, 40, 5, 0.03)))


def zero_term(rng: np.random.Generator) -> Run:
    n = int(rng.integers(6, 60))
    main = decay(rng, n, 3, 1, 0.02)
    return run(series("loss", main), series("loss/contrastive", np.zeros(n)), series("loss/ce", main))


def one_source_learns(rng: np.random.Generator) -> Run:
    n, parts = int(rng.integers(10, 200)), int(rng.integers(3, 6))
    stuck = [0.69 + 0.05 * rng.standard_normal(n) for _ in range(parts - 1)]
    learned = decay(rng, n, 0.6, 0.05, 0.05)
    names = ["wiki", "books", "chat", "maths", "law"][: parts - 1]
    return run(
        series("loss", np.mean([*stuck, learned], axis=0)),
        *(series(k, v) for k, v in zip(names, stuck, strict=True)),
        series("own", learned),
    )


def repeats_itself(rng: np.random.Generator) -> Run:
    n = int(rng.integers(3, 12))
    return run(
        series("loss", digits(0.5 + 0.05 * rng.standard_normal(10 * n))),
        series("grad_norm", np.abs(rng.standard_normal(10 * n))),
        series("loss", np.full(n, round(float(rng.uniform(1, 5)), 4) + 0.0003), group="validation"),
    )


def few_codes(rng: np.random.Generator) -> Run:
    n, size = int(rng.integers(8, 60)), int(rng.choice([64, 512, 1024]))
    return run(
        series("loss/recon", decay(rng, n, 1, 0.7, 0.03)),
        series("loss/vq", decay(rng, n, 0.3, 0.05, 0.03)),
        series("codebook_perplexity", 1 + rng.uniform(0, 0.05) * size * (1 + 0.1 * rng.standard_normal(n))),
        codebook_size=size,
    )


def no_advantages(rng: np.random.Generator) -> Run:
    n = int(rng.integers(6, 100))
    return run(
        series("reward", digits(0.3 + 0.05 * rng.standard_normal(n))),
        series("advantage_max", np.zeros(n)),
        series("advantage_min", np.zeros(n)),
        series("loss/pg", np.zeros(n), original="actor/pg_loss"),
        series("grad_norm", np.zeros(n)),
    )


def one_answer(rng: np.random.Generator) -> Run:
    n = int(rng.integers(12, 80))
    entropy = np.maximum(2.0 * np.exp(-12 * np.arange(n) / n), 0.002)
    reward = 0.4 - 0.25 * np.arange(n) / n + 0.02 * rng.standard_normal(n)
    return run(
        series("reward", reward),
        series("entropy", entropy),
        series("loss/pg", 0.01 * rng.standard_normal(n), original="pg_loss"),
    )


def reward_goes_nowhere(rng: np.random.Generator) -> Run:
    n = int(rng.integers(40, 200))
    noise = rng.standard_normal(n)
    t = np.arange(n) - (n - 1) / 2
    noise -= t * (t @ noise) / (t @ t)
    return run(
        series("reward", digits(0.4 + 0.03 * noise)),
        series("loss/pg", 0.01 * rng.standard_normal(n), original="pg_loss"),
    )


def no_divergence(rng: np.random.Generator) -> Run:
    n = int(rng.integers(8, 80))
    return run(
        series("reward", digits(0.4 + 0.03 * rng.standard_normal(n))),
        series("kl", np.zeros(n)),
        series("grad_norm", np.abs(0.1 + 0.01 * rng.standard_normal(n))),
        series("learning_rate", np.full(n, 1e-4)),
    )


def discriminator_wins(rng: np.random.Generator) -> Run:
    n = int(rng.integers(18, 100))
    return run(
        series(
            "discriminator_loss", digits(1.3 * np.exp(-15 * np.arange(n) / n) + 0.004 * np.abs(rng.standard_normal(n)))
        ),
        series("generator_loss", digits(1 + 7 * (1 - np.exp(-15 * np.arange(n) / n)) + 0.3 * rng.standard_normal(n))),
    )


def empty_code(rng: np.random.Generator) -> Run:
    n = int(rng.integers(12, 80))
    kl = 3 * np.exp(-20 * np.arange(n) / n) + 0.004 * (1 + 0.05 * rng.standard_normal(n))
    return run(series("loss/recon", decay(rng, n, 200, 150, 0.01), epochs=True), series("kl", digits(kl), epochs=True))


def vector_at_clamp(rng: np.random.Generator) -> Run:
    n, bound = int(rng.integers(10, 80)), float(rng.choice([5.0, 10.0, 15.0]))
    return run(
        series("lora_norm", np.minimum(bound, bound * (0.2 + 3 * np.arange(n) / n))),
        series("loss", decay(rng, n, 2, 1, 0.02)),
        lora_norm_clamp=bound,
    )


def metric_of_something_else(rng: np.random.Generator) -> Run:
    n = int(rng.integers(8, 60))
    return run(
        series("loss", digits(decay(rng, n, 2.3, 0.02, 0.02, 7)), epochs=True),
        series("accuracy", digits(0.1 + 0.004 * rng.standard_normal(n)), epochs=True),
    )


FAULTY: tuple[tuple[Maker, str], ...] = (
    (uniform_guess, "L201"),
    (uniform_guess, "L202"),
    (uniform_guess, "L211"),
    (stuck_vocabulary, "L202"),
    (coin_flip, "L202"),
    (double_softmax, "L202"),
    (double_softmax, "L205"),
    (double_softmax_in_training, "L202"),
    (predicts_the_mean, "L202"),
    (predicts_the_mean, "L213"),
    (predicts_the_mean, "L201"),
    (crawls, "L201"),
    (overfits, "L203"),
    (runs_away, "L204"),
    (apart_from_the_start, "L204"),
    (floored_validation, "L205"),
    (metric_of_something_else, "L205"),
    (saw, "L206"),
    (jump_at_resume, "L207"),
    (eval_at_chance, "L208"),
    (heavy_commitment, "L209"),
    (summed_regulariser, "L209"),
    (zero_term, "L210"),
    (one_source_learns, "L214"),
    (repeats_itself, "L215"),
    (few_codes, "L601"),
    (no_advantages, "L602"),
    (one_answer, "L603"),
    (reward_goes_nowhere, "L604"),
    (no_divergence, "L605"),
    (discriminator_wins, "L606"),
    (empty_code, "L607"),
    (vector_at_clamp, "L608"),
)
