"""`sorted` by the numbers in names, in the program's own code; what text sorts alike is left alone."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
import torch

PLAIN = [f"in/scan{i}.npy" for i in range(30)]
PADDED = [f"in/scan{i:03d}.npy" for i in range(30)]


def _step() -> None:
    """What is recorded is of processes that train."""
    model = torch.nn.Linear(2, 1)
    model(torch.ones(4, 2)).sum().backward()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def test_names_come_in_the_order_of_their_numbers(changed: Any, programs: Any) -> None:
    with changed("names-by-number") as told:
        assert sorted(PLAIN) == PLAIN
        assert sorted(map(Path, PLAIN)) == [Path(p) for p in PLAIN]
        assert sorted(PLAIN, key=os.path.basename, reverse=True) == PLAIN[::-1]
        programs.train()
        _step()
    assert told.applied.times == 3
    assert Path(__file__).name in told.applied.where, told.applied
    assert sorted(PLAIN) != PLAIN


def test_other_sorts_are_left_alone(changed: Any, programs: Any) -> None:
    pairs = [(p, i) for i, p in enumerate(PLAIN)]
    expected = [sorted(PADDED), sorted(PLAIN, key=len), sorted(pairs), sorted(PLAIN[:9]), sorted([3, 1, 2])]
    with changed("names-by-number") as told:
        assert [sorted(PADDED), sorted(PLAIN, key=len), sorted(pairs), sorted(PLAIN[:9]), sorted([3, 1, 2])] == expected
        programs.train()
        with pytest.raises(TypeError):
            sorted(["a"] * 20 + [None])  # type: ignore[list-item]
        _step()
    assert not told.applied.times
