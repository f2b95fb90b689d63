"""Groups of files one behind the other, and pictures beside the labels of a table: sets that no file holds."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examine

Array = np.ndarray[Any, Any]


def alarms(folder: Path) -> list[Finding]:
    report = examine([folder])
    assert not report.notes
    return [f for f in report.findings if f.severity is not Severity.INFO]


def demos(folder: Path, change: Callable[[int, Array], Array]) -> None:
    """Five files of ten demonstrations of different lengths: four numbers of an orientation, three of a place."""
    h5py = pytest.importorskip("h5py")
    rng = np.random.default_rng(0)
    for k in range(5):
        with h5py.File(folder / f"demos_{k}.hdf5", "w") as file:
            for demo in range(10):
                rows = int(rng.integers(50, 90))
                angle = np.cumsum(rng.normal(0, 0.05, rows)) + rng.normal(0, 0.5)
                turned = np.stack([0.1 * np.sin(angle), 0.2 * np.sin(angle), np.sin(angle), np.cos(angle)], axis=1)
                turned += rng.normal(0, 0.01, turned.shape)
                file[f"data/demo_{demo}/obs/orientation"] = change(k, turned).astype(np.float32)
                file[f"data/demo_{demo}/obs/place"] = rng.normal(size=(rows, 3)).astype(np.float32)
                file[f"data/demo_{demo}/actions"] = rng.normal(size=(rows, 4)).astype(np.float32)


@pytest.mark.parametrize("odd", [1, 4])
def test_numbers_of_an_orientation_in_another_order(odd: int, tmp_path: Path) -> None:
    demos(tmp_path, lambda k, q: q[:, [3, 0, 1, 2]] if k == odd else q)
    found = alarms(tmp_path)
    assert found
    assert all(f"demos_{odd}.hdf5" in f.statement and "orientation" in f.statement for f in found)


@pytest.mark.parametrize("design", ["sound", "each file its own"])
def test_demonstrations_that_are_alike(design: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(5)
    tilt = rng.normal(0, 0.3 * (design == "each file its own"), (5, 4))
    demos(tmp_path, lambda k, q: q + tilt[k])
    assert alarms(tmp_path) == []


def pictures(folder: Path, order: Callable[[str, list[int]], list[int]],
             labels: Callable[[str, int], str] = "{}/{}".format) -> None:
    """Discs and bars of three cameras, 120 each, in folders; a table names each file with its label."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(1)
    y, x = np.mgrid[:24, :24]
    lines = ["file,kind"]
    for camera in ("north", "south", "west"):
        (folder / camera).mkdir()
        kinds = [int(k) for k in rng.integers(0, 3, 120)]
        for i, kind in enumerate(kinds):
            dx, dy = x - 12 + rng.normal(), y - 12 + rng.normal()
            shape = (np.hypot(dx, dy) < 6, abs(dx) < 3, abs(dy) < 3)[kind]
            pixels = np.clip(50 + 120 * shape + rng.normal(0, 8, (24, 24)), 0, 255)
            image.fromarray(pixels.astype(np.uint8)).save(folder / camera / f"shot{i}.png")
        said = order(camera, kinds)
        lines += [f"{labels(camera, i)}.png,{k}".replace("/", "/shot") for i, k in enumerate(said)]
    (folder / "labels.csv").write_text("\n".join(lines) + "\n")


def sorted_as_text(camera: str, kinds: list[int]) -> list[int]:
    names = sorted(range(len(kinds)), key=lambda i: f"shot{i}.png")
    out = list(kinds)
    for place, i in enumerate(names):
        out[i] = kinds[place]
    return out if camera == "south" else kinds


def test_labels_in_the_order_of_sorted_names(tmp_path: Path) -> None:
    pictures(tmp_path, sorted_as_text)
    (told,) = alarms(tmp_path)
    assert (told.rule, told.measured["field"]) == ("D109", "kind")
    assert "south" in told.statement


def test_two_kinds_exchanged_in_one_folder(tmp_path: Path) -> None:
    pictures(tmp_path, lambda camera, kinds: [(1, 0, 2)[k] if camera == "west" else k for k in kinds])
    assert {f.rule for f in alarms(tmp_path)} == {"D108"}


def test_labels_that_belong(tmp_path: Path) -> None:
    pictures(tmp_path, lambda _, kinds: kinds)
    assert alarms(tmp_path) == []


def test_a_table_that_names_none_of_them(tmp_path: Path) -> None:
    pictures(tmp_path, lambda _, kinds: kinds, lambda camera, i: f"elsewhere{camera}/{i}")
    assert not [f for f in alarms(tmp_path) if f.rule in ("D108", "D109", "D123")]


def test_tables_in_folders_that_list_the_files_beside_them(tmp_path: Path) -> None:
    """`lot_3/labels.csv` names `w01.png`, as the tables of the other folders do."""
    pictures(tmp_path, lambda camera, kinds: [(1, 0, 2)[k] if camera == "west" else k for k in kinds])
    lines = (tmp_path / "labels.csv").read_text().splitlines()[1:]
    for camera in ("north", "south", "west"):
        own = [line.partition("/")[2] for line in lines if line.startswith(f"{camera}/")]
        (tmp_path / camera / "labels.csv").write_text("\n".join(["file,kind", *own]) + "\n")
    (tmp_path / "labels.csv").unlink()
    found = alarms(tmp_path)
    assert {f.rule for f in found} == {"D108"}
    assert "west" in found[0].statement


@pytest.mark.parametrize("broken", ["a table without rows", "other columns"])
def test_tables_in_folders_of_which_one_is_odd(broken: str, tmp_path: Path) -> None:
    pictures(tmp_path, lambda _, kinds: kinds)
    lines = (tmp_path / "labels.csv").read_text().splitlines()[1:]
    for camera in ("north", "south", "west"):
        own = [line.partition("/")[2] for line in lines if line.startswith(f"{camera}/")]
        (tmp_path / camera / "labels.csv").write_text("\n".join(["file,kind", *own]) + "\n")
    (tmp_path / "labels.csv").unlink()
    odd = {"a table without rows": "file,kind\n", "other columns": "name,sort\n" + "\n".join(own) + "\n"}[broken]
    (tmp_path / "west" / "labels.csv").write_text(odd)
    assert not [f for f in alarms(tmp_path) if f.rule in ("D108", "D109", "D123")]
