"""Numbers at equal distances are a measure, and ids beside a target are no classes: sorted shards are left alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data import examination


def serious(folder: Path) -> list[Finding]:
    return [f for f in examination.examine([folder]).findings if f.severity.rank >= Severity.MEDIUM.rank]


def cells(folder: Path, step: int = 5, held_step: int = 12, factor: float = 1.0) -> None:
    """Cells that age, in shards in the order of their age; others at other ages are held out."""
    rng = np.random.default_rng(3)

    def rows(cycle: np.ndarray, cell: np.ndarray) -> dict[str, np.ndarray]:
        soh = (100 - 0.03 * cycle + rng.normal(size=len(cycle))).astype(np.float32)
        return {"x": (soh[:, None] * np.linspace(0.5, 1, 12) + rng.normal(size=(len(cycle), 12))).astype(np.float32),
                "soh": soh, "cycle": cycle.astype(np.int32), "cell": cell.astype(np.int32)}

    (folder / "data").mkdir()
    for shard in range(8):
        cycle = np.repeat(np.arange(step * 20 * shard, step * 20 * (shard + 1), step) + step, 24)
        np.savez(folder / "data" / f"train-{shard:03}.npz", **rows(cycle, np.tile(np.arange(24), 20)))
    held = np.repeat(np.arange(held_step, step * 160, held_step), 8)
    np.savez(folder / "data" / "val.npz", **rows(held * factor, np.tile(np.arange(8), len(held) // 8)))


def test_ages_in_order_and_held_out_cells_are_no_fault(tmp_path: Path) -> None:
    cells(tmp_path)
    assert serious(tmp_path) == []


def test_held_out_ages_in_another_unit_are_told(tmp_path: Path) -> None:
    cells(tmp_path, factor=60.0)
    found = serious(tmp_path)
    assert {f.rule for f in found} >= {"D104"}
    assert any("cycle" in f.statement for f in found)


@pytest.mark.parametrize("name", ["label", "target", "class"])
def test_what_is_called_a_target_stays_one(name: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for split, most in (("train", 12), ("val", 4)):
        y = 10 * rng.integers(0, most, 900)
        np.savez(tmp_path / "data" / f"{split}.npz", **{"x": rng.normal(size=(900, 6)), "score": rng.normal(size=900),
                                                        name: y})
    assert "D128" in {f.rule for f in serious(tmp_path)}


def test_ids_without_another_target_stay_classes(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for split, most in (("train", 12), ("val", 4)):
        np.savez(tmp_path / "data" / f"{split}.npz", x=rng.normal(size=(900, 6)), species=rng.integers(0, most, 900))
    assert "D128" in {f.rule for f in serious(tmp_path)}
