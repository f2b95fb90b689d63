"""What is said of a kept graph: whose it is and how often one is kept, where that is known."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.source_files.texts import Text

PROGRAM = """
import torch
from torch import nn

def check(net, rows):
    net.eval()
    {guard}:
        out = net(rows)
        wrong = (out - 1.0).abs().mean()
    net.train()
    return wrong

def main():
    net = nn.Linear(4, 1)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    history = []
    for epoch in range(9):
        for x in torch.randn(50, 8, 4):
            loss = net(x).square().mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
            {inside}
        history.append({kept})

main()
"""


def said(guard: str = "if len(rows)", inside: str = "pass", kept: str = "check(net, x)") -> list[str]:
    text = PROGRAM.format(guard=guard, inside=inside, kept=kept)
    return [f.statement for f in audit_texts([Text("train.py", text, "")], ("C103",)).findings]


def test_the_pass_of_an_evaluation_is_named_and_the_loop_that_keeps_it() -> None:
    (one,) = said()
    assert "the autograd graph of the pass at train.py:8 (check), in every turn of the loop at train.py:17" in one


@pytest.mark.parametrize("guard", ["with torch.no_grad()", "with torch.inference_mode()"])
def test_a_guarded_evaluation_is_left_alone(guard: str) -> None:
    assert not said(guard)


def test_what_each_step_keeps_is_said_of_the_step() -> None:
    (one,) = said("with torch.no_grad()", "history.append(loss)")
    assert "its autograd graph, in every training step" in one


def test_a_training_loss_is_not_said_to_be_of_the_evaluation() -> None:
    (one,) = said(kept="loss")
    assert "its autograd graph, in every turn of the loop at train.py:17" in one
