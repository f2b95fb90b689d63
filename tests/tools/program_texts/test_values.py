"""What an array holds in a few words, and what is not read."""

from __future__ import annotations

import numpy as np
import pytest

from traindx_tools.program_texts.values import MOST_VALUES, kind_of, values_of


@pytest.mark.parametrize(("array", "told"), [
    (np.array([[0.0, 1.0], [2.0, 5.0]], np.float32), "float32[2, 2] 0 to 5, mean 2, sd 1.87"),
    (np.arange(10), "int64[10] 0 to 9"),
    (np.full(3, 0.5), "float64[3] all 0.5"),
    (np.array([True, False, True, True]), "bool[4] 0.75 true"),
    (np.array([1.0, np.nan, 3.0, np.inf]), "float64[4] 1 to 3, mean 2, sd 1, 2 not finite"),
    (np.array([np.nan]), "float64[1], 1 not finite"),
    (np.zeros((0, 3)), "float64[0, 3]"),
    (np.array(3), "int64[] all 3"),
    (np.array(["a"]), "<U1[1]"),
    (np.array([65504, 65504, 1], np.float16), "float16[3] 1 to 6.55e+04, mean 4.37e+04, sd 3.09e+04"),
])
def test_in_words(array: np.ndarray, told: str) -> None:
    assert values_of(array) == told


def test_a_large_array_is_not_read() -> None:
    assert values_of(np.zeros(MOST_VALUES + 1, np.uint8)) == f"uint8[{MOST_VALUES + 1}]"


def test_the_own_type_of_what_was_converted() -> None:
    assert values_of(np.ones(2, np.float32), "torch.bfloat16") == "bfloat16[2] all 1"
    assert kind_of((), "torch.int64") == "int64[]"
