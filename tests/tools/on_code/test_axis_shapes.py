"""Axes that a function names, followed to the places where they are asked for again."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit.entry import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

HEAD = "import torch\nfrom torch import nn\n\n\ndef f(x, heads, flag):\n    b, t, d = x.shape\n"


def found(body: str) -> list[str]:
    text = HEAD + "".join(f"    {line}\n" for line in body.split("\n"))
    source = parse_source("model.py", text)
    assert isinstance(source, SourceFile)
    return [f.rule for f in audit_sources([source]).findings if f.rule == "C247"]


@pytest.mark.parametrize("body", [
    "return x.view(b, d, t)",
    "y = x.relu()\nreturn torch.reshape(y, (b, d, t))",
    "y = nn.Linear(4, 4)(x.float())\nreturn y.view(b, heads, t, d // heads)",
])  # fmt: skip
def test_an_axis_at_another_place_is_seen(body: str) -> None:
    assert found(body) == ["C247"]


@pytest.mark.parametrize("body", [
    "x = x.transpose(1, 2)\nreturn x.reshape(b, d, t)",
    "if flag:\n    x = x.transpose(1, 2)\nreturn x.reshape(b, d, t)",
    "for _ in range(2):\n    x = x.flip(1)\nreturn x.view(b, d, t)",
    "y = x.view(b * t, d)\nreturn y.view(b, t, d)",
    "if flag:\n    y = x.transpose(1, 2)\nelse:\n    y = x\nreturn y.view(b, d, t)",
    "return x.view(b, -1, d)",
    "k = torch.arange(t)\nk = heads\nb, t = k.size(0), k.size(1)\nreturn k.view(b, -1, t)",
    "return x.view(*x.shape[:1], d, t)",
])  # fmt: skip
def test_what_is_not_certain_or_right_is_left_alone(body: str) -> None:
    assert found(body) == []
