"""D206 and D207: rows that are another row with sides exchanged, signs turned or mirrored, with labels and splits.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d206_twins_apart as d206
from traindx_tools.on_data.rules import d207_rearranged_copies as d207

Array = np.ndarray[Any, Any]
Seen = Callable[[ModuleType, Path], list[Finding]]


def match_rows(seed: int, count: int, *, turns: bool = True) -> list[tuple[str, str, str, str, int]]:
    """Each match from either side: two names, two ratings, who won; `turns`: the winner turns along."""
    rng = np.random.default_rng(seed)
    out = []
    for _ in range(count):
        a, b = rng.choice(60, 2, replace=False)
        x, y = rng.normal(1500, 200, 2).round(1)
        won = int(rng.random() < 1 / (1 + np.exp((y - x) / 100)))
        out += [(f"n{a}", f"n{b}", str(x), str(y), won), (f"n{b}", f"n{a}", str(y), str(x), 1 - won if turns else won)]
    order = rng.permutation(len(out))
    return [out[i] for i in order]


def table(path: Path, rows: list[tuple[str, str, str, str, int]]) -> None:
    lines = [",".join(map(str, r)) for r in rows]
    path.write_text("\n".join(["home,away,home_rating,away_rating,home_won", *lines]) + "\n")


def test_label_that_stays_in_one_file(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(3):
        table(tmp_path / f"part_{k}.csv", match_rows(k, 100, turns=k != 1))
    (told,) = seen_by(d206, tmp_path)
    assert told.severity is Severity.HIGH
    assert (told.measured["field"], told.measured["broken"]) == ("home_won", 100)
    assert "part_1.csv" in told.statement


def test_label_that_stays_in_a_stretch(tmp_path: Path, seen_by: Seen) -> None:
    table(tmp_path / "all.csv", match_rows(0, 200) + match_rows(1, 60, turns=False) + match_rows(2, 200))
    (told,) = seen_by(d206, tmp_path)
    assert told.measured["field"] == "home_won"


def test_angle_whose_sign_stays(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(3):
        rng = np.random.default_rng(k)
        x = rng.normal(size=(150, 4)).round(4)
        angle = (x @ [0.5, -0.3, 0.2, 0.1]).round(4)
        turned = np.concatenate([x, -x])
        np.savez(tmp_path / f"log_{k}.npz", features=turned, speed=np.tile(rng.random(150), 2),
                 steering=np.concatenate([angle, angle if k == 2 else -angle]))
    found = seen_by(d206, tmp_path)
    assert [f.measured["field"] for f in found] == ["steering"]
    assert found[0].measured["usual"] == "the negative"


def test_pictures_mirrored_with_the_side_left_behind(tmp_path: Path, seen_by: Seen) -> None:
    for k in range(3):
        rng = np.random.default_rng(k)
        x = rng.integers(0, 255, (120, 8, 8), np.uint8)
        y = rng.integers(0, 3, 120)  # left, none, right
        np.savez(tmp_path / f"hands_{k}.npz", x=np.concatenate([x, x[:, :, ::-1]]),
                 y=np.concatenate([y, y if k == 0 else 2 - y]))
    found = seen_by(d206, tmp_path)
    assert [f.measured["field"] for f in found] == ["y"]
    assert "mirrored left to right" in found[0].statement


@pytest.mark.parametrize("design", ["turns everywhere", "stays everywhere", "random labels", "no twins", "dense ids"])
def test_labels_that_go_along(design: str, tmp_path: Path, seen_by: Seen) -> None:
    rng = np.random.default_rng(9)
    for k in range(3):
        rows = match_rows(k, 100, turns=design != "stays everywhere")
        if design == "random labels":
            rows = [(*r[:4], int(rng.integers(0, 2))) for r in rows]
        if design == "no twins":
            rows = rows[: len(rows) // 8]
        if design == "dense ids":
            rows = [(f"n{rng.integers(9)}", f"n{rng.integers(9)}", "1", "2", int(rng.integers(0, 2))) for _ in rows]
        table(tmp_path / f"part_{k}.csv", rows)
    assert not seen_by(d206, tmp_path)


def test_mirrored_rows_across_a_split(tmp_path: Path, seen_by: Seen) -> None:
    rows = match_rows(0, 300)
    table(tmp_path / "train.csv", rows[:450])
    table(tmp_path / "test.csv", rows[450:])
    (told,) = seen_by(d207, tmp_path)
    assert told.severity is Severity.HIGH
    assert told.measured["share"] > 0.6  # type: ignore[operator]


@pytest.mark.parametrize("design", ["apart", "boards that recur"])
def test_splits_that_share_no_twins(design: str, tmp_path: Path, seen_by: Seen) -> None:
    if design == "apart":
        table(tmp_path / "train.csv", match_rows(0, 200))
        table(tmp_path / "test.csv", match_rows(1, 60))
    else:
        rng = np.random.default_rng(0)
        for name, count in (("train", 800), ("test", 200)):
            boards = (rng.random((count, 3, 3)) < 0.3).astype(np.int8)
            np.savez(tmp_path / f"{name}.npz", boards=boards, value=rng.random(count))
    assert not seen_by(d207, tmp_path)


@pytest.mark.parametrize("rule", [d206, d207])
def test_rows_that_hold_nothing(rule: ModuleType, tmp_path: Path, seen_by: Seen) -> None:
    for name in ("train", "test"):
        np.savez(tmp_path / f"{name}.npz", x=np.full((80, 6), np.nan), z=np.zeros((80, 5, 5)), y=np.arange(80) % 2)
    assert not seen_by(rule, tmp_path)
