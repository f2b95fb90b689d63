"""Lines that a warm-up without end and a division by a count are about."""

from __future__ import annotations

import ast

import pytest

from traindx.usual_lines import anchors_in


def kinds(code: str) -> set[str]:
    return {a.kind for a in anchors_in("train.py", ast.parse(code), code.splitlines())}


@pytest.mark.parametrize(("code", "kind"), [
    ("warmup_steps = warmup_epochs * len(dataset)", "warmup"),
    ("self.warmup = int(c.warm * samples)", "warmup"),
    ("WARMUP = 2000", "warmup_setting"),
    ("loss = (nll * mask).sum() / mask.sum()", "count_division"),
    ("loss = torch.sum(err * m) / torch.count_nonzero(m)", "count_division"),
])
def test_line_is_marked(code: str, kind: str) -> None:
    assert kind in kinds(code)


@pytest.mark.parametrize("code", [
    "loss = (nll * mask).sum() / mask.sum().clamp(min=1)",
    "loss = (nll * mask).sum() / (mask.sum() + 1e-8)",
    "loss = (nll * mask).sum() / max(1, mask.sum())",
    "scaled = x / 255.0",
    "mean = loss / accumulation",
])
def test_guarded_or_other_division_is_not(code: str) -> None:
    assert "count_division" not in kinds(code)
