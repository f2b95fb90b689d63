"""A metric whose values of several groups stand behind each other: no group alone is a loss there."""

from __future__ import annotations

from pathlib import Path

import pytest

import traindx_tools

LOSS = {("train", "loss"): 3.5}


@pytest.mark.parametrize(("line", "seen"), [
    ("epoch {i} loss 3.5 accuracy train 0.4 test 0.3", LOSS | {("train", "accuracy"): 0.4, ("test", "accuracy"): 0.3}),
    ("epoch {i} loss 3.5 c-index train 0.4 test 0.3", LOSS | {("train", "c_index"): 0.4, ("test", "c_index"): 0.3}),
    ("epoch {i} loss 3.5 zeta train 0.4 test 0.3 lr 0.1",
     LOSS | {("train", "zeta"): 0.4, ("test", "zeta"): 0.3, ("train", "learning_rate"): 0.1}),
    ("epoch {i} loss train 3.5 val 3.6 acc train 0.4 val 0.3",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4, ("validation", "accuracy"): 0.3}),
    ("epoch {i} train 3.5 val 3.6", LOSS | {("validation", "loss"): 3.6}),
    ("epoch {i} loss: train 3.5 val 3.6", LOSS | {("validation", "loss"): 3.6}),
    ("epoch {i} zeta train 3.5 val 3.6", LOSS | {("validation", "loss"): 3.6}),
    ("epoch {i} acc: train 0.5 val 0.6", {("train", "accuracy"): 0.5, ("validation", "accuracy"): 0.6}),
    ("[epoch {i}] loss: train 3.5 val 3.6 | acc: train 0.4 val 0.3",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4, ("validation", "accuracy"): 0.3}),
    ("epoch {i}: acc: train=0.4, val=0.3; loss: train=3.5, val=3.6",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4, ("validation", "accuracy"): 0.3}),
    ("epoch {i} acc train=0.4 val=0.3 loss train=3.5 val=3.6",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4, ("validation", "accuracy"): 0.3}),
    ("epoch {i} f1 [train 0.4, val 0.3, test 0.2] lr 0.1",
     {("train", "f1"): 0.4, ("validation", "f1"): 0.3, ("test", "f1"): 0.2, ("train", "learning_rate"): 0.1}),
    ("epoch {i} dice: train 0.4 val 0.3; zeta: train 12.1 val 13.0",
     {("train", "dice"): 0.4, ("validation", "dice"): 0.3, ("train", "zeta"): 12.1, ("validation", "zeta"): 13.0}),
    # What stands before the groups is no metric, or ends before them: a group alone is its loss.
    ("epoch {i} results: train 3.5 val 3.6", LOSS | {("validation", "loss"): 3.6}),
    ("epoch {i} acc 0.4 | train 3.5 val 3.6",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4}),
    ("epoch {i} acc: train 0.4 val 0.3 | train: 3.5 val: 3.6",
     LOSS | {("validation", "loss"): 3.6, ("train", "accuracy"): 0.4, ("validation", "accuracy"): 0.3}),
    # Broken in the middle.
    ("epoch {i} acc: train nan val", {("train", "accuracy"): "nan"}),
])
def test_groups_behind_a_metric_are_its_groups(line: str, seen: dict[tuple[str, str], float | str], tmp_path: Path
                                               ) -> None:
    path = tmp_path / "train.log"
    path.write_text("\n".join(line.format(i=i) for i in range(6)))
    found = {(r.group, r.metric): r.value for r in traindx_tools.extract_training_metrics(path).rows()}
    assert {k: str(v) for k, v in found.items()} == {k: str(v) for k, v in seen.items()}
