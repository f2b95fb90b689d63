"""A loss that came to its level in the first records was updated: what keeps every update away is not the cause."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine

NEVER_UPDATED = ("accum.zero-grad-before-step", "opt.never-stepped")
SCATTER = [0.004, -0.003, 0.001, -0.005, 0.002, 0.003, -0.001, -0.002]


def seen(folder: Path, first: float) -> Examination:
    values = [first, *(2.95 + SCATTER[i % 8] for i in range(39))]
    log = folder / "log.txt"
    log.write_text("".join(f"step {10 * i} loss {v:.4f}\n" for i, v in enumerate(values)))
    return examine([log])


@pytest.mark.parametrize(("first", "moved"), [(3.17, True), (2.955, False)])
def test_the_first_record_tells(tmp_path: Path, first: float, *, moved: bool) -> None:
    told = seen(tmp_path, first)
    (found,) = [f for f in told.findings if f.rule == "L201"]
    assert found.measured["moved"] is moved
    suspects = {h.mode.id: h for h in told.verdict.hypotheses}
    assert not moved or not any(m in suspects for m in NEVER_UPDATED)


def test_a_short_log_says_nothing_of_it(tmp_path: Path) -> None:
    log = tmp_path / "log.txt"
    log.write_text("".join(f"step {i} loss {v} acc 0.1\n" for i, v in enumerate([3.1, 2.95, 2.94, 2.96, 2.95, 2.95])))
    assert not any(f.measured["moved"] for f in examine([log]).findings if f.rule == "L201")
