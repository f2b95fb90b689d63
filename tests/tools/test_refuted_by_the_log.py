"""What code only suggests is no cause where the log shows that nothing came of it."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine
from traindx_tools.finding import Severity

DIVIDES = '''import torch
from torch import nn

net = nn.Linear(4, 3)
opt = torch.optim.Adam(net.parameters(), lr=1e-3)
for x, y in torch.load("batches.pt"):
    mask = y > 0
    losses = nn.functional.cross_entropy(net(x), y, reduction="none")
    loss = (losses * mask).sum() / mask.sum()
    opt.zero_grad()
    loss.backward()
    opt.step()
'''


def seen(folder: Path, losses: list[str], symptom: str = "", end: str = "") -> Examination:
    (folder / "train.py").write_text(DIVIDES)
    lines = [f"step {10 * n} loss {value} lr 0.001\n" for n, value in enumerate(losses)]
    (folder / "log.txt").write_text("".join(lines) + end)
    return examine([folder], symptom=symptom)


FALLING = [f"{1.1 * 0.95**n:.4f}" for n in range(40)]


def severity(seen: Examination) -> Severity:
    return next(f.severity for f in seen.findings if f.rule == "C138")


def test_a_finite_loss_makes_it_a_remark_that_says_why(tmp_path: Path) -> None:
    found = seen(tmp_path, FALLING)
    assert severity(found) is Severity.INFO
    assert "is finite in all 40 records" in next(f.statement for f in found.findings if f.rule == "C138")
    assert found.verdict.status == "healthy"


def test_where_the_loss_breaks_it_is_the_cause(tmp_path: Path) -> None:
    found = seen(tmp_path, [*FALLING, "nan", "nan"])
    assert severity(found) is Severity.LOW
    assert found.verdict.hypotheses[0].mode.id == "num.zero-count-division"


@pytest.mark.parametrize(("losses", "symptom", "end"), [
    ([], "", ""),
    (FALLING[:3], "", ""),
    (FALLING, "the loss is NaN after an hour", ""),
    (FALLING, "", "Traceback (most recent call last):\n  File \"train.py\", line 9, in <module>\n"
                  "RuntimeError: loss is not finite\n"),
], ids=["no log", "three records", "a person saw it", "it ended in an error"])
def test_where_the_log_refutes_nothing_it_stands(tmp_path: Path, losses: list[str], symptom: str, end: str) -> None:
    assert severity(seen(tmp_path, losses, symptom, end)) is Severity.LOW
