"""Loaded weights that begin worse than guessing: another vocabulary, its healthy twins, a state of something else."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.loaded_start import LoadedStartProbe  # noqa: E402

VOCABULARY = 40


def model():
    return nn.Sequential(nn.Embedding(VOCABULARY, 32), nn.Linear(32, VOCABULARY))


def batch(n=200):
    x = torch.randint(0, VOCABULARY, (n,))
    return x, (x * 7 + 3) % VOCABULARY


def fit(net, steps, order=None):
    optimizer = torch.optim.Adam(net.parameters(), 3e-2)
    for _ in range(steps):
        x, y = batch()
        if order is not None:
            x, y = order[x], order[y]
        loss = F.cross_entropy(net(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    return net


class Tied(nn.Module):
    """The output layer is the embedding, under two names."""

    def __init__(self):
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 32)
        self.hidden = nn.Linear(32, 32)
        self.out = nn.Linear(32, VOCABULARY, bias=False)
        self.out.weight = self.embedding.weight

    def forward(self, x):
        return self.out(self.hidden(self.embedding(x)))


def told(watching, state, order=None, into=model, load=lambda net, s: net.load_state_dict(s)):
    with watching(LoadedStartProbe) as w:
        net = into()
        load(net, state)
        fit(net, 2, order)
    return w.findings


@pytest.fixture(scope="module")
def trained():
    torch.manual_seed(0)
    return fit(model(), 120).state_dict()


def test_a_vocabulary_in_another_order_is_seen(trained, watching):
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(1))
    (found,) = told(watching, trained, order)
    assert (found.rule, found.measured["kind"]) == ("T344", "ids")
    assert found.measured["loss"] > 4.1
    assert "vocabulary order" in found.statement


def test_the_same_vocabulary_and_fresh_weights_are_left_alone(trained, watching):
    assert not told(watching, trained)
    assert not told(watching, model().state_dict())
    assert not told(watching, trained, load=lambda net, s: None)


def test_a_part_that_was_loaded_says_nothing(trained, watching):
    order = torch.randperm(VOCABULARY)

    def part(net, state):
        net[0].load_state_dict({"weight": state["0.weight"]})

    assert not told(watching, trained, order, load=part)


def test_a_loss_of_another_form_says_nothing(trained, watching):
    with watching(LoadedStartProbe) as w:
        net = model()
        net.load_state_dict(trained)
        x, y = batch()
        F.cross_entropy(net(x), torch.full_like(y, -100)).backward()
        torch.optim.SGD(net.parameters(), 0.1).step()
    assert not w.findings


def test_a_name_that_is_missing_and_tied_to_another_one_is_loaded(watching):
    torch.manual_seed(0)
    state = {k: v for k, v in fit(Tied(), 150).state_dict().items() if k != "out.weight"}
    order = torch.randperm(VOCABULARY, generator=torch.Generator().manual_seed(1))
    found = told(watching, state, order, Tied, lambda net, s: net.load_state_dict(s, strict=False))
    assert [f.rule for f in found] == ["T344"]
    assert not told(watching, state, None, Tied, lambda net, s: net.load_state_dict(s, strict=False))
