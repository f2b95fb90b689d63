"""What steps do to the weights: rounding in 16 bits, weights that never move or are put back, frozen ones that move."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.updates import UpdateProbe  # noqa: E402
from traindx_tools.on_torch.rules import t304_update_rounded_away  # noqa: E402


def net(dtype=torch.float32):
    return nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 4)).to(dtype)


def train(model, optimizer, steps=30, each=None, dtype=torch.float32):
    for step in range(steps):
        x = torch.randn(32, 16, dtype=dtype)
        loss = F.cross_entropy(model(x).float(), x.argmax(-1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if each:
            each(step)


def test_bf16_updates_are_rounded_away(watching):
    model = net(torch.bfloat16)
    for p in model.parameters():
        nn.init.uniform_(p, 0.2, 0.4)
    with watching(UpdateProbe) as seen:
        train(model, torch.optim.AdamW(model.parameters(), 1e-5, weight_decay=0.0), dtype=torch.bfloat16)
    found = seen.one("T304")
    assert found.severity.value == "critical"
    assert found.measured["dtype"] == "bfloat16"
    assert found.measured["still"] > 0.9
    assert found.measured["resolution"] == pytest.approx(0.3 / 256, rel=0.3)


def test_bf16_with_a_rate_that_moves_them_is_left_alone(watching):
    model = net(torch.bfloat16)
    with watching(UpdateProbe) as seen:
        train(model, torch.optim.SGD(model.parameters(), 0.5), dtype=torch.bfloat16)
    assert "T304" not in seen.rules


def test_a_warm_up_and_a_decay_in_bf16_are_no_rounding(watching):
    model = net(torch.bfloat16)
    optimizer = torch.optim.SGD(model.parameters(), 1.0)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: s / 10 if s < 10 else max(0.0, 1 - s / 40))
    with watching(UpdateProbe, updates_every=3) as seen:
        train(model, optimizer, 40, lambda _: schedule.step(), torch.bfloat16)
    assert seen.loud == []


def test_weights_that_are_put_back_after_each_step(watching):
    model = net()
    kept = {n: p.detach().clone() for n, p in model.named_parameters()}

    def restore(_):
        model.load_state_dict(kept)

    with watching(UpdateProbe) as seen:
        train(model, torch.optim.Adam(model.parameters(), 1e-3), each=restore)
    found = seen.one("T303")
    assert found.measured["kind"] == "undone"
    assert found.measured["parameters"] == 4


def test_a_step_that_does_nothing(watching):
    class Broken(torch.optim.SGD):
        @torch.no_grad()
        def step(self, closure=None):
            return None

    model = net()
    optimizer = Broken(model.parameters(), 0.1)
    with watching(UpdateProbe) as seen:
        train(model, optimizer)
    assert seen.one("T303").measured["kind"] == "still"


def test_a_frozen_layer_that_decays(watching):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    train(model, optimizer, 3)
    for p in model[0].parameters():
        p.requires_grad_(False)

    def zero(_):
        for p in model.parameters():
            p.grad = torch.zeros_like(p) if p.grad is None else p.grad

    with watching(UpdateProbe) as seen:
        zero(0)
        for _ in range(10):
            x = torch.randn(8, 16)
            F.cross_entropy(model(x), x.argmax(-1) % 4).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=False)
    found = seen.one("T306")
    assert found.measured["module"] == "0.weight"


@pytest.mark.parametrize(("lr", "kind"), [(2.0, "large"), (1e-12, "small")])
def test_updates_of_the_wrong_size(lr, kind, watching):
    model = net().double()
    with watching(UpdateProbe) as seen:
        train(model, torch.optim.Adam(model.parameters(), lr), 20, dtype=torch.float64)
    assert seen.one("T205").measured["kind"] == kind


def test_updates_of_the_usual_size_are_recorded(watching):
    model = net()
    with watching(UpdateProbe) as seen:
        train(model, torch.optim.Adam(model.parameters(), 1e-3), 10)
    ratios = [n["update_ratio"] for _, n in seen.notes.numbers if "update_ratio" in n]
    assert len(ratios) == 10
    assert all(1e-4 < r < 0.1 for r in ratios)
    assert seen.findings == []


def test_an_embedding_of_which_few_rows_are_used_moves(watching):
    model = nn.Sequential(nn.Embedding(20000, 8), nn.Flatten(), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(UpdateProbe) as seen:
        for _ in range(20):
            ids = torch.randint(0, 50, (8, 4))
            loss = F.cross_entropy(model(ids), ids[:, 0] % 4)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert seen.loud == []


def test_nothing_measured_says_nothing():
    assert list(t304_update_rounded_away.check([])) == []


def test_trained_and_then_frozen_is_no_frozen_layer_that_moves(watching):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    with watching(UpdateProbe) as seen:
        train(model, optimizer, 20)
        for p in model[0].parameters():
            p.requires_grad_(False)
    assert seen.rules == []


def test_frozen_for_the_rest_of_the_run_and_still_in_place_is_none(watching):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9, weight_decay=0.1)
    with watching(UpdateProbe, updates_every=2) as seen:
        train(model, optimizer, 20)
        for p in model[0].parameters():
            p.requires_grad_(False)
            p.grad = None
        train(model, optimizer, 20)
    assert seen.rules == []
