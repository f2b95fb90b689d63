"""A loss that hardly moves in what the log holds, whose first epochs the log does not hold."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import examine
from traindx_tools.finding import Severity

VALUES = [2114.1, 2107.8, 2104.7, 2102.8, 2102.7, 2098.7, 2096.6, 2095.3, 2094.8, 2094.5]


@pytest.mark.parametrize(("every", "first", "severity"), [(6, 6, Severity.LOW), (1, 0, Severity.MEDIUM),
                                                          (1, 1, Severity.MEDIUM)])
def test_what_happened_before_the_first_record_is_not_judged(
    every: int, first: int, severity: Severity, tmp_path: Path
) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"epoch {first + every * k} loss {v}\n" for k, v in enumerate(VALUES)))
    (found,) = [f for f in examine([log]).findings if f.rule == "L201"]
    assert found.severity is severity
    assert ("what happened before epoch 6 is not in the log" in found.statement) is (severity is Severity.LOW)
