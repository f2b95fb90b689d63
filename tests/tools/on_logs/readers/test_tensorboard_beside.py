"""Hyperparameters and texts beside the scalars of an event file, as tensorboardX writes them."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.readers.tensorboard_beside import Beside

FIXTURE = Path(__file__).parents[3] / "fixtures" / "trackers" / "tensorboard"


def test_hyperparameters_are_the_configuration() -> None:
    run = read_run(FIXTURE)
    assert {k: run.config[k] for k in ("lr", "optimizer", "amp")} == {"lr": 0.1, "optimizer": "sgd", "amp": True}


def test_texts_are_notes_and_scalars_stay() -> None:
    run = read_run(FIXTURE)
    assert any(n.text == "remarks: resumed from ckpt-3" for n in run.notes)
    loss = next(s for s in run.series if s.original == "train/loss")
    np.testing.assert_allclose(loss.values, [2.0 / (i + 1) if i < 25 else math.nan for i in range(30)], rtol=1e-6)
    np.testing.assert_array_equal(loss.step, range(30))


def test_a_summary_of_another_kind_is_counted() -> None:
    beside = Beside("x")
    beside.take("weights", b"", 1)
    assert beside.unused == 1


def test_damage_stops_nothing(tmp_path: Path) -> None:
    data = (FIXTURE / "events.out.tfevents.hparams").read_bytes()
    for at in range(45, len(data), 13):
        (tmp_path / "events.out.tfevents.x").write_bytes(data[:at] + b"\xff" + data[at + 1:])
        read_run(tmp_path)
