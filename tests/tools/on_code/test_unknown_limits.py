"""A limit that is not known may guard a logarithm or a root: nothing is said; an upper limit alone guards neither."""

from __future__ import annotations

import pytest

from traindx_tools.code_audit import audit_sources
from traindx_tools.on_code.source import SourceFile, parse_source

PROGRAM = """\
import argparse
import jax.numpy as jnp
import numpy as np
import torch
from config import cfg
from torch import nn

ap = argparse.ArgumentParser()
ap.add_argument("--eps", type=float)
args = ap.parse_args()


class Net(nn.Module):
    def __init__(self, eps):
        super().__init__()
        self.eps = eps
        self.lin = nn.Linear(4, 3)
        self.register_buffer("floor", torch.tensor(eps))

    def forward(self, x, eps, most):
        p = {value}
        return {guarded}


def train(model, data, eps, most):
    opt = torch.optim.Adam(model.parameters())
    for x in data:
        opt.zero_grad()
        model(x, eps, most).mean().backward()
        opt.step()


train(Net(cfg.eps), [], cfg.eps, cfg.most)
"""
VALUES = {"C107": ("self.lin(x).softmax(-1)", ("torch.log({})", "({}).log()")),
          "C111": ("(self.lin(x) - x).pow(2).sum(-1)", ("torch.sqrt({})", "({}).sqrt()"))}
GUARDED = (
    "p.clamp(min=eps)", "p.clamp(eps)", "p.clamp(eps, 1.0)", "p.clamp(min=self.eps)", "p.clamp(min=cfg['eps'])",
    "p.clamp(min=args.eps)", "p.clamp_min(eps)", "torch.clamp(p, min=eps)", "torch.clamp(input=p, min=eps)",
    "torch.clamp(p, max=1 - 1e-6, min=eps)", "p.clip(min=eps, max=1)", "p.clamp(min=torch.finfo(p.dtype).tiny)",
    "p.clamp(min=10 ** -most)", "p.clamp(min=eps or 1e-8)", "p.clamp(max=most).clamp(min=eps)", "p.clamp(1e-7, most)",
    "p.clamp(**cfg.limits)", "p.clamp(*cfg.limits)", "torch.maximum(p, self.floor)", "torch.max(p, self.floor)",
    "torch.maximum(p, torch.tensor(eps))", "jnp.maximum(p, eps)", "jnp.clip(p, min=eps)", "np.clip(p, eps, None)",
    "np.maximum(p, eps)", "p + eps", "p.add(self.eps)", "torch.where(p > eps, p, eps)", "p.masked_fill(p == 0, eps)",
    "p.masked_fill(p < eps, eps)", "p.masked_fill(p == 0, 1.0)", "nn.functional.threshold(p, eps, eps)",
)
OPEN = ("p", "p.clamp(max=most)", "p.clamp_max(most)", "p.clip(max=most)", "p.clamp(min=0)", "p.clamp(0, most)",
        "p.clamp(None, most)", "torch.clamp(p, max=most)", "torch.clamp_max(p, most)", "torch.clamp(p, 0.0, most)",
        "p.masked_fill(x > 0, 0.0)")


def said(rule: str, bounded: str) -> list[str]:
    value, forms = VALUES[rule]
    statements = []
    for form in forms:
        parsed = parse_source("train.py", PROGRAM.replace("{value}", value).replace("{guarded}", form.format(bounded)))
        assert isinstance(parsed, SourceFile)
        statements += [f.statement for f in audit_sources([parsed]).findings if f.rule == rule]
    return statements


@pytest.mark.parametrize("rule", VALUES)
@pytest.mark.parametrize("bounded", GUARDED)
def test_a_lower_limit_that_is_not_known_is_left_alone(bounded: str, rule: str) -> None:
    assert not said(rule, bounded)


@pytest.mark.parametrize("rule", VALUES)
@pytest.mark.parametrize("bounded", OPEN)
def test_an_upper_limit_guards_nothing(bounded: str, rule: str) -> None:
    assert len(said(rule, bounded)) == 2
