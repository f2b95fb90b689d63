"""Every planted origin of a non-finite value is named with its operation, phase, line and reason."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent / "planted"))

from finding_origins import origin_of
from origins import PLANTED, Planted


def test_there_are_enough_of_every_family() -> None:
    assert len(PLANTED) >= 40
    assert {p.family for p in PLANTED} == {"forward", "mask", "backward", "custom", "optimizer", "data", "half",
                                           "checkpointed", "compiled"}


@pytest.mark.slow
@pytest.mark.parametrize("case", PLANTED, ids=lambda p: p.name)
def test_the_operation_and_the_line_are_named(case: Planted, tmp_path: Path) -> None:
    found = origin_of(case.run, tmp_path)
    assert found is not None
    told = found.measured
    assert str(told["op"]).startswith(case.op)
    assert (told["phase"], told["line"], told["reason"]) == (case.phase, case.line, case.reason)
    assert Path(str(told["file"])).name == case.file
    assert case.module in (None, told.get("module"))
    assert found.where.line == case.line
