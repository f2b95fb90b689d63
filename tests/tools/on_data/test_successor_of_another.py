"""D226: a cart that is put back to the start at the end of each ride."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_data.rules import d226_successor_of_another as d226

Seen = Callable[[ModuleType, Path], list[Finding]]


def rides(path: Path, *, across: bool, jumps: bool = True, count: int = 60, broken: bool = False) -> None:
    rng = np.random.default_rng(3)
    now, after, ends = [], [], []
    place = np.zeros(2)
    for _ in range(count):
        steps = int(rng.integers(20, 40))
        begin = rng.normal(0, 1, 2) * 8 if jumps else place
        way = begin + np.cumsum(rng.normal(0, 0.1, (steps + 1, 2)), axis=0)
        place = way[-1]
        now.append(way[:-1])
        after.append(way[1:])
        ends.append(np.arange(steps) == steps - 1)
    state, following, end = (np.concatenate(v) for v in (now, after, ends))
    if across:
        following = np.concatenate([state[1:], state[-1:]])
    if broken:
        state, following = np.full_like(state, np.nan), np.full_like(following, np.nan)
    np.savez(path, state=state.astype(np.float32), next_state=following.astype(np.float32), timeout=end,
             push=rng.normal(size=len(state)).astype(np.float32))


def test_the_successor_of_the_last_row_is_another_rides(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path / "rides.npz", across=True)
    (found,) = seen_by(d226, tmp_path)
    assert (found.severity, found.measured["field"], found.measured["flags"]) == (
        Severity.HIGH, "next_state", ("timeout",))


@pytest.mark.parametrize(("across", "jumps"), [(False, True), (True, False)], ids=["own-successor", "goes-on"])
def test_ends_with_their_own_successor_and_marks_behind_which_it_goes_on(across: bool, jumps: bool, tmp_path: Path,
                                                                         seen_by: Seen) -> None:
    rides(tmp_path / "rides.npz", across=across, jumps=jumps)
    assert seen_by(d226, tmp_path) == []


def test_few_ends_and_no_numbers_say_nothing(tmp_path: Path, seen_by: Seen) -> None:
    rides(tmp_path / "few.npz", across=True, count=8)
    rides(tmp_path / "broken.npz", across=True, broken=True)
    assert seen_by(d226, tmp_path) == []
