"""A NaN without a ramp and code that can mask a row completely: the first place to look, and no more than that."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine
from traindx_tools.finding import Severity

FIXTURES = Path(__file__).parent / "on_code/fixtures/c277"


def seen(folder: Path, fixture: str, breaks: int) -> tuple[str, list[str], float]:
    (folder / "model.py").write_text((FIXTURES / fixture).read_text())
    losses = [f"{0.7 - s / 1000:.4f}" if s < breaks else "nan" for s in range(40)]
    (folder / "log.txt").write_text("".join(f"step {5 * s} loss {x} grad_norm {x}\n" for s, x in enumerate(losses)))
    verdict = examine([folder]).verdict
    first = verdict.hypotheses[0].confidence if verdict.hypotheses else 0.0
    return verdict.status, [h.mode.id for h in verdict.hypotheses], first


def test_code_that_can_mask_a_row_is_looked_at_first(tmp_path: Path) -> None:
    status, modes, first = seen(tmp_path, "bad_padding.py", 11)
    assert (status, modes[0]) == ("needs_more_data", "num.all-masked-softmax")
    assert 0.1 < first < 0.5


def test_without_such_code_it_is_one_of_several(tmp_path: Path) -> None:
    status, modes, _ = seen(tmp_path, "good_large_number.py", 11)
    assert status == "needs_more_data"
    assert "num.all-masked-softmax" in modes[1:]


def test_a_healthy_run_with_such_code_is_healthy(tmp_path: Path) -> None:
    assert seen(tmp_path, "bad_padding.py", 99)[0] == "healthy"


def test_it_is_a_remark(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text((FIXTURES / "bad_padding.py").read_text())
    assert [f.severity for f in examine([tmp_path]).findings if f.rule == "C277"] == [Severity.INFO]


def test_a_broken_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("def softmax(x:\n    -inf masked_fill\n")
    with pytest.raises(UnreadableInput, match="not parsed"):
        examine([tmp_path])
