"""The state of a training in npz is no table of data, whatever its arrays are called."""

from itertools import pairwise
from pathlib import Path

import numpy as np

from traindx_tools.on_data import examine

SIZES = (11, 48, 48, 1)


def state(path: Path, seed: int) -> None:
    rng = np.random.default_rng(seed)
    arrays = {}
    for family in ("p", "m", "v"):
        for i, (rows, columns) in enumerate(pairwise(SIZES)):
            arrays[f"{family}/k{i}"] = rng.normal(size=(rows, columns)).astype("f4")
            arrays[f"{family}/c{i}"] = rng.normal(size=columns).astype("f4")
    path.parent.mkdir(exist_ok=True)
    np.savez(path, **arrays)


def test_two_states_beside_data_are_told_and_not_judged_as_data(tmp_path: Path) -> None:
    state(tmp_path / "state" / "north.npz", 0)
    state(tmp_path / "state" / "south.npz", 1)
    np.savez(tmp_path / "rows.npz", x=np.random.default_rng(2).normal(size=(400, 3)), y=np.arange(400) % 2)
    report = examine([tmp_path])
    assert [Path(s.shards[0].name).name for s in report.sets] == ["rows.npz"]
    assert not any(str(f.where.file).endswith(("north.npz", "south.npz")) for f in report.findings)
    assert sum("no data" in a.note for a in report.artifacts) == 2


def test_many_columns_of_one_length_are_data(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    np.savez(tmp_path / "rows.npz", **{f"{f}/k{i}": rng.normal(size=(300, 2)) for f in "pmv" for i in range(4)})
    assert len(examine([tmp_path]).sets) == 1


def test_a_torn_file_is_told(tmp_path: Path) -> None:
    state(tmp_path / "north.npz", 0)
    whole = (tmp_path / "north.npz").read_bytes()
    (tmp_path / "north.npz").write_bytes(whole[: len(whole) // 2])
    assert any("not read" in a.note for a in examine([tmp_path]).artifacts)
