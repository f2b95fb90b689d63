"""Numbers that come in any way are those of a list, in its order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from traindx_tools.on_logs.readers.growing import Growing

_FLOATS = st.floats(width=32) | st.just(math.nan)
_NEW = st.one_of(
    st.tuples(st.just("single"), _FLOATS), st.tuples(st.just("block"), st.lists(_FLOATS, max_size=6)),
    st.tuples(st.just("unknown"), st.integers(0, 5)), st.tuples(st.just("counted"), st.integers(0, 5)),
    st.tuples(st.just("cut"), st.integers(0, 9)), st.tuples(st.just("told"), st.none()),
)  # fmt: skip


@given(st.lists(_NEW, max_size=12))
@example([("counted", 0), ("unknown", 1)])
def test_they_are_those_of_a_list(steps: list[tuple[str, object]]) -> None:
    growing, expected = Growing("d"), list[float]()
    for what, new in steps:
        if isinstance(new, float):
            growing.append(new)
            expected.append(new)
        elif isinstance(new, list):
            growing.extend(np.array(new))
            expected.extend(new)
        elif what == "cut" and isinstance(new, int):
            growing.cut(min(new, len(expected)))
            del expected[min(new, len(expected)):]
        elif what == "unknown" and isinstance(new, int):
            growing.extend(np.full(new, math.nan))
            expected.extend([math.nan] * new)
        elif what == "counted" and isinstance(new, int):
            growing.extend(range(len(expected), len(expected) + new))
            expected.extend(range(len(expected), len(expected) + new))
        else:
            growing.told()
        assert len(growing) == len(expected)
    np.testing.assert_array_equal(growing.told(), np.array(expected, np.float64))
    assert growing.last is None or np.array_equal([growing.last], expected[-1:], equal_nan=True)
    np.testing.assert_array_equal(growing.between(len(expected) // 2, len(expected)), expected[len(expected) // 2:])


def test_what_was_told_stays_when_more_comes() -> None:
    growing = Growing("d")
    growing.extend(np.arange(5.0))
    told = growing.told()
    growing.append(9.0)
    growing.extend(np.arange(3.0))
    assert told.tolist() == [0, 1, 2, 3, 4]
    assert growing.told().tolist() == [0, 1, 2, 3, 4, 9, 0, 1, 2]


@pytest.mark.parametrize("start", [0, 7])
def test_numbers_that_count_on_take_no_room(start: int) -> None:
    growing = Growing("q")
    growing.extend(range(start, start + 100))
    growing.extend(range(start + 100, start + 10**9))
    assert len(growing) == 10**9
    assert growing.between(10**9 - 2, 10**9).tolist() == [start + 10**9 - 2, start + 10**9 - 1]
    assert growing._block.nbytes == 0


def test_some_of_its_own_are_taken_in_their_place() -> None:
    growing = Growing("d")
    growing.extend(np.arange(10.0))
    growing.put(4, growing.told()[4:][::-1])
    assert growing.told().tolist() == [0, 1, 2, 3, 9, 8, 7, 6, 5, 4]
