"""What a person meets in the first minutes: a mistyped path, a log that says little, one that says a thing twice."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx.diagnose import diagnose
from traindx_tools.errors import UnreadableInput


@pytest.mark.parametrize("text", ["100/100 [====] - 1s 10ms/step - loss: 0.7 - accuracy: 0.5\n", "no metrics\n"])
def test_a_log_without_any_suspect_has_a_report_too(text: str, tmp_path: Path) -> None:
    (tmp_path / "short.log").write_text(text)
    written = diagnose([tmp_path / "short.log"]).write(tmp_path / "out")
    assert "nothing is called a cause" in Path(written["report"]).read_text()


def test_what_speaks_against_the_suspect_is_not_said_among_what_was_seen_too(tmp_path: Path) -> None:
    rows = [f"[rank{rank}]: step={step} loss={2 - step / 400:.3f} grad_norm={1 + 0.1 * rank + step % 7 / 50:.3f}"
            for step in range(0, 400, 10) for rank in (0, 1)]
    (tmp_path / "run.log").write_text("\n".join((
        *rows, "[rank1]: Traceback (most recent call last):", '[rank1]:   File "/app/train.py", line 180, in <module>',
        "[rank1]:     loss.backward()", "[rank1]: torch.distributed.DistBackendError: NCCL error in: "
        "ProcessGroupNCCL.cpp:1970, unhandled system error", "")))
    said = [row[10:] for row in diagnose([tmp_path / "run.log"]).terminal(width=80).splitlines()]
    assert len([row for row in said if row.startswith("grad_norm differs between rank 0")]) == 1


@pytest.mark.parametrize(("typed", "meant"), [("plain.lgo", True), ("other.csv", False)])
def test_a_path_that_is_mistyped_is_answered_with_the_one_beside_it(typed: str, meant: bool, tmp_path: Path) -> None:
    (tmp_path / "plain.log").write_text("step 1 loss 0.5\n")
    with pytest.raises(UnreadableInput) as refused:
        diagnose([tmp_path / typed])
    assert ("Did you mean" in str(refused.value)) is meant
    assert "plain.log" in str(refused.value)
