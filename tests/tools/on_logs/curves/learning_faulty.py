"""Families of faulty runs, each with the rule that is to see it."""

from __future__ import annotations

import math

import numpy as np
from learning_builder import Maker, decay, digits, run, series

from traindx_tools.on_logs.run import Note, Run


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
