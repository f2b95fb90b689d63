"""Whether healthy logs are left alone: 60 generated ones and two in the shape of each trainer, up to 200,000 steps.

    python benchmarks/healthy_logs.py [--seed 0] [--only NAME] [--most 200000] [--keep FOLDER]

Generated: families of runs (language models, classifiers, regression, diffusion, adversarial, reinforcement, mixtures
of experts, detectors, warm restarts, curricula, passes in one order) whose curves follow what such runs do: a power
law with coloured and heavy-tailed noise, evaluations that slow the next step, schedules with warm-up. Shaped: two
such runs in the print of each trainer. Every finding of medium or above is a false alarm and printed, also what goes
along with anomalies; the exit code is 1 where there is one.
"""

from __future__ import annotations

import argparse
import csv
import io
import json
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Row = dict[str, float]


@dataclass(frozen=True)
class Healthy:
    """One run: what it logs at each step, and now and then of the held-out data."""

    family: str
    steps: Floats
    train: dict[str, Floats]
    held_out: dict[str, Floats]
    """As long as the steps; NaN where nothing was evaluated."""
    epoch: int
    """Steps of an epoch."""

    def rows(self) -> list[tuple[int, Row, Row]]:
        """Step, what is logged of training, what of the evaluation."""
        names, others = list(self.train), list(self.held_out)
        trained = np.stack([self.train[n] for n in names], axis=1).tolist()
        held = np.stack([self.held_out[n] for n in others], axis=1).tolist() if others else [[]] * len(trained)
        return [(int(s), dict(zip(names, t, strict=True)),
                 {n: v for n, v in zip(others, h, strict=True) if v == v})
                for s, t, h in zip(self.steps.tolist(), trained, held, strict=True)]


def coloured(rng: np.random.Generator, count: int, memory: float) -> Floats:
    """Noise of unit spread; each value keeps a share of the one before."""
    white = rng.standard_normal(count) if rng.random() < 0.5 else rng.standard_t(5, count) / 1.29
    found = np.empty(count)
    kept = 0.0
    for i, w in enumerate(white.tolist()):
        kept = memory * kept + (1 - memory ** 2) ** 0.5 * w
        found[i] = kept
    return found


def falling(rng: np.random.Generator, t: Floats, top: float, floor: float, noise: float) -> Floats:
    """A loss from `top` towards `floor` by a power law, with noise that shrinks with it."""
    rest = (top - floor) * (1 + t / rng.uniform(20, 200)) ** -rng.uniform(0.3, 0.8)
    level = floor + rest
    found = level * (1 + noise * coloured(rng, len(t), rng.uniform(0, 0.5)))
    return np.maximum(found, 0.2 * floor)


def schedule(rng: np.random.Generator, t: Floats, total: float) -> Floats:
    """Warm-up, then cosine, linear or constant."""
    peak, warm = 10 ** rng.uniform(-4.5, -2.5), max(10.0, 0.02 * total)
    progress = np.clip((t - warm) / max(1.0, total - warm), 0, 1)
    kind = rng.integers(3)
    after = 0.1 + 0.45 * (1 + np.cos(np.pi * progress)) if kind == 0 else 1 - 0.9 * progress if kind == 1 else 1 + 0 * t
    return peak * np.where(t < warm, (t + 1) / warm, after)


def evaluated(values: Floats, every: int) -> Floats:
    """NaN but at each evaluation."""
    found = np.full(len(values), np.nan)
    found[every - 1::every] = values[every - 1::every]
    return found


def common(rng: np.random.Generator, t: Floats, total: float, every: int) -> dict[str, Floats]:
    """What most runs log besides the loss."""
    norm = rng.uniform(0.3, 2) * (1 + (2 * np.exp(-t / 50))) * np.exp(0.25 * coloured(rng, len(t), 0.2))
    second = rng.uniform(0.1, 0.8) * np.exp(0.04 * rng.standard_normal(len(t)))
    second[every - 1::every] *= 1.6  # the step after an evaluation waits for it
    return {"grad_norm": norm, "lr": schedule(rng, t, total), "step_time": second}


def language(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    loss = falling(rng, t, rng.uniform(9, 11), rng.uniform(2, 3), 0.015)
    held = falling(rng, t, 9.5, float(loss[-50:].mean()) + 0.05, 0.002)
    return {"loss": loss, **common(rng, t, float(t[-1]), every)}, {"loss": evaluated(held, every)}


def classifier(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    loss = falling(rng, t, 2.3, rng.uniform(0.05, 0.4), 0.08)
    right = np.clip(0.97 - 0.87 * (loss / 2.3) ** 0.7 + 0.02 * rng.standard_normal(len(t)), 0.05, 1)
    held = falling(rng, t, 2.3, rng.uniform(0.3, 0.5), 0.02)
    accuracy = np.clip(0.92 - 0.8 * (held / 2.3) ** 0.8, 0.05, 0.99)
    return ({"loss": loss, "accuracy": right, **common(rng, t, float(t[-1]), every)},
            {"loss": evaluated(held, every), "accuracy": evaluated(accuracy, every)})


def regression(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    loss = falling(rng, t, rng.uniform(0.8, 1.2), rng.uniform(0.02, 0.1), 0.1)
    return {"loss": loss, **common(rng, t, float(t[-1]), every)}, {"loss": evaluated(1.05 * loss, every)}


def diffusion(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    loss = falling(rng, t, 1.0, rng.uniform(0.05, 0.1), 0.2)
    return {"loss": loss, **common(rng, t, float(t[-1]), every)}, {}


def adversarial(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    wave = 0.1 * coloured(rng, len(t), 0.9)
    return {"d_loss": np.abs(1.25 + wave + 0.08 * rng.standard_normal(len(t))),
            "g_loss": np.abs(1.0 - wave + 0.1 * rng.standard_normal(len(t))),
            "lr": 2e-4 + 0 * t}, {}


def reinforced(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    reward = 200 * (1 - np.exp(-t / (0.3 * t[-1] + 1))) + 15 * coloured(rng, len(t), 0.3) + 20
    entropy = 0.2 + 1.1 * np.exp(-t / (0.5 * t[-1] + 1)) + 0.01 * rng.standard_normal(len(t))
    return {"reward": reward, "entropy": entropy, "kl": np.abs(0.01 + 0.003 * rng.standard_normal(len(t))),
            "lr": 3e-4 * (1 - 0.9 * t / (t[-1] + 1))}, {}


def mixture(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    train, held = language(rng, t, every)
    return {**train, "aux_loss": np.abs(1.02 + 0.01 * rng.standard_normal(len(t)))}, held


def detector(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    box, kind = falling(rng, t, 1.5, 0.4, 0.06), falling(rng, t, 2.5, 0.5, 0.08)
    found = 0.6 * (1 - np.exp(-t / (0.3 * t[-1] + 1)))
    return ({"loss": box + kind, "loss_box": box, "loss_cls": kind, **common(rng, t, float(t[-1]), every)},
            {"mAP": evaluated(found + 0.005 * rng.standard_normal(len(t)), every)})


def restarted(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Warm restarts of a cosine (SGDR): the loss goes up with the learning rate and comes down with it."""
    cycle = max(10.0, (t[-1] + 1) / int(rng.integers(3, 8)))
    at = (t % cycle) / cycle
    rate = 0.5 * (1 + np.cos(np.pi * at))
    loss = falling(rng, t, 2.3, rng.uniform(0.3, 0.6), 0.04) * (1 + rng.uniform(0.1, 0.6) * rate * (t >= cycle))
    return {"loss": loss, "lr": 1e-4 + 1e-3 * rate, "grad_norm": np.exp(0.2 * rng.standard_normal(len(t)))}, {}


def staged(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """A curriculum: longer sequences in stages, each harder at first."""
    stage = np.minimum((4 * np.arange(len(t))) // len(t), 3)
    begun = t - t[np.searchsorted(stage, stage)]
    harder = 1 + rng.uniform(0.2, 0.5) * (stage > 0) * np.exp(-begun / (0.08 * t[-1] + 1))
    loss = falling(rng, t, 4.0, rng.uniform(1.0, 2.0), 0.02) * harder
    return {"loss": loss, "seq_len": 256.0 * 2.0**stage, "lr": 3e-4 + 0 * t}, {}


def sawing(rng: np.random.Generator, t: Floats, every: int) -> tuple[dict[str, Floats], dict[str, Floats]]:
    """Passes in one order: within each the loss falls, and at the next it is back up."""
    teeth = int(rng.integers(5, 12))
    at = (np.arange(len(t)) * teeth / len(t)) % 1.0
    loss = falling(rng, t, 3.0, rng.uniform(0.8, 1.2), 0.03) * (1 + 0.15 * (1 - at))
    return {"loss": loss, **common(rng, t, float(t[-1]), every)}, {}


FAMILIES = {"language": language, "classifier": classifier, "regression": regression, "diffusion": diffusion,
            "adversarial": adversarial, "reinforced": reinforced, "mixture": mixture, "detector": detector,
            "restarted": restarted, "staged": staged, "sawing": sawing}
GENERATED = 60


def healthy(family: str, seed: int, count: int, stride: int) -> Healthy:
    """A run of a family."""
    rng = np.random.default_rng([seed, count, list(FAMILIES).index(family)])
    steps = np.arange(count, dtype=float) * stride
    every = max(5, count // int(rng.integers(8, 40)))
    train, held = FAMILIES[family](rng, steps, every)
    return Healthy(family, steps, train, held, every)


# prints of trainers


def joined(row: Row, form: str = "{}: {:.4f}", between: str = " ") -> str:
    return between.join(form.format(k, v) for k, v in row.items())


Print = Callable[[Healthy, int, Row], str]


def each_line(of: Print, held: Print) -> Callable[[Healthy], str]:
    def text(run: Healthy) -> str:
        lines = []
        for step, row, other in run.rows():
            lines.append(of(run, step, row))
            if other:
                lines.append(held(run, step, other))
        return "\n".join(lines) + "\n"

    return text


def as_csv(run: Healthy) -> str:
    names = [*run.train, *(f"val_{n}" for n in run.held_out)]
    out = io.StringIO()
    writer = csv.DictWriter(out, ["step", *names], lineterminator="\n")
    writer.writeheader()
    for step, row, other in run.rows():
        writer.writerow({"step": step, **row})
        if other:
            writer.writerow({"step": step, **{f"val_{n}": v for n, v in other.items()}})
    return out.getvalue()


def as_lines_of_json(run: Healthy) -> str:
    told = [{"step": s, **row, **{f"val/{n}": v for n, v in other.items()}} for s, row, other in run.rows()]
    return "".join(json.dumps(r) + "\n" for r in told)


def as_state(run: Healthy) -> str:
    history = [{"step": s, "epoch": s / (run.epoch * 10),
                **{{"lr": "learning_rate"}.get(k, k): v for k, v in row.items()},
                **{f"eval_{n}": v for n, v in other.items()}} for s, row, other in run.rows()]
    return json.dumps({"log_history": history, "max_steps": int(run.steps[-1])})


def place(run: Healthy, step: int) -> str:
    return f"[{1 + step // 1000}][{step % 1000:>4}/1000]"


SHAPES: dict[str, Callable[[Healthy], str]] = {
    "nanogpt": each_line(lambda r, s, m: f"iter {s}: {joined(m, '{} {:.4f}', ', ')}",
                         lambda r, s, m: f"step {s}: {joined(m, 'val {} {:.4f}', ', ')}"),
    "megatron": each_line(
        lambda r, s, m: f" iteration {s:>8}/{int(r.steps[-1]):>8} | " + joined(m, "{}: {:.6E}", " | ") + " |",
        lambda r, s, m: f" validation loss at iteration {s} | " + joined(m, "{} value: {:.6E}", " | ") + " |"),
    "hf dicts": each_line(lambda r, s, m: str({**{k: round(v, 4) for k, v in m.items()}, "epoch": round(s / 1000, 3)}),
                          lambda r, s, m: str({**{f"eval_{k}": round(v, 4) for k, v in m.items()},
                                               "epoch": round(s / 1000, 3)})),
    "torchtitan": each_line(lambda r, s, m: f"[titan] 2026-11-27 21:17:14,614 - root - INFO - step: {s:>2}  "
                                            + joined(m, "{}: {:>7.4f}", "  "),
                            lambda r, s, m: f"[titan] 2026-11-27 21:17:14,614 - root - INFO - validate step: {s}  "
                                            + joined(m, "{}: {:.4f}", "  ")),
    "torchtune": each_line(lambda r, s, m: f"Step {s} | " + joined(m, "{}:{:.6f}"),
                           lambda r, s, m: f"Step {s} | " + joined(m, "val_{}:{:.6f}")),
    "fairseq": each_line(lambda r, s, m: f"2026-11-27 21:18:14 | INFO | train_inner | epoch 001: {s:>6} / 999999 "
                                         + joined(m, "{}={:.4g}", ", ") + f", num_updates={s}",
                         lambda r, s, m: "2026-11-27 21:20:26 | INFO | valid | epoch 001 | valid on 'valid' subset | "
                                         + joined(m, "{} {:.4g}", " | ") + f" | num_updates {s}"),
    "maxtext": each_line(lambda r, s, m: f"completed step: {s}, " + joined(m, "{}: {:.4f}", ", "),
                         lambda r, s, m: f"eval metrics after step: {s}, " + joined(m, "{}={:.4f}", ", ")),
    "clu": each_line(lambda r, s, m: f"I1127 21:17:14.614001 140 logging_writer.py:48] [{s}] "
                                     + joined(m, "{}={:.6g}", ", "),
                     lambda r, s, m: f"I1127 21:17:14.614001 140 logging_writer.py:48] [{s}] collection=eval "
                                     + joined(m, "{}={:.6g}", ", ")),
    "verl": each_line(lambda r, s, m: f"step:{s} - " + joined(m, "train/{}:{:.4f}", " - "),
                      lambda r, s, m: f"step:{s} - " + joined(m, "val/{}:{:.4f}", " - ")),
    "detectron2": each_line(lambda r, s, m: f"[11/27 21:17:14 d2.utils.events]:  eta: 0:12:34  iter: {s}  "
                                            + joined(m, "{}: {:.5g}", "  ") + "  max_mem: 2734M",
                            lambda r, s, m: f"iter: {s}  " + joined(m, "val_{}: {:.5g}", "  ")),
    "mmengine": each_line(lambda r, s, m: f"2026/11/27 21:17:14 - mmengine - INFO - Epoch(train)  {place(r, s)}  "
                                          + joined(m, "{}: {:.4e}", "  "),
                          lambda r, s, m: "2026/11/27 21:17:50 - mmengine - INFO - Epoch(val) "
                                          f"[{1 + s // 1000}][79/79]    " + joined(m, "{}: {:.4f}", "  ")),
    "loguru": each_line(lambda r, s, m: f"2026-11-27 21:17:14.614 | INFO     | __main__:train:45 - step {s} | "
                                        + joined(m, "{}={:.5f}", " | "),
                        lambda r, s, m: f"2026-11-27 21:17:14.614 | INFO     | __main__:train:60 - step {s} | "
                                        + joined(m, "val_{}={:.5f}", " | ")),
    "structlog": each_line(lambda r, s, m: f"2026-11-30T12:09:09Z [info     ] train  step={s} "
                                           + joined(m, "{}={:.5g}"),
                           lambda r, s, m: f"2026-11-30T12:09:09Z [info     ] eval  step={s} "
                                           + joined(m, "val_{}={:.5g}")),
    "composer": each_line(lambda r, s, m: f"[epoch={1 + s // 1000}][batch={s % 1000}/1000]:\n"
                                          + joined(m, "\t Train {}: {:.4f}", "\n"),
                          lambda r, s, m: f"[epoch={1 + s // 1000}]:\n" + joined(m, "\t Eval {}: {:.4f}", "\n")),
    "csv": as_csv, "json lines": as_lines_of_json, "trainer_state": as_state,
}


def alarms(text: str, form: str, folder: Path) -> list[str]:
    """What is found in a log that is of medium severity or above."""
    from traindx_tools.finding import Severity
    from traindx_tools.on_logs.judge import judge_events, judge_run
    from traindx_tools.on_logs.reading import joined as one_run
    from traindx_tools.on_logs.reading import read_parts

    names = {"csv": "metrics.csv", "json lines": "metrics.jsonl", "trainer_state": "trainer_state.json"}
    path = folder / names.get(form, "train.log")
    path.write_text(text, encoding="utf-8")
    reading = read_parts(path)
    run = one_run(reading)
    if not run.series:
        return ["nothing was read"]
    failures: list[str] = []
    found = [*judge_run(run, failures), *judge_events(run, reading.sources, failures)]
    return [*failures, *(f"{f.rule} {f.severity.value}: {f.statement}" for f in found
                         if f.severity.rank >= Severity.MEDIUM.rank)]


def cases(seed: int, most: int) -> list[tuple[str, str, str, int, int]]:
    """Name, shape, family, records and stride of each log."""
    rng = np.random.default_rng(seed)
    families, shapes = list(FAMILIES), list(SHAPES)
    lengths = (60, 200, 800, 3_000, 12_000, 50_000, 200_000)
    found = []
    for i in range(GENERATED):
        count = min(most, lengths[min(i * len(lengths) // 54, len(lengths) - 1)] if i < 57 else most)
        shape = "csv" if count > 20_000 else shapes[i % len(shapes)]
        found.append((f"generated {i}", shape, families[i % len(families)], count, int(rng.choice((1, 10, 100)))))
    for i, shape in enumerate(shapes):
        for k in range(2):
            count = min(most, (400, 2_000)[k] if i % 4 else (6_000, 200_000 if shape == "nanogpt" else 20_000)[k])
            found.append((f"{shape} {k}", shape, families[(3 * i + k) % len(families)], count, (10, 1)[k]))
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", help="the logs whose name begins so")
    parser.add_argument("--most", type=int, default=200_000, help="steps of the longest log")
    parser.add_argument("--keep", help="a folder in which the logs are left")
    options = parser.parse_args()
    logs = loud = steps = 0
    start = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        for i, (name, shape, family, count, stride) in enumerate(cases(options.seed, options.most)):
            if options.only is not None and not name.startswith(options.only):
                continue
            folder = Path(options.keep or scratch) / name.replace(" ", "-")
            folder.mkdir(parents=True, exist_ok=True)
            found = alarms(SHAPES[shape](healthy(family, options.seed * 1_000 + i, count, stride)), shape, folder)
            logs, loud, steps = logs + 1, loud + bool(found), max(steps, count)
            print(f"{name:16}{shape:14}{family:12}{count:>8,} steps  {'ALARM' if found else 'quiet'}", flush=True)
            for said in found:
                print(f"    {said[:300]}", flush=True)
    print(f"{logs} healthy logs of up to {steps:,} steps: {loud} with a false alarm "
          f"({time.process_time() - start:.0f} s of a processor)")
    return 1 if loud else 0


if __name__ == "__main__":
    sys.exit(main())
