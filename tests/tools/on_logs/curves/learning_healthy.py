"""Families of healthy runs whose curves look odd by nature: what they are trained on explains them."""

from __future__ import annotations

import math

import numpy as np
from learning_builder import Maker, decay, digits, run, series

from traindx_tools.on_logs.run import Note, Run


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
    classification, noisy_steps, slow_progress, regression, language_model, adversarial, policy, variational,
    quantized, fine_tuning, preference, small_gap, augmented, smoothed_labels, diffusion, multi_task, detector,
    epochs_of_steps, long_warm_up, resumed, resumed_in_between, pretrained_language_model, environment_policy,
    sparse_reward, wasserstein, contrastive, sure_classifier, few_epochs, step_decay, balanced_experts,
    clipped_gradients, weighted_sum_of_terms,
)
