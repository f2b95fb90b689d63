"""V105: named numbers of a file that was read, and the object that has their names and holds others."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead
from traindx_tools.on_variables import visiting
from traindx_tools.on_variables.read_values import ReadLooks, read_again
from traindx_tools.on_variables.rules import v105_read_and_replaced

STORED = {"mean": np.linspace(40.3, 60.1, 12), "std": np.linspace(5.2, 9.9, 12), "y_mean": 51.7, "y_std": 6.2}
DATA = np.random.default_rng(0).normal(20.0, 3.0, (200, 12))


class Scaler:
    """Fits itself where nobody said that it is fitted."""

    def __init__(self, mean: Any = None, std: Any = None, y_mean: float = 0.0, y_std: float = 1.0) -> None:
        self._mean, self._std, self.y_mean, self.y_std = mean, std, y_mean, y_std

    def fit(self, x: Any) -> None:
        self._mean, self._std = x.mean(0), x.std(0)
        self.y_mean, self.y_std = float(x.mean()), float(x.std())


def stored(folder: Path, ending: str, values: Any = None) -> FileRead:
    path = folder / f"scaler{ending}"
    values = STORED if values is None else values
    if ending == ".npz":
        np.savez(path, **values)
    else:
        path.write_text(json.dumps({n: np.asarray(v).tolist() for n, v in values.items()}), encoding="utf-8")
    return FileRead(str(path), "train.py", 7)


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """What is told of a program with these variables. `looks`: what happens before each look at them."""
    def of(file: FileRead, *looks: Callable[[], None], **variables: Any) -> list[Finding]:
        monkeypatch.setattr(visiting, "roots", lambda: (("train.py", "", n, v) for n, v in variables.items()))
        seen = ReadLooks()
        for happens in looks:
            happens()
            seen.look([file], 5.0)
        return list(v105_read_and_replaced.check(seen.others()))
    return of


def nothing() -> None:
    """Between two looks."""


@pytest.mark.parametrize("ending", [".npz", ".json"])
def test_a_scaler_that_was_loaded_and_fitted_again(ending: str, told: Any, tmp_path: Path) -> None:
    file = stored(tmp_path, ending)
    scaler = Scaler(*STORED.values())
    (finding,) = told(file, lambda: scaler.fit(DATA), nothing, scaler=scaler)
    assert (finding.severity.value, finding.bearing.value) == ("high", "cause")
    assert (finding.where.file, finding.where.line) == ("train.py", 7)
    assert finding.measured["class"] == "Scaler"


def test_a_scaler_that_holds_the_file(told: Any, tmp_path: Path) -> None:
    file = stored(tmp_path, ".npz")
    scaler, other = Scaler(*STORED.values()), Scaler()
    other.fit(DATA)
    assert told(file, nothing, nothing, scaler=scaler, other=[other]) == []
    scaler._mean = scaler._mean.astype(np.float32).astype(np.float64)
    assert told(file, nothing, nothing, scaler=scaler, other=[other]) == []


def test_statistics_that_go_on_from_the_file(told: Any, tmp_path: Path) -> None:
    scaler = Scaler(*STORED.values())

    def moves() -> None:
        scaler._mean, scaler._std, scaler.y_mean, scaler.y_std = (
            0.8 * np.asarray(v) + 1 for v in (scaler._mean, scaler._std, scaler.y_mean, scaler.y_std))

    assert told(stored(tmp_path, ".npz"), moves, moves, scaler=scaler) == []


def test_data_that_were_scaled_and_settings(told: Any, tmp_path: Path) -> None:
    class Rows:
        x: Any
        y: Any

    rows = Rows()
    rows.x, rows.y = (DATA - 20) / 3, DATA[:, 0] / 7
    assert told(stored(tmp_path, ".npz", {"x": DATA, "y": DATA[:, 0]}), nothing, nothing, rows=rows) == []
    settings = {"epochs": 5, "lr": 0.2}
    assert told(stored(tmp_path, ".json", {"epochs": 3, "lr": 0.1}), nothing, nothing, settings=settings) == []
    (finding,) = told(stored(tmp_path, ".json", {"loss": 0.31, "error": 0.12}), nothing, nothing,
                      figures={"loss": 0.9, "error": 0.7})
    assert (finding.severity.value, finding.bearing.value) == ("low", "sign")


def test_one_look_says_nothing(told: Any, tmp_path: Path) -> None:
    scaler = Scaler(*STORED.values())
    assert told(stored(tmp_path, ".npz"), lambda: scaler.fit(DATA), scaler=scaler) == []


def test_broken_inputs(tmp_path: Path) -> None:
    (tmp_path / "a.npz").write_bytes(b"PK no archive")
    (tmp_path / "b.json").write_text("[1, 2", encoding="utf-8")
    (tmp_path / "c.json").write_text("[1.5, 2.5]", encoding="utf-8")
    (tmp_path / "d.json").write_text('{"a": NaN, "b": "x", "c": null, "d": {"e": 1.5}}', encoding="utf-8")
    np.savez(tmp_path / "e.npz", empty=np.zeros(0), text=np.array(["a"]), deep=np.array([np.inf]))
    for name in ("a.npz", "b.json", "c.json", "d.json", "e.npz", "missing.npz", "train.py"):
        assert read_again(FileRead(str(tmp_path / name))) is None
    seen = ReadLooks()
    seen.look([FileRead(str(tmp_path / "missing.npz"))], 0.1)
    assert list(seen.others()) == []
