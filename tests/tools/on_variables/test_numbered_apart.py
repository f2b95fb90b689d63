"""V106: values of a column that have other numbers in the rows of another table, by whatever code they were made."""

from __future__ import annotations

import csv
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding
from traindx_tools.live.files_read import FileRead
from traindx_tools.on_variables import visiting
from traindx_tools.on_variables.rules import v106_numbered_apart
from traindx_tools.on_variables.value_numbers import NumberLooks, read_table

ALL = ("car", "education", "home", "medical", "repair", "travel")


def table(folder: Path, name: str, kinds: tuple[str, ...], rows: int) -> tuple[FileRead, list[str]]:
    rng = np.random.default_rng(rows)
    purposes = [*kinds, *rng.choice(kinds, rows - len(kinds)).tolist()]
    path = folder / name
    with path.open("w", newline="", encoding="utf-8") as stream:
        writer = csv.writer(stream)
        writer.writerow(["id", "amount", "purpose"])
        writer.writerows([f"L{i}", round(float(rng.normal()), 3), p] for i, p in enumerate(purposes))
    return FileRead(str(path), "features.py", 20), purposes


def sorted_here(purposes: list[str]) -> Any:
    return np.unique(purposes, return_inverse=True)[1].reshape(-1)


def as_they_occur(purposes: list[str]) -> Any:
    order = list(dict.fromkeys(purposes))
    return np.array([order.index(p) for p in purposes])


def of_one_list(purposes: list[str]) -> Any:
    return np.array([ALL.index(p) for p in purposes])


@pytest.fixture
def told(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[Finding]]:
    """What is told of a program that read these files and has these variables."""
    def of(files: list[FileRead], **variables: Any) -> list[Finding]:
        monkeypatch.setattr(visiting, "roots", lambda: (("train.py", "", n, v) for n, v in variables.items()))
        seen = NumberLooks()
        seen.look(files, 5.0)
        return list(v106_numbered_apart.check(seen.clashes()))
    return of


def both(folder: Path, number: Callable[[list[str]], Any], kinds: tuple[str, ...]) -> tuple[list[FileRead], Any, Any]:
    one, mine = table(folder, "quarter.csv", kinds, 90)
    other, theirs = table(folder, "year.csv", ALL, 300)
    return [one, other], number(mine), number(theirs)


@pytest.mark.parametrize(("number", "kinds"), [
    (sorted_here, ALL[1:]), (as_they_occur, ALL[::-1])], ids=["a value is missing", "in the order of the rows"])
def test_values_that_were_numbered_in_each_table(number: Any, kinds: Any, told: Any, tmp_path: Path) -> None:
    files, mine, theirs = both(tmp_path, number, kinds)
    (finding,) = told(files, test=mine, codes=theirs)
    assert (finding.severity.value, finding.bearing.value) == ("high", "cause")
    assert (finding.where.file, finding.where.line) == ("features.py", 20)
    assert finding.measured["columns"] == ("purpose",)
    assert "separately for each file" in finding.statement


def test_columns_of_a_matrix_of_torch_within_objects(told: Any, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    files, mine, theirs = both(tmp_path, sorted_here, ALL[1:])
    wide = [torch.stack([torch.zeros(len(c), dtype=torch.long), torch.from_numpy(c)], 1) for c in (mine, theirs)]
    assert len(told(files, data={"test": (wide[0], 1.0), "train": wide[1]})) == 1
    assert told(files, test=wide[0].flip(1), train=wide[1]) == []


def test_one_numbering_for_both_and_what_is_none(told: Any, tmp_path: Path) -> None:
    files, mine, theirs = both(tmp_path, of_one_list, ALL[1:])
    assert told(files, test=mine, codes=theirs) == []
    assert told(files, test=sorted_here(list(map(str, mine)))) == []
    rng = np.random.default_rng(0)
    assert told(files, test=rng.integers(0, 5, 90), codes=rng.integers(0, 6, 300)) == []
    assert told(files, test=mine[:80], codes=theirs[:250]) == []
    assert told(files[:1], test=mine) == []


def test_broken_inputs(told: Any, tmp_path: Path) -> None:
    (tmp_path / "uneven.csv").write_text("a,b\n" + "x,1\n" * 40 + "y\n", encoding="utf-8")
    (tmp_path / "bytes.csv").write_bytes(b"\xff\xfe\x00" * 99)
    (tmp_path / "empty.csv").write_text("", encoding="utf-8")
    (tmp_path / "header.csv").write_text("a,b\n", encoding="utf-8")
    (tmp_path / "numbers.csv").write_text("a,b\n" + "1,2\n" * 40, encoding="utf-8")
    names = ("uneven", "bytes", "empty", "header", "numbers", "missing")
    assert [read_table(FileRead(str(tmp_path / f"{n}.csv"))) for n in names] == [None] * 6
    files, *_ = both(tmp_path, sorted_here, ALL[1:])
    assert told([*files, FileRead("missing.csv"), FileRead("data.bin")], a=object(), b=np.zeros((0, 2)), c=None) == []
