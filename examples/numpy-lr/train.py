"""Predict from 16 sensor readings whether a pump fails within a week: logistic regression, numpy only."""

import argparse
import csv
import math
import time

import numpy as np

SEED = 7
FEATURES = 16
TRAIN_ROWS, VALID_ROWS = 6000, 1500
BATCH = 64
STEPS = 3000
PEAK_LR = 0.005
WARMUP = 100
MOMENTUM = 0.9
WEIGHT_DECAY = 1e-5
LOG_EVERY, EVAL_EVERY = 25, 250
EPS = 1e-12  # keeps the logarithms away from zero


def make_rows(rng, rows):
    """Readings with a few heavy tails, as vibration sensors have them, and a rule that separates most of them."""
    x = rng.normal(size=(rows, FEATURES))
    x[:, :4] = np.sign(x[:, :4]) * np.abs(x[:, :4]) ** 1.5
    rule = np.linspace(1.5, -1.5, FEATURES)
    y = (x @ rule + rng.normal(scale=0.6, size=rows) > 0.0).astype(np.float32)
    return x.astype(np.float32), y


def learning_rate(step, steps):
    if step < WARMUP:
        return PEAK_LR * (step + 1) / WARMUP
    done = (step - WARMUP) / max(1, steps - WARMUP)
    return PEAK_LR * 0.5 * (1.0 + math.cos(math.pi * done))


def sigmoid(z):
    return (1.0 / (1.0 + np.exp(-z))).astype(np.float32)


def binary_cross_entropy(prob, label):
    """The mean loss and its gradient with respect to the probabilities."""
    prob = np.clip(prob, EPS, 1.0 - EPS)
    loss = -np.mean(label * np.log(prob) + (1.0 - label) * np.log(1.0 - prob))
    grad = ((1.0 - label) / (1.0 - prob) - label / prob) / len(label)
    return loss, grad


def evaluate(weight, bias, x, y):
    prob = sigmoid(x @ weight + bias)
    loss, _ = binary_cross_entropy(prob, y)
    return float(loss), float(np.mean((prob > 0.5) == (y > 0.5)))


def train(steps, out):
    rng = np.random.default_rng(SEED)
    x, y = make_rows(rng, TRAIN_ROWS)
    x_valid, y_valid = make_rows(rng, VALID_ROWS)
    weight = (rng.normal(size=FEATURES) * 0.01).astype(np.float32)
    bias = np.float32(0.0)
    velocity_w, velocity_b = np.zeros_like(weight), np.float32(0.0)
    print(f"{TRAIN_ROWS} training rows, {VALID_ROWS} validation rows, {FEATURES} features, {weight.dtype}", flush=True)

    table = csv.writer(out)
    table.writerow(["step", "loss", "grad_norm", "lr", "val_loss", "val_acc"])
    started = time.time()
    for step in range(steps):
        rows = rng.integers(0, TRAIN_ROWS, size=BATCH)
        batch, label = x[rows], y[rows]
        prob = sigmoid(batch @ weight + bias)
        loss, grad_prob = binary_cross_entropy(prob, label)
        grad_logit = grad_prob * prob * (1.0 - prob)
        grad_w = batch.T @ grad_logit + WEIGHT_DECAY * weight
        grad_b = grad_logit.sum()
        norm = float(np.sqrt(np.sum(grad_w**2) + grad_b**2))

        lr = np.float32(learning_rate(step, steps))
        velocity_w = np.float32(MOMENTUM) * velocity_w + grad_w
        velocity_b = np.float32(MOMENTUM) * velocity_b + grad_b
        weight = weight - lr * velocity_w
        bias = bias - lr * velocity_b

        done = step + 1
        valid = evaluate(weight, bias, x_valid, y_valid) if done % EVAL_EVERY == 0 else None
        if done % LOG_EVERY == 0:
            print(f"step {done:5d}/{steps}  loss {loss:.5f}  grad_norm {norm:.4f}  lr {lr:.3e}", flush=True)
            table.writerow([done, f"{loss:.6f}", f"{norm:.6f}", f"{lr:.6e}", *(valid or ("", ""))])
        if valid:
            print(f"eval step {done:5d}  val_loss {valid[0]:.5f}  val_acc {valid[1]:.4f}", flush=True)
    print(f"done: {steps} steps in {time.time() - started:.1f} s")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=STEPS)
    parser.add_argument("--csv", default="metrics.csv", help="where the table of metrics goes")
    args = parser.parse_args()
    with open(args.csv, "w", newline="") as file:
        train(args.steps, file)
