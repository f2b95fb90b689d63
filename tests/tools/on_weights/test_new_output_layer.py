"""Two files that differ in the number of classes alone: a head made anew; another width is a fault as before."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from weight_planting import stack, write_npz

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

HEAD, BLOCK = "head.weight", "h.1.mlp.up.weight"


def _shape_findings(folder: Path, name: str, cut: Any) -> list[Any]:
    one = stack(4)
    other = {n: (v[cut] if n == name else v) * np.float32(1.01) for n, v in one.items()}
    first = write_npz(folder / "pretrained.npz", one)
    found = examine(first, write_npz(folder / "tuned.npz", other)).findings
    return [f for f in found if f.rule == "W110" and f.measured.get("kind") == "shape"]


@pytest.mark.parametrize(("name", "cut", "severity"), [
    (HEAD, np.s_[:7], Severity.LOW), (HEAD, np.s_[:, :16], Severity.MEDIUM), (BLOCK, np.s_[:64], Severity.MEDIUM)])
def test_a_new_head_is_a_remark_and_another_width_is_not(tmp_path: Path, name: str, cut: Any,
                                                         severity: Severity) -> None:
    (found,) = _shape_findings(tmp_path, name, cut)
    assert found.severity is severity
    assert ("a new output layer" in found.statement) is (severity is Severity.LOW)
