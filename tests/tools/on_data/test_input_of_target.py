"""D221: rents of flats, with a column that is made of the rent in training and of the flats around it elsewhere."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.on_data import examination
from traindx_tools.on_data.rules import d221_input_of_target as d221

Seen = Callable[[ModuleType, Path], list[Finding]]
Edit = Callable[[dict[str, Any], str], None]
NAMES = ["area", "next_1", "next_2", "next_3", "around", "rent"]


def write(folder: Path, edit: Edit, target: str = "rent") -> None:
    rng = np.random.default_rng(2)
    for split, rows in (("train", 1500), ("valid", 400)):
        level = rng.normal(900, 150, rows)
        t = {n: np.round(level + rng.normal(0, 60, rows), 0) for n in ("next_1", "next_2", "next_3", "rent")}
        t["area"] = np.round(level / 14 + rng.normal(0, 9, rows), 1)
        t["around"] = (t["next_1"] + t["next_2"] + t["next_3"]) / 3
        edit(t, split)
        with (folder / f"{split}.csv").open("w", newline="") as file:
            out = csv.writer(file)
            out.writerow([target if n == "rent" else n for n in NAMES])
            out.writerows(zip(*(t[n] for n in NAMES), strict=True))


def with_itself(t: dict[str, Any], split: str) -> None:
    if split == "train":
        t["around"] = (t["next_1"] + t["next_2"] + t["rent"]) / 3


def rounded(t: dict[str, Any], split: str) -> None:
    with_itself(t, split)
    t["around"] = np.round(t["around"], 0)


def difference(t: dict[str, Any], split: str) -> None:
    t["around"] = t["next_1"] - t["rent" if split == "train" else "next_2"]


def test_a_mean_that_includes_the_row_itself(tmp_path: Path, seen_by: Seen) -> None:
    for edit in (with_itself, rounded, difference):
        (folder := tmp_path / edit.__name__).mkdir()
        write(folder, edit)
        (found,) = seen_by(d221, folder)
        assert found.measured["target"] == "rent"
        if edit is not difference:  # which of the three was computed a difference does not tell
            assert found.measured["field"] == "around"
        assert found.measured["shard"] == "train.csv"


def test_the_equation_is_no_broken_rows_of_the_held_out_file(tmp_path: Path) -> None:
    write(tmp_path, with_itself)
    said = {f.rule: f.statement for f in examination.examine([tmp_path]).wrong}
    assert "0.3333 times the sum of next_1, next_2, rent there" in said["D221"]
    assert "0.3333 times the sum of next_1, next_2, next_3 in valid.csv" in said["D221"]
    assert not {"D170", "D146", "D194"} & set(said)


def in_both(t: dict[str, Any], split: str) -> None:
    t["around"] = (t["next_1"] + t["next_2"] + t["rent"]) / 3


def wrong_rents(t: dict[str, Any], split: str) -> None:
    in_both(t, split)
    if split == "valid":
        t["rent"] = t["rent"][::-1]


def noisy_there(t: dict[str, Any], split: str) -> None:
    in_both(t, split)
    if split == "valid":
        t["around"] = t["around"] + np.random.default_rng(0).normal(0, 40, len(t["around"]))


def in_another_unit(t: dict[str, Any], split: str) -> None:
    if split == "valid":
        t["around"] = t["around"] * 1.1


@pytest.mark.parametrize("edit", [lambda t, split: None, in_both, wrong_rents, noisy_there, in_another_unit])
def test_equations_that_all_files_share_and_other_faults_are_quiet(edit: Edit, tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, edit)
    assert seen_by(d221, tmp_path) == []


def test_a_target_of_another_name_that_is_not_last_is_no_target(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, with_itself)
    for path in tmp_path.iterdir():
        path.write_text("\n".join(f"{line},{i % 977}.5" for i, line in enumerate(path.read_text().splitlines())))
    assert seen_by(d221, tmp_path) == []


def test_empty_cells_and_a_broken_file_are_read(tmp_path: Path, seen_by: Seen) -> None:
    write(tmp_path, with_itself)
    path = tmp_path / "train.csv"
    lines = path.read_text().splitlines()
    lines[7] = ",,,,,"
    path.write_text("\n".join([*lines, "12,3"]))
    (tmp_path / "test.csv").write_bytes(b"\x00\x01")
    assert [f.rule for f in seen_by(d221, tmp_path)] in (["D221"], [])
