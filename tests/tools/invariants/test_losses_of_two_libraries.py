"""`ctc_loss` of torch takes log-probabilities, that of optax raw scores."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit.entry import audit_texts
from traindx_tools.source_files.texts import Text

TORCH = """
import torch
from torch import nn
net = nn.Linear(8, 11)
opt = torch.optim.Adam(net.parameters())
for x, y, n, m in batches():
    scores = net(x)
    loss = torch.nn.functional.ctc_loss({given}, y, n, m)
    opt.zero_grad()
    loss.backward()
    opt.step()
"""
OPTAX = """
import jax
import optax
import flax.linen as nn

class Net(nn.Module):
    @nn.compact
    def __call__(self, x):
        return nn.Dense(11)(x)

net = Net()

def loss_fn(params, x, pad, ids, id_pad):
    return optax.ctc_loss(net.apply(params, x), pad, ids, id_pad).mean()

grad = jax.jit(jax.value_and_grad(loss_fn))
"""


@pytest.mark.parametrize(("text", "rules"), [
    (TORCH.format(given="scores"), ["C102"]), (TORCH.format(given="scores.log_softmax(-1)"), []), (OPTAX, []),
])
def test_each_takes_its_own(text: str, rules: list[str]) -> None:
    report = audit_texts([Text("train.py", text, "")])
    assert [f.rule for f in report.findings if f.rule == "C102"] == rules
