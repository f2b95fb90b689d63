"""One block of lines for each trainer that does not install here, written after its own sources."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, read_run

LINES = Path(__file__).parents[3] / "fixtures" / "logs" / "lines"
NAN = float("nan")


def read(name: str) -> Run:
    return read_run([LINES / name])


CASES = [
    # file, format, group, canonical name, original, positions, unit, values
    ("megatron.log", "megatron", "train", "loss", "lm loss", [100, 200, 300], "step", [8.312345, 7.112345, 6.712345]),
    ("megatron.log", "megatron", "train", "step_time", "elapsed time per iteration (ms)", [100, 200, 300], "step",
     [0.8123, 0.8101, 0.8117]),
    ("megatron.log", "megatron", "train", "grad_norm", "grad norm", [100, 200, 300], "step", [2.123, 1.823, NAN]),
    ("megatron.log", "megatron", "train", "nan_steps", "number of nan iterations", [100, 200, 300], "step", [0, 0, 1]),
    ("megatron.log", "megatron", "train", "skipped_steps", "number of skipped iterations", [100, 200, 300], "step",
     [2, 0, 1]),
    ("megatron.log", "megatron", "validation", "loss", "lm loss value", [300], "step", [6.801234]),
    ("megatron.log", "megatron", "validation", "perplexity", "lm loss PPL", [300], "step", [898.9562]),
    ("deepspeed.log", "deepspeed", "train", "learning_rate", "lr", [10, 20], "step", [1e-4, 2e-4]),
    ("deepspeed.log", "deepspeed", "train", "loss", "loss", [30, 40], "step", [2.3456, 2.2456]),
    ("deepspeed.log", "deepspeed", "train", "step_time", "iter time (s)", [30, 40], "step", [0.812, 0.802]),
    ("deepspeed.log", "deepspeed", "train", "memory/allocated", "MemAllocated", [10, 20], "step", [1259.52, 1259.52]),
    ("torchtitan.log", "torchtitan", "train", "loss", "loss", [1, 10], "step", [12.2721, 9.2721]),
    ("torchtitan.log", "torchtitan", "train", "memory", "memory", [1, 10], "step", [12636.16, 12636.16]),
    ("torchtitan.log", "torchtitan", "train", "tokens_per_second", "tps", [1, 10], "step", [1234, 2345]),
    ("torchtune.log", "torchtune", "train", "loss", "loss", [1, 2], "step", [1.5634, 1.4634]),
    ("fairseq.log", "fairseq", "train", "loss", "loss", [100, 200, 1102], "step", [13.8, 11.2, 10.9]),
    ("fairseq.log", "fairseq", "validation", "perplexity", "ppl", [1102], "step", [294.07]),
    ("fairseq.jsonl", "jsonl", "train", "perplexity", "ppl", [100, 200], "step", [13007, 1783.1]),
    ("composer.log", "composer", "train", "loss", "Train loss/train/total", [1, 2], "step", [2.3026, 2.2026]),
    ("maxtext.log", "maxtext", "train", "loss", "loss", [0, 1], "step", [10.873, 10.771]),
    ("maxtext.log", "maxtext", "validation", "loss", "loss", [1], "step", [10.801]),
    ("maxtext.log", "maxtext", "train", "step_time", "seconds", [0, 1], "step", [12.345, 1.345]),
    ("mmengine.log", "mmengine", "train", "loss", "loss", [100, 200, 491, 591], "step",
     [2.1345, 1.9345, 1.7345, 1.6345]),
    ("mmengine.log", "mmengine", "validation", "accuracy", "accuracy/top1", [1, 2], "epoch", [42.31, 52.31]),
    ("detectron2.log", "detectron2", "train", "loss", "total_loss", [19, 39], "step", [2.345, 1.945]),
    ("detectron2.log", "detectron2", "train", "loss/cls", "loss_cls", [19, 39], "step", [1.234, 0.934]),
    ("detectron2.log", "detectron2", "train", "memory", "max_mem", [19, 39], "step", [2734, 2735]),
    ("detectron2.jsonl", "jsonl", "train", "loss", "total_loss", [19, 39], "step", [2.345, 1.945]),
    ("nemo.log", "nemo", "train", "loss", "reduced_train_loss", [0, 1], "step", [10.81, 10.79]),
    ("clu.log", "free_text", "train", "loss", "loss", [100, 200], "step", [2.12345, 1.92345]),
    ("axolotl.log", "hf_trainer_log", "train", "memory/active", "memory/max_active (GiB)", [0.01, 0.02], "epoch",
     [12636.16, 12636.16]),
    ("llama_factory.jsonl", "jsonl", "train", "loss", "loss", [10, 20], "step", [1.2345, 1.1345]),
    ("llama_factory.jsonl", "jsonl", "validation", "loss", "eval_loss", [20], "step", [1.2001]),
    ("nanogpt.log", "nanogpt", "train", "loss", "loss", [0, 10, 20], "step", [4.2648, 3.2438, 2.7899]),
    ("nanogpt.log", "nanogpt", "validation", "loss", "val loss", [0, 20], "step", [4.2823, 3.0]),
    ("nanogpt.log", "nanogpt", "train", "step_time", "time", [0, 10, 20], "step", [24.3711, 0.01805, 0.01823]),
    ("pytorch_mnist.log", "free_text", "train", "loss", "Loss", [0, 640, 1280, 60000, 60640], "step",
     [2.300039, 2.21347, 2.17046, 0.07, 0.06]),
    ("pytorch_mnist.log", "free_text", "test", "accuracy", "Accuracy", [1280], "step", [0.985]),
    ("pytorch_imagenet.log", "free_text", "train", "accuracy", "Acc@1", [1, 11, 5006], "step", [0.0, 0.39, 9.0]),
    ("pytorch_imagenet.log", "free_text", "validation", "accuracy_top5", "Acc@5", [5006], "step", [39.91]),
    ("dcgan.log", "free_text", "train", "generator_loss", "Loss_G", [0, 50, 1583], "step", [4.7765, 22.4132, 12.4132]),
    ("cifar_tutorial.log", "free_text", "train", "loss", "loss", [1, 1, 1, 2], "epoch", [2.196, 1.849, 1.67, 1.39]),
    ("transfer_tutorial.log", "free_text", "validation", "accuracy", "Acc", [0, 1], "epoch", [0.8627, 0.732]),
    ("stable_baselines3.log", "free_text", "train", "reward", "rollout/ep_rew_mean", [2048, 4096], "step",
     [22.1, 26.8]),
    ("skorch.log", "free_text", "validation", "loss", "valid_loss", [1, 2, 3], "epoch", [0.6749, 0.6633, 0.6533]),
    ("tqdm.log", "tqdm", "train", "loss", "loss", [10, 20, 100, 110, 200], "step", [2.31, 2.11, 1.51, 1.41, 1.01]),
    ("loguru.log", "free_text", "train", "accuracy", "acc", [10, 20], "step", [51.2, 55.2]),
    ("loguru.log", "free_text", "train", "step_time", "step_time", [10, 20], "step", [0.0123, 0.0121]),
]


@pytest.mark.parametrize(("file", "form", "group", "name", "original", "positions", "unit", "values"), CASES,
                         ids=lambda v: v if isinstance(v, str) else "")
def test_lines(file: str, form: str, group: str, name: str, original: str, positions: list[float], unit: str,
               values: list[float]) -> None:
    run = read(file)
    assert run.artifacts[0].format == form
    series = [s for s in run.find(name, group=group) if s.original == original]
    assert len(series) == 1, [(s.group, s.name, s.original) for s in run.series]
    assert series[0].unit == unit
    assert series[0].position.tolist() == positions
    np.testing.assert_allclose(series[0].values, values, rtol=1e-9)


def test_nothing_in_chatter_is_a_metric() -> None:
    run = read("chatter.log")
    assert [(s.original, s.values.tolist()) for s in run.series] == []
    assert run.planned_steps is None


@pytest.mark.parametrize(("file", "planned", "unit"), [
    ("megatron.log", 500000, "step"), ("dcgan.log", 5 * 1583, "step"), ("transfer_tutorial.log", 24, "epoch"),
    ("loguru.log", 30, "step"), ("llama_factory.jsonl", 100, "step"), ("fairseq.log", None, "step")])
def test_planned_steps(file: str, planned: float | None, unit: str) -> None:
    run = read(file)
    assert (run.planned_steps, run.planned_unit) == (planned, unit)


def test_notes_and_world_size() -> None:
    run = read("megatron.log")
    assert run.world_size == 8
    skipped = [n for n in read("deepspeed.log").notes if n.kind == "step_skipped"]
    assert [n.line for n in skipped] == [3]
    assert skipped[0].values["reducing_to"] == 32768


def test_derived_steps_are_said_to_be_derived() -> None:
    assert "step = (epoch - 1) * 391 + batch" in read("mmengine.log").artifacts[0].note
    assert "no step is known" in read("cifar_tutorial.log").artifacts[0].note
