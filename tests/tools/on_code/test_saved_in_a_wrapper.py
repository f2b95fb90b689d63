"""A checkpoint that was saved inside a wrapper and is loaded without it: louder than strict=False alone."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.finding import Finding

HERE = Path(__file__).parent / "fixtures" / "c206"


def found(path: Path) -> list[Finding]:
    return [f for f in audit([path], rules=["C206"]).findings if f.rule == "C206"]


def test_a_wrapper_makes_it_a_serious_fault() -> None:
    (told,) = found(HERE / "bad_prefix.py")
    assert (told.measured["kind"], told.severity.value) == ("prefix", "high")


@pytest.mark.parametrize(("old", "new"), [
    ("self.net.state_dict()", "getattr(self.net, 'module', self.net).state_dict()"),
    ("nn.DataParallel(net) if devices > 1 else net", "nn.DataParallel(net)"),
    ("nn.DataParallel(net) if devices > 1 else net", "net"),
])
def test_what_fits_is_only_remarked(old: str, new: str, tmp_path: Path) -> None:
    text = (HERE / "bad_prefix.py").read_text()
    assert old in text
    (tmp_path / "job.py").write_text(text.replace(old, new))
    assert [(f.measured["kind"], f.severity.value) for f in found(tmp_path)] == [("strict", "info")]
