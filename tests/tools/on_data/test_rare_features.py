"""A feature that is constant in one file and rare in the others: what a random split leaves is no fault (D103)."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_data import examine


def saved(folder: Path, trained: int, differ: int, held_out: int) -> Path:
    random = np.random.default_rng(0)
    x = random.normal(size=(trained + held_out, 12))
    x[:, 3] = 0.0
    x[:differ, 3] = random.uniform(0.1, 1, differ)
    x[:trained] = random.permutation(x[:trained])
    y = random.integers(0, 3, len(x))
    np.savez(folder / "train.npz", x=x[:trained], y=y[:trained])
    np.savez(folder / "val.npz", x=x[trained:], y=y[trained:])
    return folder


@pytest.mark.parametrize(("trained", "differ", "held_out", "told"), [
    (1000, 500, 200, True), (1400, 7, 400, False), (40, 2, 1000, False), (1000, 500, 2, False),
])
def test_a_rare_feature_is_left_out_by_chance(tmp_path: Path, trained: int, differ: int, held_out: int,
                                             told: bool) -> None:
    found = [f for f in examine([saved(tmp_path, trained, differ, held_out)]).findings if f.rule == "D103"]
    assert bool(found) is told
