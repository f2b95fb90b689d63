"""HDF5 files of one group an episode or site: read as one table, and told by group and row."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

h5py = pytest.importorskip("h5py")


def episodes(path: Path, *, bad: bool = False, step: float = 0.05, broken: bool = False) -> Path:
    """Demonstrations of several lengths, whose joints wander."""
    rng = np.random.default_rng(9)
    with h5py.File(path, "w") as file:
        for i in range(24):
            rows = 60 + 3 * i
            seen = np.cumsum(rng.normal(0, step, (rows, 7)), axis=0)
            group = file.create_group(f"data/demo_{i:02d}")
            group["actions"] = np.tanh(seen[: rows - broken * (i == 3), :4] * 0.5).astype(np.float32)
            if bad and i == 17:
                seen[33, 2] = np.nan
            group["obs/joints"] = seen.astype(np.float32)
        file["mask/train"] = np.array([f"demo_{i:02d}" for i in range(20)], "S")
    return path


def told(path: Path) -> list[Finding]:
    return [f for f in examine([path]).findings if f.severity is not Severity.INFO]


def test_a_value_of_one_episode(tmp_path: Path) -> None:
    path = episodes(tmp_path / "demos.hdf5", bad=True)
    (found,) = [f for f in told(path) if f.rule == "D101"]
    assert "(demo_17, row 33)" in found.statement
    (data,) = examine([path]).sets
    assert sum(s.rows for s in data.shards) == sum(60 + 3 * i for i in range(24))


@pytest.mark.parametrize("step", [0.05, 0.01])
def test_episodes_that_wander(step: float, tmp_path: Path) -> None:
    """Rows of an episode follow each other: a level that moves within one is no change of it."""
    assert told(episodes(tmp_path / "demos.hdf5", step=step)) == []


def test_groups_whose_fields_have_other_lengths_are_left_as_they_are(tmp_path: Path) -> None:
    path = episodes(tmp_path / "demos.hdf5", broken=True)
    assert not any(s.groups for d in examine([path]).sets for s in d.shards)


def sites(path: Path, *, reversed_at: str = "") -> Path:
    rng = np.random.default_rng(1)
    with h5py.File(path, "w") as file:
        for site in ("oslo", "bern", "rome", "cork"):
            label = rng.integers(0, 3, 150)
            image = rng.integers(0, 50, (150, 12, 12, 3))
            image[..., 0] += 90
            image[..., 1] += 50
            image[np.arange(150), 2 + label, 3] += 80
            image = image[..., ::-1] if site == reversed_at else image
            file[f"{site}/image"], file[f"{site}/label"] = image.astype(np.uint8), label
    return path


def test_a_site_whose_colours_are_in_the_other_order(tmp_path: Path) -> None:
    (found,) = told(sites(tmp_path / "all.h5", reversed_at="rome"))
    assert found.rule == "D143"
    assert "450..599" in found.statement  # groups come in the order of their names


def test_sites_that_agree(tmp_path: Path) -> None:
    assert told(sites(tmp_path / "all.h5")) == []


def test_joints_of_one_body_stay_columns(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with h5py.File(tmp_path / "body.h5", "w") as file:
        for joint in ("hip", "knee", "ankle", "wrist"):
            file[f"{joint}/position"], file[f"{joint}/turn"] = rng.normal(size=(90, 3)), rng.normal(size=(90, 4))
    (data,) = examine([tmp_path / "body.h5"]).sets
    assert [s.rows for s in data.shards] == [90]


def test_splits_stay_apart(tmp_path: Path) -> None:
    rng = np.random.default_rng(2)
    with h5py.File(tmp_path / "set.h5", "w") as file:
        for split, rows in (("train", 300), ("val", 90), ("test", 80)):
            file[f"{split}/x"], file[f"{split}/y"] = rng.normal(size=(rows, 3)), rng.integers(0, 2, rows)
    (data,) = examine([tmp_path / "set.h5"]).sets
    assert {(s.split, s.rows) for s in data.shards} == {("train", 300), ("validation", 90), ("test", 80)}
