"""Gradients that are thrown away within a window, or never set back."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.accumulation import AccumulationProbe  # noqa: E402
from traindx_tools.on_torch.rules import t207_gradients_discarded, t208_gradients_carried  # noqa: E402
from traindx_tools.on_torch.rules.t207_gradients_discarded import Windows  # noqa: E402


def run(watching, windows=10, passes=4, between=None, after="none"):
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watching(AccumulationProbe) as w:
        for _ in range(windows):
            for _ in range(passes):
                x = torch.randn(8, 8)
                loss = F.cross_entropy(model(x), x.argmax(-1) % 4) / passes
                if between:
                    between(model, optimizer)
                loss.backward()
            optimizer.step()
            if after != "never":
                optimizer.zero_grad(set_to_none=after == "none")
    return w


@pytest.mark.parametrize("to_none", [True, False])
def test_zero_grad_within_the_window(to_none, watching):
    found = run(watching, between=lambda m, _: m.zero_grad(to_none)).one("T207")
    assert found.measured["passes"] == 4
    assert found.where.module == "0.weight"


def test_the_steps_are_those_before_which_gradients_were_thrown_away(watching):
    """Windows of one pass come first and a clean one is the last: the range is that of the fault."""
    model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watching(AccumulationProbe) as w:
        for step in range(1, 13):
            for i in range(4 if step > 5 else 1):
                if i and step < 12:
                    model.zero_grad()
                x = torch.randn(8, 8)
                F.cross_entropy(model(x), x.argmax(-1) % 4).backward()
            optimizer.step()
            optimizer.zero_grad()
    found = w.one("T207")
    assert (found.where.step, found.where.end_step) == (6.0, 11.0)


@pytest.mark.parametrize("after", ["none", "zero"])
@pytest.mark.parametrize("passes", [1, 4])
def test_accumulation_as_it_should_be(passes, after, watching):
    assert run(watching, passes=passes, after=after).findings == []


@pytest.mark.parametrize("passes", [1, 3])
def test_gradients_that_are_never_set_back(passes, watching):
    w = run(watching, passes=passes, after="never")
    assert w.rules == ["T208"]
    assert w.findings[0].severity.value == "critical"


def test_zero_grad_before_each_backward_pass(watching):
    assert run(watching, passes=1, between=lambda _, o: o.zero_grad(), after="never").findings == []


def test_sharpness_aware_minimisation_is_left_alone(watching):
    model = nn.Linear(8, 4)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    with watching(AccumulationProbe) as w:
        for _ in range(8):
            x = torch.randn(8, 8)
            y = x.argmax(-1) % 4
            F.cross_entropy(model(x), y).backward()
            with torch.no_grad():
                for p in model.parameters():
                    p.add_(0.01 * p.grad)
            optimizer.zero_grad()
            F.cross_entropy(model(x), y).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert w.findings == []


@pytest.mark.parametrize("rule", [t207_gradients_discarded, t208_gradients_carried])
def test_nothing_seen_says_nothing(rule):
    assert list(rule.check(Windows(0, 0, 0, 0.0, 0, 0, "w", 1, 1))) == []


def test_heads_that_take_turns_within_a_window(watching):
    """Each pass reaches another head: the trunk shows what is lost."""
    trunk, heads = nn.Linear(8, 8), nn.ModuleList([nn.Linear(8, 1) for _ in range(3)])
    parameters = [*trunk.parameters(), *heads.parameters()]
    optimizer = torch.optim.AdamW(parameters, 1e-3)
    for reset in (True, False):
        with watching(AccumulationProbe) as w:
            for _ in range(8):
                for head in heads:
                    loss = head(trunk(torch.randn(8, 8))).square().mean()
                    if reset:
                        for p in parameters:
                            p.grad = None
                    loss.backward()
                optimizer.step()
                optimizer.zero_grad()
        assert w.rules == (["T207"] if reset else [])
