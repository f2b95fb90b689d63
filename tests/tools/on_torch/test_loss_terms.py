"""The terms of a loss: taken apart, named as the program names them, dead or dominating ones reported."""

from __future__ import annotations

import math
import sys

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.loss_terms import LossTrace  # noqa: E402
from traindx_tools.on_torch.loss_terms.names import name_at  # noqa: E402
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes.loss_terms import LossPullProbe, LossTermsProbe  # noqa: E402
from traindx_tools.on_torch.rules import t401_term_dominates  # noqa: E402
from traindx_tools.on_torch.speed import compilations  # noqa: E402

functional = torch.nn.functional


@pytest.fixture(autouse=True)
def nothing_compiled(monkeypatch):
    """Other tests of this process may have compiled something; these programs have not."""
    monkeypatch.setattr(compilations, "_asked", [])
    if "torch._dynamo.utils" in sys.modules:
        torch._dynamo.utils.counters.clear()


def terms_of(make):
    with LossTrace() as trace:
        loss = make()
    return {t.name: (t.factor, float(t.tensor.detach())) for t in trace.terms(loss)}, float(loss.detach())


def divergence(mu, logvar):
    return -0.5 * (1 + logvar - mu.pow(2) - logvar.exp()).sum(1).mean()


def evidence_bound():
    x, mu = torch.randn(4, 3), torch.randn(4, 2, requires_grad=True)
    logvar = torch.zeros(4, 2, requires_grad=True)
    reconstruction = functional.mse_loss(mu.sum(1, keepdim=True) + x, x)
    kl = divergence(mu, logvar)
    beta = 0.25
    loss = reconstruction + beta * kl
    return loss  # noqa: RET504 - a variable as programs have it


def test_a_weighted_sum_is_taken_apart_with_its_factors_and_names():
    terms, loss = terms_of(evidence_bound)
    assert set(terms) == {"reconstruction", "divergence"}
    assert terms["divergence"][0] == 0.25
    assert sum(f * v for f, v in terms.values()) == pytest.approx(loss, rel=1e-6)


def test_running_sums_stacks_differences_and_accumulation_are_followed():
    w = torch.ones(3, requires_grad=True)

    def running():
        total = torch.zeros(())
        total = total + w.sum()
        total += 2 * w.pow(2).mean()
        return total / 4

    def stacked():
        first = w.sum()
        second = w.pow(2).mean()
        return torch.stack([first, second]).mean() - w.prod()

    terms, loss = terms_of(running)
    assert {0.25, 0.5} <= {f for f, _ in terms.values()}
    assert sum(f * v for f, v in terms.values()) == pytest.approx(loss)
    terms, loss = terms_of(stacked)
    assert sorted(f for f, _ in terms.values()) == [-1.0, 0.5, 0.5]
    assert sum(f * v for f, v in terms.values()) == pytest.approx(loss)


def test_one_term_is_one_term_and_a_stranger_has_none():
    terms, _ = terms_of(lambda: functional.cross_entropy(torch.randn(4, 3, requires_grad=True), torch.arange(4) % 3))
    assert len(terms) == 1
    with LossTrace() as trace:
        pass
    assert trace.terms(torch.ones(())) == ()


def test_names_come_from_the_line():
    lines = open(__file__, encoding="utf-8").read().splitlines()  # noqa: SIM115
    at = next(i for i, text in enumerate(lines, 1) if text.strip().startswith("kl = divergence"))
    assert name_at(__file__, at) == "kl"
    assert name_at("/does/not/exist.py", 1) is None


class Notes:
    rank = 0

    def __init__(self):
        self.findings, self.numbers = [], []

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        self.findings.append(finding)


def train(make, kind=LossTermsProbe, steps=30, lr=1e-3):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3))
    optimizer = torch.optim.SGD(model.parameters(), lr)
    here = Scene(Notes(), models=[model], optimizers=[optimizer])
    probe, losses = kind(here), []
    for step in range(steps):
        loss = make(model, torch.randn(16, 6), step)
        optimizer.zero_grad()
        probe.before_backward(loss)
        loss.backward()
        optimizer.step()
        here.step += 1
        losses.append(loss.item())
        probe.after_step(optimizer)
    found = list(probe.finish())
    return found, here.recorder.numbers, losses


def balanced(model, x, step):
    out = model(x)
    fit = (out - x[:, :3]).square().mean()
    smooth = out.square().mean()
    return fit + 0.5 * smooth


def test_balanced_terms_are_recorded_and_left_alone():
    found, numbers, _ = train(balanced, LossPullProbe)
    assert found == []
    assert set(numbers[0][1]) == {"loss/fit", "loss/smooth"}
    assert [s for s, _ in numbers] == [2, 5, 10, 20]


def test_results_are_bitwise_those_without_the_probe():
    class Silent(LossTermsProbe):
        def before_backward(self, loss):
            pass

        def after_step(self, optimizer):
            pass

    assert train(balanced, LossPullProbe)[2] == train(balanced, Silent)[2]


@pytest.mark.slow
def test_backward_is_a_torch_call_itself_and_the_trace_survives_it(tmp_path):
    import subprocess

    script = tmp_path / "train.py"
    script.write_text("""
import torch
model = torch.nn.Linear(6, 3)
optimizer = torch.optim.SGD(model.parameters(), 1e-3)
for step in range(12):
    x = torch.randn(16, 6)
    out = model(x)
    fit = (out - x[:, :3]).square().mean()
    smooth = out.square().mean()
    loss = fit + 0.5 * smooth
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
""")
    traindx = [sys.executable, "-m", "traindx"]
    records = str(tmp_path / "records")
    command = [*traindx, "run", "--probe", "loss-terms", "--out", records, "--", sys.executable, str(script)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "is off" not in done.stderr
    written = (tmp_path / "records" / "rank00000.jsonl").read_text()
    assert "loss/fit" in written


def test_a_sum_beside_means_dominates():
    def loss(model, x, step):
        out = model(x)
        fit = (out - x[:, :3]).square().mean()
        penalty = (out + 30).square().sum()
        return fit + 10 * penalty

    (finding,) = train(loss, lr=1e-8)[0]
    assert finding.rule == "T401"
    assert finding.measured["term"] == "penalty"
    assert finding.where.file == __file__


def test_a_policy_objective_near_zero_is_not_dominated_by_the_value_loss():
    def loss(model, x, step):
        out = model(x)
        policy = (out[:, 0] * torch.randn(16)).mean() * 1e-3
        value = (out + 30).square().mean()
        return policy + 0.5 * value

    assert train(loss, lr=1e-8, steps=60)[0] == []


@pytest.mark.parametrize("value", [math.inf, -math.inf, math.nan])
def test_a_term_that_is_not_finite_dominates_nothing(value):
    looks = [(step, {"fit": 1e-3, "penalty": value}) for step in range(3)]
    places = {"penalty": ("train.py", 7)}
    assert list(t401_term_dominates.check(looks, [{}] * 3, places, "test", 0)) == []
    finite = [(step, {"fit": 1e-3, "penalty": 5.0}) for step in range(3)]
    (finding,) = t401_term_dominates.check(finite, [{"penalty": 1.0, "fit": 1.0}] * 3, places, "test", 0)
    assert finding.measured["ratio"] == 5000


def test_a_regulariser_with_a_small_weight_is_a_remark():
    def loss(model, x, step):
        out = model(x)
        fit = (out - x[:, :3] - 5).square().mean()
        penalty = out.square().mean()
        return fit + 1e-4 * penalty

    assert [(f.rule, f.severity.value) for f in train(loss)[0]] == [("T401", "info")]


def test_dead_terms_zero_or_without_a_graph():
    def loss(model, x, step):
        out = model(x)
        fit = (out - x[:, :3]).square().mean()
        masked = (out.square() * torch.zeros_like(out)).mean()
        with torch.no_grad():
            auxiliary = out.abs().mean()
        return fit + masked + auxiliary

    found = {f.measured["term"]: f for f in train(loss)[0] if f.rule == "T402"}
    assert {k: f.measured["kind"] for k, f in found.items()} == {"masked": "masked", "auxiliary": "detached"}
    assert found["masked"].severity.value == "low"  # an empty mask may be meant


def dead(term):
    """What is said of `term`, which makes one from the model's output."""
    def loss(model, x, step):
        out = model(x)
        fit = (out - x[:, :3]).square().mean()
        term_of_it = term(out)
        return fit + term_of_it

    return [(f.measured["kind"], f.bearing.value) for f in train(loss, steps=60)[0] if f.rule == "T402"]


@pytest.mark.parametrize("term", [
    lambda out: (out - out).square().mean(), lambda out: functional.relu(out - 1e6).mean(),
    lambda out: out.clamp(max=-1e6).mean() + 1e6,
], ids=["a difference with itself", "a hinge out of reach", "a clamp at its bound"])
def test_a_term_with_a_gradient_path_that_is_zero_is_dead(term):
    assert dead(term) == [("zero", "cause")]


def test_a_term_of_which_nothing_is_picked_is_a_remark():
    assert dead(lambda out: out[out > 1e6].sum()) == [("masked", "companion")]


@pytest.mark.parametrize("term", [
    lambda out: torch.zeros(()), lambda out: out.new_zeros(()), lambda out: torch.tensor(0.0),
    lambda out: 0.0 * out.square().mean(), lambda out: (0.0 * out.square()).mean(),
    lambda out: out.square().mean() * torch.tensor(0.0), lambda out: (torch.zeros(1) * out.square()).sum(),
    lambda out: out.mean() - out.mean().detach(), lambda out: torch.full((), 0.5),
], ids=["zeros", "new_zeros", "tensor", "weight 0", "weight 0 inside", "weight tensor", "weight of one value",
        "straight through", "a constant"])
def test_what_is_switched_off_constant_or_alive_is_no_dead_term(term):
    assert dead(term) == []


def test_the_neutral_element_of_a_sum_is_no_term():
    def loss(model, x, step):
        total = torch.zeros(())
        total = total + (model(x) - x[:, :3]).square().mean()
        return total + model(x).square().mean()

    found, numbers, _ = train(loss)
    assert found == []
    assert numbers
    assert all(value != 0 for _, values in numbers for value in values.values())


def test_a_weight_that_is_warmed_up_is_no_dead_term():
    def loss(model, x, step):
        out = model(x)
        fit = (out - x[:, :3]).square().mean()
        kl = out.square().mean()
        return fit + min(1.0, step / 1000) * kl

    assert train(loss)[0] == []


def test_terms_that_oppose_each_other_and_terms_that_pull_unequally():
    def opposed(model, x, step):
        out = model(x)
        up = (out - 5).square().mean()
        down = (out + 5).square().mean()
        return up + down

    def unequal(model, x, step):
        out = model(x)
        strong = (out - 5).square().mean()
        weak = 1e-4 * (out - 4).square().mean()
        return strong + weak

    assert {f.rule for f in train(opposed, LossPullProbe)[0]} == {"T403"}
    assert "T404" in {f.rule for f in train(unequal, LossPullProbe)[0]}


def test_a_program_that_compiles_is_left_alone():
    import warnings

    class Asks(LossTermsProbe):
        def __init__(self, scene):
            super().__init__(scene)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                torch.compile(lambda x: x, backend="eager")

    found, numbers, _ = train(balanced, Asks)
    assert found == []
    assert numbers == []
