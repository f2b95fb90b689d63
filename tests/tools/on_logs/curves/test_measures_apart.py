"""The gap between training and validation (L204) is one of a quantity: errors in units and a bare "val" are another."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs.judge import judge_run
from traindx_tools.on_logs.reading import read_run

APART = [f"epoch {i} lr 0.001 loss {0.03 - 0.001 * i:.4f} val MAE {134.8 - i:.1f} riders/h" for i in range(12)]
BARE = [f"epoch {i} loss {0.2 - 0.01 * i:.3f} train {0.93 + 0.001 * i:.3f} val {0.92 + 0.001 * i:.3f}"
        for i in range(12)]
SAME = [f"epoch {i} lr 0.001 loss {0.03 - 0.001 * i:.4f} val loss {134.8 - 0.01 * i:.2f}" for i in range(12)]
BOTH_ERRORS = [f"epoch {i} train mae {3 - 0.1 * i:.3f} val mae {134.8 - 0.01 * i:.2f}" for i in range(12)]


@pytest.mark.parametrize(("lines", "told"), [(APART, False), (BARE, False), (SAME, True), (BOTH_ERRORS, True)])
def test_only_one_and_the_same_measure_has_a_gap(tmp_path: Path, lines: list[str], told: bool) -> None:
    (tmp_path / "train.log").write_text("\n".join(lines) + "\n")
    found = judge_run(read_run([str(tmp_path / "train.log")]))
    assert any(f.rule == "L204" for f in found) is told
