"""Findings: plain values that survive JSON and always have a place."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from traindx_tools.finding import Bearing, Finding, Location, Patch, Severity

VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-10**9, 10**9), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3).map(tuple), max_leaves=4)


@pytest.mark.slow
@given(st.dictionaries(st.text(min_size=1, max_size=8), VALUES.filter(lambda v: v not in ("nan", "inf", "-inf"))))
def test_a_finding_survives_json(measured: dict[str, object]) -> None:
    patch = Patch("a.py", 3, 3, "x", "y", "change x")
    seen = Finding("L101", "t", Severity.HIGH, Bearing.CAUSE, "s", Location(file="a", line=1, step=2.0), "a",
                   measured, (patch,))  # type: ignore[arg-type]
    assert Finding.from_json(json.loads(json.dumps(seen.to_json(), allow_nan=False))) == seen


def test_numbers_that_are_not_finite_become_words_and_come_back() -> None:
    seen = Finding("L101", "t", Severity.HIGH, Bearing.CAUSE, "s", Location(step=math.inf), "a",
                   {"peak": math.inf, "low": -math.inf})
    assert '"inf"' in json.dumps(seen.to_json(), allow_nan=False)
    assert Finding.from_json(seen.to_json()).measured == {"peak": math.inf, "low": -math.inf}


def test_a_finding_without_a_place_is_refused() -> None:
    with pytest.raises(ValueError, match="without a place is a bug"):
        Location(quote="somewhere")


@pytest.mark.parametrize("rule", ["L1", "Q101", "l101", "L1011", ""])
def test_a_rule_has_a_letter_and_three_digits(rule: str) -> None:
    with pytest.raises(ValueError, match="three digits"):
        Finding(rule, "t", Severity.LOW, Bearing.COMPANION, "s", Location(step=1), "a")


def test_a_place_reads_like_a_person_would_write_it() -> None:
    assert str(Location(file="train.py", line=32)) == "train.py:32"
    assert str(Location(file="log.txt", line=9, step=380, end_step=400, rank=1)) == "log.txt:9, step 380-400, rank 1"
    assert str(Location(file="log.txt", line=9, step=9, unit="line")) == "log.txt:9"
