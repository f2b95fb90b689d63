"""Configuration that a run prints, and settings found under whatever name they go."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx_tools.on_logs.configs import SYNONYMS, lookup, lookup_all, read_config_lines

ERRORS = Path(__file__).parents[3] / "fixtures" / "errors"


def printed(text: str) -> dict[str, Any]:
    return read_config_lines(enumerate(text.splitlines(), 1))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Namespace(lr=0.001, model='a,b', betas=(0.9, 0.99), amp=False)",
         {"lr": 0.001, "model": "a,b", "betas": [0.9, 0.99], "amp": False}),
        ("TrainingArguments(\n_n_gpu=1,\nlearning_rate=5e-05,\noutput_dir=out,\n)",
         {"_n_gpu": 1, "learning_rate": 5e-05, "output_dir": "out"}),
        ("cfg: TrainConfig(optim=OptimConfig(lr=0.1, name='sgd'), seed=3)",
         {"optim.lr": 0.1, "optim.name": "sgd", "seed": 3}),
        ("config = {'optim': {'lr': 0.1}, 'seed': 3}", {"optim.lr": 0.1, "seed": 3}),
        ('2026-01-01 10:00:00 INFO hparams: {"lr": 0.1, "tags": ["a"]}', {"lr": 0.1, "tags": ["a"]}),
        ("------- arguments -------\n  hidden_size ..... 4096\n  lr ........ 0.00015\n  bf16 ...... True",
         {"hidden_size": 4096, "lr": 0.00015, "bf16": True}),
        ("[2026-01-01][__main__][INFO] - model:\n  dim: 48\noptim:\n  lr: 1e-3\n  betas:\n  - 0.9\nseed: 1\n\nepoch 1",
         {"model.dim": 48, "optim.lr": 1e-3, "optim.betas": [0.9], "seed": 1}),
        ("Hyperparameters:\nlearning rate : 0.01\nbatch size : 32\n\nepoch 1 loss 0.3",
         {"learning rate": 0.01, "batch size": 32}),
        ("+ torchrun --nproc_per_node=2 train.py --lr 1e-3 --batch-size 32 --fp16",
         {"nproc_per_node": 2, "lr": 1e-3, "batch_size": 32, "fp16": True}),
        ("vocab size: 65, batch_size=12, seed 1337\nstep 1 loss 4.1\nbatch_size=99",
         {"vocab_size": 65, "batch_size": 12, "seed": 1337}),
    ],
)
def test_dumps(text: str, expected: dict[str, Any]) -> None:
    found = printed(text)
    assert {k: found.get(k) for k in expected} == expected


@pytest.mark.parametrize("text", ["step 1 lr 0.1 loss 0.4\nlr: 0.2\nbatch 3", "model = Linear(in_features=3)",
                                  "config reloaded", ""])
def test_metrics_are_no_configuration(text: str) -> None:
    assert printed(text) == {}


def test_of_a_dump_that_never_closes_only_plain_pairs_are_believed() -> None:
    assert printed("Namespace(lr=0.1, model=resnet, " + "x=(" * 1_000) == {"lr": 0.1}


@pytest.mark.parametrize(
    ("config", "name", "value"),
    [
        ({"optim.lr": 0.1}, "learning_rate", 0.1),
        ({"optimizer.params.lr": 0.1, "lr_decay": 3}, "learning_rate", 0.1),
        ({"learningRate": 0.1}, "learning_rate", 0.1),
        ({"Learning-Rate": "5e-4"}, "learning_rate", 5e-4),
        ({"optimizer.params.lr": "auto", "trainer.learning_rate": 0.2}, "learning_rate", 0.2),
        ({"eval.batch_size": 1, "data.batch_size": 8}, "batch_size", 8),
        ({"per_device_train_batch_size": 8, "per_device_eval_batch_size": 64}, "batch_size", 8),
        ({"model.num_labels": 7}, "num_classes", 7),
        ({"data.classes": ["cat", "dog"]}, "num_classes", None),
        ({"n_vocab": 65}, "vocab_size", 65),
        ({"trainer.accumulate_grad_batches": 4}, "grad_accumulation", 4),
        ({"num_processes": 2}, "world_size", 2),
        ({"trainer.precision": "16-mixed"}, "precision", "16-mixed"),
        ({"precision": 16}, "precision", "16"),
        ({"bf16": True}, "precision", "bf16"),
        ({"fp16.enabled": True}, "precision", "fp16"),
        ({"max_iters": 500}, "max_steps", 500),
        ({"scheduler.num_warmup_steps": 10}, "warmup_steps", 10),
        ({"optim.wd": 0.1}, "weight_decay", 0.1),
        ({"seed": 0}, "seed", 0),
        ({"commitment": 50.0}, "commitment_weight", 50.0),
        ({"vq.commitment_cost": 0.25}, "commitment_weight", 0.25),
        ({"optimizer.type": "AdamW"}, "optimizer", "AdamW"),
        ({"a": 1}, "seed", None),
    ],
)
def test_lookup(config: dict[str, Any], name: str, value: Any) -> None:
    assert lookup(config, name) == value


def test_lookup_of_a_name_that_does_not_exist_raises() -> None:
    with pytest.raises(KeyError):
        lookup({}, "learning_rates")


def test_every_key_is_listed_best_first() -> None:
    assert list(lookup_all({"gen.optim.lr": 1, "lr": 2, "dis.optim.lr": 3}, "learning_rate")) == ["lr", "dis.optim.lr",
                                                                                                  "gen.optim.lr"]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.text(max_size=50),
                          st.sampled_from(["Namespace(", "config = {", "a:", "  b: 1", "lr=3", "--x 1", ")"])),
                max_size=30))
def test_any_lines_are_read(lines: list[str]) -> None:
    found = read_config_lines(enumerate(lines, 1))
    for name in SYNONYMS:
        lookup(found, name)


def test_error_logs_hold_no_configuration_by_accident() -> None:
    for path in ERRORS.rglob("*.log"):
        found = printed(path.read_text(errors="replace"))
        assert not {"learning_rate", "lr", "num_classes", "vocab_size"} & set(found), path.name
