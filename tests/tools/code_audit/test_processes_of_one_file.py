"""Files of one program: what one of them starts on several processes says nothing of a loop of another."""

from __future__ import annotations

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

TUNED = """
import torch
def invert(net, target, least):
    code = torch.zeros(1, 8, requires_grad=True)
    adam = torch.optim.Adam([code], lr=0.01)
    for turn in range(100):
        loss = torch.nn.functional.mse_loss(net(code), target)
        adam.zero_grad()
        loss.backward()
        adam.step()
        value = loss.item()
        if value < least:
            break
    return code
"""
STARTED = """
import torch
from accelerate import Accelerator
import tuned
net = torch.nn.Linear(8, 2)
"""
ELSEWHERE = "accelerator = Accelerator()\nprint(accelerator.device)\n"


def told(**texts: str) -> list[str]:
    parsed = [parse_source(f"{name}.py", text) for name, text in texts.items()]
    assert all(isinstance(p, SourceFile) for p in parsed)
    return [f.rule for f in audit_sources(parsed).findings if f.severity.rank > 1]


def test_a_loop_that_no_process_group_surrounds_may_end_by_its_own_loss() -> None:
    assert told(tuned=TUNED, main=STARTED + ELSEWHERE) == []


def test_one_that_runs_under_it_may_not() -> None:
    called = "tuned.invert(net, torch.ones(1, 2), 0.1)\n"
    assert told(tuned=TUNED, main=STARTED + ELSEWHERE + called) == ["C264"]
