"""What Megatron-LM and DeepSpeed print: arguments as settings, the loss scale as a series, both judged as elsewhere."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.domains import switched_on
from traindx_tools.examine import examine
from traindx_tools.finding import Finding
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.announced import REDUCED
from traindx_tools.on_logs.anomalies.anomaly import Kind
from traindx_tools.on_logs.anomalies.detect import anomalies_of
from traindx_tools.on_logs.anomalies.halvings import halved
from traindx_tools.on_logs.anomalies.listing import listed
from traindx_tools.on_logs.run import Run
from traindx_tools.preconditions import shown_by

ARGUMENTS = {"fp16": True, "bf16": False, "initial_loss_scale": 4294967296, "loss_scale_window": 1000, "lr": 0.00015,
             "micro_batch_size": 4, "train_iters": 500000, "world_size": 16}
PREFIX = "[2024-05-02 10:00:00,124] [INFO] [config.py:1000:print]   "


def megatron(folder: Path, scales: Sequence[float], **more: object) -> Path:
    lines = ["------------------------ arguments ------------------------",
             *(f"  {k} {'.' * (48 - len(k))} {v}" for k, v in {**ARGUMENTS, **more}.items()),
             "-------------------- end of arguments ---------------------"]
    lines += [f" [2024-05-02 10:00:{i % 60:02d}] iteration {i * 100:8d}/  500000 | consumed samples: {i * 51200:12d} | "
              f"elapsed time per iteration (ms): {612 + math.sin(i):.1f} | learning rate: {1.5e-4:.6E} | lm loss: "
              f"{8 * math.exp(-i / 30) + 2.5 + 0.02 * math.sin(7 * i):.6E} | loss scale: {scale:.1f} | grad norm: "
              f"{1.2 + 0.1 * math.sin(3 * i):.3f} | number of skipped iterations: {0:3d} |"
              for i, scale in enumerate(scales, 1)]
    path = folder / "megatron.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def deepspeed(folder: Path, skipped: range, first: int = 65536, steps: int = 80) -> Path:
    lines = ["[2024-05-02 10:00:00,123] [INFO] [config.py:996:print] DeepSpeedEngine configuration:",
             f"{PREFIX}dynamic_loss_scale_args ...... {{'init_scale': 65536, 'min_scale': 1}}",
             f"{PREFIX}fp16_enabled ................. True", f"{PREFIX}gradient_accumulation_steps .. 4",
             f"{PREFIX}loss_scale ................... 0", f"{PREFIX}world_size ................... 8",
             "[2024-05-02 10:00:00,124] [INFO] [config.py:986:print_user_config]   json = {",
             '    "train_micro_batch_size_per_gpu": 4, ',
             '    "optimizer": {"type": "AdamW", "params": {"lr": 0.0001}}', "}"]
    scale = first
    for i in range(1, steps + 1):
        if i in skipped:
            lines.append("[2024-05-02 10:00:00,100] [INFO] [loss_scaler.py:183:update_scale] [deepspeed] OVERFLOW! "
                         f"Rank 0 Skipping step. Attempted loss scale: {scale}, reducing to {max(1, scale // 2)}")
            scale = max(1, scale // 2)
        lines.append(f"[2024-05-02 10:00:00,200] [INFO] [logging.py:96:log_dist] [Rank 0] step={i * 10}, "
                     f"skipped={sum(s <= i for s in skipped)}, lr=[0.0001], mom=[[0.9, 0.95]]")
        lines.append(f"steps: {i * 10} loss: {8 * math.exp(-i / 20) + 2 + 0.02 * math.sin(7 * i):.4f} iter time (s): "
                     f"{2.4 + 0.01 * math.sin(i):.3f}")
    path = folder / "deepspeed.log"
    path.write_text("\n".join(lines) + "\n")
    return path


def collapse(path: Path) -> list[Finding]:
    return [f for f in examine([path]).findings if f.rule == "L105"]


FITS = [2.0 ** (31 - min(i, 11)) for i in range(100)]
NEVER = [*(2.0 ** (31 - min(i, 11)) for i in range(40)), *(2.0 ** (20 + i // 8) for i in range(24)),
         *(max(1.0, 2.0 ** (23 - 2 * (i + 1))) for i in range(36))]


def test_printed_arguments_are_settings_and_no_metrics(tmp_path: Path) -> None:
    run = read_run([megatron(tmp_path, FITS)])
    assert run.config == ARGUMENTS
    assert run.world_size == 16
    assert not [s.original for s in run.series if len(s) == 1]
    run = read_run([deepspeed(tmp_path, range(0))])
    assert {"fp16_enabled": True, "dynamic_loss_scale_args.init_scale": 65536, "gradient_accumulation_steps": 4,
            "optimizer.params.lr": 0.0001, "train_micro_batch_size_per_gpu": 4}.items() <= run.config.items()
    assert run.world_size == 8


def test_a_scale_that_never_fits_is_told_from_where_it_last_fell(tmp_path: Path) -> None:
    path = megatron(tmp_path, NEVER)
    (finding,) = collapse(path)
    assert finding.statement.startswith("the loss scale falls from 4194304 at step 6400 to 1 at step 10000")
    assert finding.measured["halvings"] == 22
    assert "loss_scale (loss scale): halved at step 6400 to step 7600, from 4194304 to 1, 22 halvings" in (
        listed(read_run([path])).render())


def test_a_scale_that_settles_is_left_alone(tmp_path: Path) -> None:
    path = megatron(tmp_path, FITS)
    assert not collapse(path)
    assert examine([path]).verdict.status == "healthy"
    assert "halved" not in listed(read_run([path])).render()


def test_announced_scales_are_a_series_with_the_steps_before_them(tmp_path: Path) -> None:
    path = deepspeed(tmp_path, range(51, 81))
    (scale,) = [s for s in read_run([path]).series if s.name == "loss_scale"]
    assert (scale.original, len(scale), scale.values[0], scale.values[-1]) == (REDUCED, 30, 32768, 1)
    assert (scale.step[0], scale.step[-1]) == (500, 790)
    (finding,) = collapse(path)
    assert "30 steps are skipped for overflow" in finding.statement
    assert "reduced from 32768 to 1" in finding.statement
    assert "halved at step 500 to step 650, from 32768 to 1, 15 halvings" in listed(read_run([path])).render()


@pytest.mark.parametrize(("skipped", "first"), [
    (range(1, 13), 2**32),  # a guess that was too large, then nothing
    (range(10, 80, 7), 2**20),  # now and then, as a scaler does that tries
    (range(1, 30), 65536),  # down to the floor, and then it went on without
])
def test_skipped_steps_that_end_are_left_alone(tmp_path: Path, skipped: range, first: int) -> None:
    assert not collapse(deepspeed(tmp_path, skipped, first))


def test_fairseq_and_apex_announce_in_other_words(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(
        f"step {i} loss {9 - i / 20:.3f}\n"
        + ("gradient overflow detected, ignoring gradient, setting loss scale to: 64.0\n" if i in (30, 50, 70) else "")
        + ("Gradient overflow.  Skipping step, loss scaler 0 reducing loss scale to 32.0\n" if i == 80 else "")
        for i in range(1, 90)))
    (scale,) = [s for s in read_run([path]).series if s.name == "loss_scale"]
    assert scale.values.tolist() == [64, 64, 64, 32]
    assert scale.step.tolist() == [30, 50, 70, 80]


def test_broken_lines_of_both_do_no_harm(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("  lr ..... \n  fp16 ..\n[deepspeed] OVERFLOW! Skipping step. Attempted loss scale: x, reducing to"
                    " \nOVERFLOW! Skipping step, reducing to 1e999999\n" * 9 + "print_user_config] json = {\n")
    assert not collapse(path)


@pytest.mark.parametrize(("values", "told"), [
    ([64.0] * 10 + [32, 16, 8, 4, 2, 1], True), ([64.0] * 10 + [32, 16, 8, 4, 2, 64, 64, 64], False),
    ([2.0**k for k in range(20, 8, -1)] + [512.0] * 30, False), ([0.3 * 0.5**k for k in range(20)], False),
    ([float(k) for k in (64, 32, 16, 8, 4)], False), ([-1.0] * 20, False), ([], False),
])
def test_what_is_halved_is_a_series_of_powers_of_two(values: list[float], told: bool) -> None:
    assert (halved(np.array(values)) is not None) is told


def test_halvings_are_a_kind_of_their_own(tmp_path: Path) -> None:
    (scale,) = [s for s in read_run([megatron(tmp_path, NEVER)]).series if s.name == "loss_scale"]
    assert [a.kind for a in anomalies_of(scale, [Kind.HALVED])] == [Kind.HALVED]


@pytest.mark.parametrize(("text", "left"), [
    ("bf16 ................... False", " "), ("{'fp16': False, 'bf16': True}", "{' , 'bf16': True}"),
    ("fp16 False", " "), ("fp16 .... True", "fp16 .... True"), ("the loss is none of them", "the loss is none of them"),
])
def test_what_is_switched_off_is_not_spoken_of(text: str, left: str) -> None:
    assert switched_on(text) == left


def test_a_switch_that_is_off_is_no_ground_for_half_precision(tmp_path: Path) -> None:
    run = Run(config={"fp16": False, "bf16": None, "loss_scale": None})
    assert "half-precision" not in shown_by(run)
    assert "half-precision" in shown_by(Run(config={"fp16": True}))
