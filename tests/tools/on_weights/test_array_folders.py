"""A model or an optimizer's state in npy files of their own: one checkpoint, and no columns of data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine as diagnose
from traindx_tools.on_data.examination import examine as examine_data
from traindx_tools.on_weights import examine, of_run
from traindx_tools.on_weights.checkpoint_folders import array_folders


def exported(home: Path, *, narrow: bool = False, zero: bool = False, moments: bool = True) -> Path:
    """Blocks of a model as npy files: weights, and for each the mean of its gradients and of their squares."""
    rng = np.random.default_rng(0)
    home.mkdir(parents=True)
    for k in range(5):
        for name, shape in (("fc.weight", (48, 32)), ("proj.weight", (32, 48)), ("fc.bias", (48,))):
            weight = rng.standard_normal(shape) * 0.1 * rng.lognormal(0, 0.25, (shape[0], *[1] * (len(shape) - 1)))
            if zero and (k, name) == (3, "fc.weight"):
                weight[:] = 0
            grads = 1e-4 * rng.standard_normal(shape)
            squares = (1e-4 * rng.lognormal(0, 1, shape)) ** 2
            end = ".master" if moments else ""
            np.save(home / f"h.{k}.{name}{end}.npy", weight.astype(np.float32))
            if moments:
                np.save(home / f"h.{k}.{name}.exp_avg.npy", grads.astype(np.float32))
                np.save(home / f"h.{k}.{name}.exp_avg_sq.npy", squares.astype(np.float16 if narrow else np.float32))
    return home


@pytest.mark.parametrize("moments", [True, False])
def test_a_folder_is_one_checkpoint(moments: bool, tmp_path: Path) -> None:
    report = examine(exported(tmp_path / "a" / "state", moments=moments))
    assert report.checkpoint.format == "npy files"
    assert report.findings == ()
    assert len(report.checkpoint.weights.tensors) == 15
    found = examine(exported(tmp_path / "b" / "state", moments=moments, zero=True)).findings
    assert "W102" in {f.rule for f in found}


def test_squares_that_vanish_in_half_precision(tmp_path: Path) -> None:
    exported(tmp_path / "state", narrow=True)
    assert "W124" in {f.rule for f in diagnose([tmp_path]).findings}
    assert not [f for f in diagnose([tmp_path]).findings if f.rule.startswith("D")]


def test_the_room_of_data_leaves_them_alone(tmp_path: Path) -> None:
    exported(tmp_path / "state")
    report = examine_data([tmp_path])
    assert report.sets == ()
    assert {a.note.partition(":")[0] for a in report.artifacts} == {"not read"}
    for k in range(8):
        np.save(tmp_path / f"images_{k}.npy", np.zeros((20, 4), np.float32))
    assert [len(s.shards) for s in examine_data([tmp_path]).sets] == [8]


@pytest.mark.parametrize("names", [
    [f"shard_{k}" for k in range(8)], [f"clip.{k}.mel" for k in range(8)], [f"sample_weight_{k}" for k in range(8)],
    [f"opt_flow_{k}" for k in range(8)], [f"mouse.{k}.weight" for k in range(8)], ["h.0.fc.weight", "h.0.fc.bias"],
    [f"mouse_{k}_{n}" for k in range(8) for n in ("weight", "scale")],
    [f"x{k}.weight" for k in range(4)] + [f"y{k}" for k in range(4)],
])
def test_files_of_data_are_no_checkpoint(names: list[str]) -> None:
    assert array_folders([f"d/{n}.npy" for n in names]) == {}


def test_files_that_are_cut_or_empty(tmp_path: Path) -> None:
    home = exported(tmp_path / "state")
    files = sorted(home.iterdir())
    files[0].write_bytes(files[0].read_bytes()[:60])
    report = examine(home)
    assert report.notes
    assert len(list(report.checkpoint.tensors)) == len(files) - 1
    for file in files:
        file.write_bytes(b"")
    with pytest.raises(UnreadableInput):
        examine(home)
    assert of_run([], beside=[str(f) for f in files]).notes
