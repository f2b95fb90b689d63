"""Whom parameters belong to, what reaches them, and the mode that their modules are in."""

from __future__ import annotations

import copy

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.membership import MembershipProbe  # noqa: E402
from traindx_tools.on_torch.rules import t301_in_no_optimizer  # noqa: E402
from traindx_tools.on_torch.rules.membership import Membership  # noqa: E402


class Net(nn.Module):
    def __init__(self, cut=False, dropout=0.0):
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16))
        self.norm, self.drop = nn.BatchNorm1d(16), nn.Dropout(dropout)
        self.head, self.spare = nn.Linear(16, 4), nn.Linear(16, 4)
        self.cut = cut

    def forward(self, x):
        h = self.encoder(x)
        return self.head(self.drop(self.norm(h.detach() if self.cut else h)))


def step(model, optimizer):
    x = torch.randn(16, 8)
    loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def run(watching, model, optimizer, steps=10):
    with watching(MembershipProbe) as seen:
        for _ in range(steps):
            step(model, optimizer)
    return seen


def sgd(parameters):
    return torch.optim.SGD(parameters, 0.1)


def test_a_head_that_no_optimizer_holds(watching):
    model = Net()
    seen = run(watching, model, sgd([*model.encoder.parameters(), *model.norm.parameters()]))
    found = seen.one("T301")
    assert found.measured["kind"] == "left-out"
    assert found.where.module == "head"
    assert found.severity.value == "critical"


def test_a_head_that_was_replaced_after_the_optimizer_was_built(watching):
    model = Net()
    optimizer = sgd(model.parameters())
    model.head = nn.Linear(16, 4)
    assert run(watching, model, optimizer).one("T301").measured["module"] == "head"


def test_a_backbone_that_is_used_as_it_is_is_no_alarm(watching):
    model = Net()
    seen = run(watching, model, sgd(model.head.parameters()))
    assert seen.loud == []
    assert seen.one("T301").measured["kind"] == "backbone"


def test_layers_in_a_plain_list(watching):
    class Listed(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers, self.head = [nn.Linear(8, 8) for _ in range(3)], nn.Linear(8, 4)

        def forward(self, x):
            for layer in self.layers:
                x = torch.tanh(layer(x))
            return self.head(x)

    model = Listed()
    found = run(watching, model, sgd(model.parameters())).one("T301")
    assert found.measured["kind"] == "unregistered"
    assert found.measured["parameters"] == 6


def test_an_optimizer_that_is_never_stepped(watching):
    a, b = nn.Linear(8, 16), nn.Linear(16, 4)
    first, second = sgd(a.parameters()), sgd(b.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(6):
            x = torch.randn(8, 8)
            F.cross_entropy(b(a(x)), x.argmax(-1) % 4).backward()
            first.step()
            first.zero_grad()
            second.zero_grad()
    found = seen.one("T301")
    assert found.measured["kind"] == "never-stepped"
    assert "SGD" in found.statement


def test_an_optimizer_over_another_instance(watching):
    model = Net()
    other = copy.deepcopy(model)
    found = run(watching, model, sgd(other.parameters())).one("T307")
    assert found.measured["kind"] == "another-instance"


def test_weights_changed_by_hand_are_somebodys(watching):
    model = Net()
    optimizer = sgd(model.encoder.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(6):
            step(model, optimizer)
            with torch.no_grad():
                for p in [*model.norm.parameters(), *model.head.parameters()]:
                    p -= 0.1 * p.grad
                    p.grad = None
    assert seen.loud == []


def test_a_graph_that_is_cut(watching):
    model = Net(cut=True)
    seen = run(watching, model, sgd(model.parameters()))
    cut = [f for f in seen.findings if f.rule == "T302" and f.measured["kind"] == "cut"]
    assert [f.where.module for f in cut] == ["encoder.0"]
    assert cut[0].severity.value == "high"


def test_a_layer_that_is_never_called_is_a_remark(watching):
    model = Net()
    seen = run(watching, model, sgd(model.parameters()))
    assert seen.one("T302").measured == {"kind": "not-called", "module": "spare", "parameters": 2, "values": 68}
    assert seen.loud == []


def test_tied_weights_that_come_apart(watching):
    class Tied(nn.Module):
        def __init__(self):
            super().__init__()
            self.embed, self.head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
            self.head.weight = self.embed.weight

        def forward(self, x):
            return self.head(self.embed(x))

    model = Tied()
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for k in range(6):
            ids = torch.randint(0, 20, (8,))
            F.cross_entropy(model(ids), ids).backward()
            optimizer.step()
            if k == 2:
                model.head.weight = nn.Parameter(model.head.weight.detach().clone())
    found = seen.one("T305")
    assert found.measured["kind"] == "came-apart"


def test_an_output_layer_that_was_copied_from_the_embedding(watching):
    embed, head = nn.Embedding(20, 8), nn.Linear(8, 20, bias=False)
    model = nn.Sequential(embed, head)
    head.weight.data.copy_(embed.weight.data)
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(4):
            ids = torch.randint(0, 20, (8,))
            F.cross_entropy(model(ids), ids).backward()
            optimizer.step()
    assert seen.one("T305").measured["kind"] == "copied"


def test_a_teacher_that_was_trained_before_is_not_trained_in_eval_mode(watching):
    teacher, student = Net(dropout=0.2), Net(dropout=0.2)
    with watching(MembershipProbe) as seen:
        optimizer = sgd(teacher.parameters())
        for _ in range(12):
            step(teacher, optimizer)
        teacher.eval().requires_grad_(False)
        optimizer = sgd(student.parameters())
        for _ in range(20):
            x = torch.randn(8, 8)
            optimizer.zero_grad()
            (student(x) - teacher(x)).square().mean().backward()
            optimizer.step()
    assert "T308" not in seen.rules


def test_eval_mode_that_is_never_undone(watching):
    model = Net(dropout=0.2)
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for k in range(20):
            step(model, optimizer)
            if k == 7:
                model.eval()
                with torch.no_grad():
                    model(torch.randn(8, 8))
    found = seen.one("T308")
    assert found.measured["kind"] == "never-undone"
    assert found.where.step == 8
    assert "T309" not in seen.rules


def test_batchnorm_in_eval_mode_with_statistics_nobody_measured(watching):
    model = Net().eval()
    found = run(watching, model, sgd(model.parameters())).one("T308")
    assert found.measured["kind"] == "statistics"
    assert found.where.module == "norm"


def test_frozen_batchnorm_is_left_alone(watching):
    model = Net(dropout=0.1)
    for _ in range(3):
        model(torch.randn(16, 8))
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(10):
            model.train()
            model.norm.eval()
            step(model, optimizer)
    assert seen.loud == []


@pytest.mark.parametrize(("in_eval", "found"), [(False, ["T309"]), (True, [])])
def test_evaluation_in_train_mode(in_eval, found, watching):
    model = Net(dropout=0.2)
    optimizer = sgd([p for n, p in model.named_parameters() if "spare" not in n])
    model.spare.requires_grad_(False)
    with watching(MembershipProbe) as seen:
        for _ in range(3):
            model.train()
            for _ in range(5):
                step(model, optimizer)
            model.train(not in_eval)
            with torch.no_grad():
                for _ in range(4):
                    model(torch.randn(8, 8))
    assert seen.rules == found


def test_a_model_without_parameters_in_use_says_nothing():
    assert list(t301_in_no_optimizer.check(Membership((), 10, 10))) == []


def test_an_optimizer_that_holds_nothing(watching):
    model = Net()
    optimizer = torch.optim.SGD([{"params": []}], 0.1)
    found = run(watching, model, optimizer).one("T307")
    assert found.measured["kind"] == "empty"


@pytest.mark.parametrize(("backward", "steps", "told"), [
    (lambda loss, model: None, 12, True),
    (lambda loss, model: None, 6, False),  # too few to say
    (lambda loss, model: loss.backward(), 12, False),
    (lambda loss, model: [setattr(p, "grad", torch.ones_like(p)) for p in model.parameters()], 12, False),
])
def test_steps_without_any_backward_pass(watching, backward, steps, told):
    model = Net()
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(steps):
            x = torch.randn(16, 8)
            loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
            optimizer.zero_grad()
            backward(loss, model)
            optimizer.step()
    found = [f for f in seen.findings if f.rule == "T310"]
    assert len(found) == told
    if told:
        assert found[0].measured["steps"] == steps


def test_what_is_thawed_after_the_training_had_no_reason_to_get_a_gradient(watching):
    model = Net()
    for p in model.encoder.parameters():
        p.requires_grad_(False)
    optimizer = sgd(model.parameters())
    with watching(MembershipProbe) as seen:
        for _ in range(6):
            step(model, optimizer)
        for p in model.encoder.parameters():
            p.requires_grad_(True)
    assert not any("encoder" in str(f.where.module) for f in seen.findings)


class Wide(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64))
        self.head = nn.Linear(64, 4)

    def forward(self, x):
        return self.head(self.body(x))


def test_a_body_that_is_frozen_as_it_was_drawn(watching):
    model = Wide()
    model.body.requires_grad_(False)
    found = run(watching, model, torch.optim.Adam(model.parameters()), 25).one("T312")
    assert found.severity.value == "low"
    assert found.measured["values"] == 8 * 64 + 64 * 64
    assert "neither trained nor loaded" in found.statement


@pytest.mark.parametrize("how", ["loaded", "small part", "all trains", "few steps", "unfrozen", "own values"])
def test_frozen_parts_that_are_none_of_a_fault(watching, how):
    model, steps = Wide(), 25
    if how == "loaded":
        trained = Wide()
        run_alone(trained, torch.optim.SGD(trained.parameters(), 0.5), 60)
        model.load_state_dict(trained.state_dict())
    if how == "own values":
        with torch.no_grad():
            for p in model.body.parameters():
                p.copy_(torch.sign(p))
    if how == "small part":
        model.body[0].requires_grad_(False)
    elif how != "all trains":
        model.body.requires_grad_(False)
    with watching(MembershipProbe) as seen:
        optimizer = torch.optim.Adam(model.parameters())
        for k in range(4 if how == "few steps" else steps):
            if how == "unfrozen" and k == 3:
                model.body.requires_grad_(True)
            step(model, optimizer)
    assert "T312" not in [f.rule for f in seen.findings]


def run_alone(model, optimizer, steps):
    for _ in range(steps):
        step(model, optimizer)


def test_values_that_are_not_finite_are_no_draw(watching):
    model = Wide()
    model.body.requires_grad_(False)
    with torch.no_grad():
        model.body[2].weight[0, 0] = float("inf")
    seen = run(watching, model, torch.optim.Adam(model.head.parameters()), 25)
    assert "T312" not in [f.rule for f in seen.findings]


def test_models_that_follow_each_other_are_not_judged_by_few_looks(watching):
    """Slots of a queue, folds, members of an ensemble: each is trained for a few steps, between two looks."""
    with watching(MembershipProbe) as seen:
        for _ in range(40):
            model = nn.Sequential(nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 4))
            optimizer = sgd(model.parameters())
            for _ in range(10):
                step(model, optimizer)
            optimizer.zero_grad()
    assert [f.rule for f in seen.findings if f.rule in ("T301", "T302")] == []
