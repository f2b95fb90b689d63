"""Student's t agrees with the printed tables."""

from __future__ import annotations

import pytest

from traindx_tools.experiments.student import two_sided, within


@pytest.mark.parametrize(("degrees", "five", "one"), [(1, 12.706, 63.657), (2, 4.303, 9.925), (3, 3.182, 5.841),
                                                      (4, 2.776, 4.604), (8, 2.306, 3.355), (30, 2.042, 2.750)])
def test_as_in_any_table(degrees: int, five: float, one: float) -> None:
    assert two_sided(0.05, degrees) == pytest.approx(five, abs=1e-3)
    assert two_sided(0.01, degrees) == pytest.approx(one, abs=1e-3)


def test_the_inverse_is_one() -> None:
    assert within(two_sided(0.0004, 2), 2) == pytest.approx(0.9996)
    assert within(0.0, 5) == 0


def test_no_degree_of_freedom_is_refused() -> None:
    with pytest.raises(ValueError, match="at least one degree"):
        within(1.0, 0)
