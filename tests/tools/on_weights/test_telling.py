"""What all layers have alike is told once, and every statement is short enough to be read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import weight_planting as planted

from traindx_tools.finding import Bearing, Finding, Location, Severity
from traindx_tools.on_weights import examine
from traindx_tools.on_weights.telling import LONGEST, shortened, together


def _with_tables(theta: float) -> dict[str, Any]:
    a = dict(planted.stack(6, 16, vocab=40))
    for i in range(6):
        a[f"h.{i}.attn.inv_freq"] = (theta ** (-np.arange(16) / 16)).astype(np.float32)
    return a


@pytest.mark.parametrize("form", ["safetensors", "npz"])
def test_a_table_of_every_layer_is_told_once(form: str, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(json.dumps({"rope_theta": 500000.0}))
    found = [f for f in examine(planted.write(form, tmp_path, _with_tables(10000.0))).findings if f.rule == "W113"]
    assert [f.measured["alike"] for f in found] == [6]
    assert "the same in 6 of h.*.attn.inv_freq up to h.5.attn.inv_freq" in found[0].statement
    sound = examine(planted.write(form, tmp_path, _with_tables(500000.0), "sound")).findings
    assert [f for f in sound if f.rule == "W113"] == []


def _finding(name: str, statement: str) -> Finding:
    return Finding(rule="W999", title="", severity=Severity.HIGH, bearing=Bearing.CAUSE, statement=statement,
                   where=Location(file="f"), source="f", measured={"name": name})


def test_findings_that_say_something_of_their_own_stay() -> None:
    own = [_finding(f"h.{i}.w", f"h.{i}.w holds {i} of them") for i in range(6)]
    assert together(own) == own
    two = [_finding(f"h.{i}.w", f"h.{i}.w is zero") for i in range(2)]
    assert together(two) == two


def test_long_paths_are_called_by_their_end() -> None:
    one, other = ("/".join(["", "x" * 120, name, "last.pt"]) for name in ("first", "second"))
    said = _finding("w", f"w is the same in {one} and {other} to the bit, and {'so ' * 20}")
    (found,) = shortened([said], [one, other])
    assert "first/last.pt and second/last.pt" in found.statement
    assert len(found.statement) <= LONGEST


def test_what_is_too_long_ends_at_a_word() -> None:
    (found,) = shortened([_finding("w", "word " * 100)], [])
    assert len(found.statement) <= LONGEST
    assert found.statement.endswith("word ...")
