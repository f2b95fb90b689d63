"""What the layers take: dead, saturated, alike, growing, near overflow; healthy twins are left alone."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.activations import ActivationProbe  # noqa: E402
from traindx_tools.on_torch.rules import t503_samples_alike, t505_half_headroom  # noqa: E402
from traindx_tools.on_torch.rules.activations import Courses  # noqa: E402


def train(model, steps=10, make=lambda: torch.randn(32, 16), lr=1e-3, classes=4):
    optimizer = torch.optim.SGD(model.parameters(), lr)
    for _ in range(steps):
        x = make()
        loss = F.cross_entropy(model(x).float(), torch.randint(0, classes, (len(x),)))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def mlp(act=nn.ReLU):
    return nn.Sequential(nn.Linear(16, 64), act(), nn.Linear(64, 64), act(), nn.Linear(64, 4))


class Functional(nn.Module):
    def __init__(self, width=64):
        super().__init__()
        self.a, self.b, self.c = nn.Linear(16, width), nn.Linear(width, width), nn.Linear(width, 4)

    def forward(self, x):
        return self.c(F.relu(self.b(F.relu(self.a(x)))))


@pytest.mark.parametrize("make", [mlp, Functional])
def test_dead_relu_units(make, watching):
    model = make()
    first = model.a if isinstance(model, Functional) else model[0]
    nn.init.constant_(first.bias, -10.0)
    with watching(ActivationProbe) as w:
        train(model)
    found = w.one("T501")
    assert found.severity.value == "high"
    assert found.measured["dead"] == 64
    assert found.measured["module"] in ("a", "0")
    assert "after a ReLU" in found.statement


def test_black_borders_are_no_dead_units(watching):
    def make():
        x = torch.randn(32, 16)
        x[:, :12] = 0
        return x

    with watching(ActivationProbe) as w:
        train(mlp(), make=make)
    assert w.loud == []


class Coupled(nn.Module):
    """Layers that see half of the coordinates each, as in a flow: a mask makes the zeros."""

    def __init__(self, masks):
        super().__init__()
        self.masks = masks
        self.nets = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.SiLU(), nn.Linear(32, 16)) for _ in masks)
        self.head = nn.Linear(16, 4)

    def forward(self, x):
        for mask, net in zip(self.masks, self.nets, strict=True):
            x = x + net(x * mask) * (1 - mask)
        return self.head(x)


def test_zeros_that_a_mask_made_are_a_remark(watching):
    mask = (torch.arange(16) % 2).float()
    with watching(ActivationProbe) as w:
        train(Coupled([mask, 1 - mask, mask, 1 - mask]))
    assert w.loud == []


def test_a_clamp_is_a_rectifier(watching):
    class Clamped(Functional):
        def forward(self, x):
            return self.c(F.relu(self.b(self.a(x).clamp_min(0))))

    model = Clamped()
    nn.init.constant_(model.a.bias, -10.0)
    with watching(ActivationProbe) as w:
        train(model)
    assert w.one("T501").severity.value == "high"


def test_rare_units_are_alive(watching):
    """Each unit is on for one sample in sixty."""
    model = mlp()
    nn.init.constant_(model[0].bias, -1.2)
    with watching(ActivationProbe) as w:
        train(model, 16)
    assert "T501" not in w.rules


@pytest.mark.parametrize(("scale", "rules"), [(30.0, ["T502"]), (1.0, [])])
def test_saturated_tanh(scale, rules, watching):
    model = mlp(nn.Tanh)
    model[0].weight.data.mul_(scale)
    model[2].weight.data.mul_(scale)
    with watching(ActivationProbe) as w:
        train(model)
    assert w.rules == rules
    if rules:
        assert w.one("T502").measured["from_start"] is True


def test_an_input_that_is_lost(watching):
    class Lost(nn.Module):
        def __init__(self):
            super().__init__()
            self.a, self.b, self.c = nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)

        def forward(self, x):
            h = torch.tanh(self.a(x)) * 1e-6 + 1.0
            return self.c(torch.tanh(self.b(h)))

    with watching(ActivationProbe) as w:
        train(Lost())
    found = w.one("T503")
    assert (found.measured["kind"], found.measured["module"]) == ("layer", "a")
    assert found.where.module == "b"


def test_a_head_that_starts_at_zero_is_left_alone(watching):
    model = mlp()
    nn.init.zeros_(model[4].weight)
    nn.init.zeros_(model[4].bias)
    with watching(ActivationProbe) as w:
        train(model, lr=0.1)
    assert w.findings == []


@pytest.mark.parametrize(("gain", "kinds"), [(3.0, ["grow"]), (0.1, ["shrink"]), (1.0, [])])
def test_scale_by_depth(gain, kinds, watching):
    model = nn.Sequential(*[nn.Sequential(nn.Linear(16, 16, bias=False)) for _ in range(10)], nn.Linear(16, 4))
    for block in model[:10]:
        nn.init.orthogonal_(block[0].weight, gain)
    with watching(ActivationProbe) as w:
        train(model, lr=1e-9)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T504"] == kinds


def test_half_precision_near_its_end(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4)).half()
    nn.init.constant_(model[1].bias, 30000.0)
    with watching(ActivationProbe) as w:
        train(model, make=lambda: torch.randn(32, 16).half(), lr=1e-8)
    found = w.one("T505")
    assert found.where.module in ("1", "2")
    assert found.measured["largest"] == pytest.approx(30000, rel=0.01)


def test_float32_of_that_size_is_left_alone(watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.Linear(32, 32), nn.Linear(32, 4))
    nn.init.uniform_(model[1].bias, -30000.0, 30000.0)
    with watching(ActivationProbe) as w:
        train(model, lr=1e-12)
    assert "T505" not in w.rules


class Attention(nn.Module):
    def __init__(self, scale):
        super().__init__()
        self.q, self.k, self.drop, self.out = nn.Linear(8, 8), nn.Linear(8, 8), nn.Dropout(0.1), nn.Linear(8, 4)
        self.scale = scale

    def forward(self, x):
        w = self.drop((self.q(x) @ self.k(x).transpose(-1, -2) * self.scale).softmax(-1))
        return self.out((w @ x).mean(1))


@pytest.mark.parametrize(("scale", "kinds"), [(1e5, ["collapsed"]), (0.35, [])])
def test_attention_that_looks_at_one_key(scale, kinds, watching):
    with watching(ActivationProbe, activations_every=2) as w:
        train(Attention(scale), 20, make=lambda: torch.randn(8, 16, 8), lr=1e-6)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T506"] == kinds


@pytest.mark.parametrize(("momentum", "rules"), [(1e-5, ["T507"]), (0.1, [])])
def test_running_statistics_that_do_not_follow(momentum, rules, watching):
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Linear(32, 4))
    nn.init.constant_(model[0].bias, 10.0)
    with watching(ActivationProbe, activations_every=10) as w:
        train(model, 100, make=lambda: torch.randn(64, 16))
    assert w.rules == rules
    if rules:
        assert w.one("T507").where.module == "1"


def test_vmap_and_odd_outputs_are_survived(watching):
    model = mlp()
    params = dict(model.named_parameters())
    with watching(ActivationProbe) as w:
        for _ in range(3):
            torch.func.vmap(lambda x: torch.func.functional_call(model, params, (x,)))(torch.randn(4, 8, 16)).sum(
                ).backward()
    assert w.loud == []


def test_nothing_seen_says_nothing():
    assert list(t503_samples_alike.check(Courses())) == []
    assert list(t505_half_headroom.check(Courses())) == []


@pytest.mark.parametrize(("momentum", "rules"), [(0.01, ["T507"]), (0.1, [])])
def test_a_short_run_that_is_evaluated_with_statistics_of_nothing(momentum, rules, watching):
    """Sixteen updates at momentum 0.01 leave the running mean near 0, wherever the data is."""
    model = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=momentum), nn.ReLU(), nn.Linear(32, 4))
    nn.init.constant_(model[0].bias, 10.0)
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    with watching(ActivationProbe) as w:
        for k in range(16 if rules else 48):
            model.train()
            F.cross_entropy(model(torch.randn(64, 16)), torch.randint(0, 4, (64,))).backward()
            optimizer.step()
            optimizer.zero_grad()
            model.eval()
            if k % (1 if rules else 4) == 0:
                with torch.no_grad():
                    model(torch.randn(64, 16))
    assert w.rules == rules
    if rules:
        assert w.one("T507").measured["evaluated"] is True


def rounds(model, given=lambda x: x, epochs=8, steps=25, dropped=lambda: None):
    """Trains on inputs around 3 and evaluates each epoch on `given` of the same."""
    optimizer = torch.optim.SGD(model.parameters(), 1e-3)
    for _ in range(epochs):
        model.train()
        dropped()
        for _ in range(steps):
            F.cross_entropy(model(3 + torch.randn(64, 16)), torch.randint(0, 4, (64,))).backward()
            optimizer.step()
            optimizer.zero_grad()
        model.eval()
        with torch.no_grad():
            for _ in range(2):
                model(given(3 + torch.randn(64, 16)))


def with_norm(momentum=0.1, first=None):
    return nn.Sequential(*([first] if first else []), nn.Linear(16, 32), nn.BatchNorm1d(32, momentum=momentum),
                         nn.ReLU(), nn.Dropout(0.2), nn.Linear(32, 32), nn.BatchNorm1d(32), nn.Linear(32, 4))


def test_other_inputs_in_evaluation_are_no_fault_of_batch_norm(watching):
    torch.manual_seed(0)
    with watching(ActivationProbe) as w:
        rounds(with_norm(), lambda x: 20 + 7 * x)
    assert w.rules == ["T508"]
    found = w.one("T508")
    assert found.where.module == "1"
    assert found.measured["training_distance"] < 0.5 < 2 < found.measured["distance"]


def test_the_same_inputs_in_evaluation_are_nothing(watching):
    with watching(ActivationProbe) as w:
        rounds(with_norm())
    assert w.rules == []


def test_statistics_that_fit_no_batch_are_the_fault(watching):
    model = with_norm(1e-4)
    nn.init.constant_(model[0].bias, 10.0)
    with watching(ActivationProbe) as w:
        rounds(model)
    assert w.rules == ["T507"]
    assert w.one("T507").measured["fits_training"] is False


def test_a_norm_that_is_frozen_on_purpose_is_none(watching):
    model = with_norm()
    with watching(ActivationProbe) as w:
        rounds(model, dropped=lambda: [m.eval() for m in model if isinstance(m, nn.BatchNorm1d)])
    assert w.rules == []


def test_behind_a_dropout_the_inputs_are_not_convicted(watching):
    with watching(ActivationProbe) as w:
        rounds(with_norm(first=nn.Dropout(0.5)), lambda x: 20 + 7 * x)
    assert w.rules == ["T507"]
    assert w.one("T507").bearing.value == "sign"


class Probed(nn.Module):
    """A frozen backbone of two normalised layers and a head that is trained."""

    def __init__(self):
        super().__init__()
        self.backbone = nn.Sequential(nn.Linear(16, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 32),
                                      nn.BatchNorm1d(32), nn.ReLU())
        self.head = nn.Linear(32, 4)

    def forward(self, x):
        return self.head(self.backbone(x))


def pretrained():
    """Statistics of inputs such as this run has, as a checkpoint would bring them."""
    model = Probed()
    with torch.no_grad():
        for _ in range(60):
            model.backbone(torch.randn(64, 16))
    return model.state_dict()


def probe(watching, state, given=lambda x: x):
    with watching(ActivationProbe) as w:
        model = Probed()
        model.load_state_dict(state)
        model.backbone.requires_grad_(False)
        optimizer = torch.optim.Adam(model.head.parameters(), 1e-2)
        for _ in range(8):
            model.train()
            model.backbone.eval()
            loss = F.cross_entropy(model(given(torch.randn(64, 16))), torch.randint(0, 4, (64,)))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    return [f for f in w.findings if f.rule == "T507"]


@pytest.mark.parametrize("layer", [1, 4])
def test_loaded_statistics_of_other_inputs_are_named_at_the_first_such_layer(layer, watching):
    state = pretrained()
    state[f"backbone.{layer}.running_mean"] += 100.0
    state[f"backbone.{layer}.running_var"] *= 255.0**2
    (found,) = probe(watching, state)
    assert found.measured["kind"] == "given"
    assert found.where.module.endswith(f"backbone.{layer}")


def test_a_frozen_backbone_on_another_domain_is_left_alone(watching):
    assert not probe(watching, pretrained())
    assert not probe(watching, pretrained(), lambda x: 1.5 * x + 0.5)
    assert not probe(watching, Probed().state_dict(), lambda x: 20.0 * x), "never trained: features drawn at random"


def test_an_encoder_that_is_only_asked_is_looked_at(watching):
    state = {k.removeprefix("backbone."): v for k, v in pretrained().items() if k.startswith("backbone.")}
    state["1.running_var"] *= 255.0**2
    with watching(ActivationProbe) as w:
        encoder, head = Probed().backbone.eval(), nn.Linear(32, 4)
        encoder.load_state_dict(state)
        optimizer = torch.optim.SGD(head.parameters(), 0.1)
        for _ in range(6):
            with torch.no_grad():
                features = encoder(torch.randn(64, 16))
            F.cross_entropy(head(features), torch.randint(0, 4, (64,))).backward()
            optimizer.step()
    assert [f.where.module for f in w.findings if f.rule == "T507"] == ["1"]
