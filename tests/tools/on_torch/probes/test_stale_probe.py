"""Copies from before the training that are evaluated in the place of the trained model, and those that are meant."""

from __future__ import annotations

import copy
import io

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.stale import StaleProbe


def net():
    return nn.Sequential(nn.Linear(6, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 3))


def batch():
    x = torch.randn(12, 6)
    return x, x.argmax(1) % 3


def step(model, optimizer, extra=lambda x: 0.0):
    model.train()
    x, y = batch()
    loss = F.cross_entropy(model(x), y) + extra(x)
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()


def evaluate(model):
    model.eval()
    with torch.no_grad():
        return float((model(batch()[0]).argmax(1) == batch()[1]).float().mean())


def training(evaluated, model=None, epochs=4, each=lambda model: None, extra=lambda x: 0.0, **options):
    """`evaluated`: what each epoch ends with; `each`: what every step ends with."""
    model = model or net()
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01, **options)
    for epoch in range(epochs):
        for _ in range(6):
            step(model, optimizer, extra)
            each(model)
        evaluated(epoch)


# ---- faulty


def deep_copy():
    model = net()
    for_validation = copy.deepcopy(model)
    training(lambda _: evaluate(for_validation), model)


def average_never_updated():
    model = net()
    average = torch.optim.swa_utils.AveragedModel(model)
    training(lambda _: evaluate(average), model)


def frozen_script():
    """Exported before the training: the weights are constants of its graph, and no parameters."""
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    file = io.BytesIO()
    torch.jit.save(torch.jit.trace(model, torch.randn(2, 6)), file)
    file.seek(0)
    served = torch.jit.freeze(torch.jit.load(file).eval())

    def ask(_):
        with torch.no_grad():
            served(batch()[0])

    training(ask, model)


def other_tensors():
    model = net()
    first = {name: p.detach().clone() for name, p in model.named_parameters()}

    def ask(_):
        model.eval()
        with torch.no_grad():
            torch.func.functional_call(model, first, (batch()[0],))

    training(ask, model)


def without_no_grad():
    model = net()
    old = copy.deepcopy(model)
    training(lambda _: old(batch()[0]), model)


def loaded_again():
    """Another object that gets the initial state each time."""
    model = net()
    first = copy.deepcopy(model.state_dict())
    other = net()

    def ask(_):
        other.load_state_dict(first)
        evaluate(other)

    training(ask, model)


FAULTY = [deep_copy, average_never_updated, frozen_script, other_tensors, without_no_grad, loaded_again]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("program", FAULTY, ids=lambda f: f.__name__)
def test_an_old_copy_is_named_with_its_distance(watching, program):
    torch.manual_seed(0)
    with watching(StaleProbe) as seen:
        program()
    (found,) = seen.findings
    assert (found.rule, found.severity.value, found.bearing.value) == ("T343", "high", "cause")
    assert found.measured["moved"] > 0.01
    assert found.measured["times"] == 4
    assert found.measured["kind"] == ("replaced" if program is other_tensors else "copy")
    assert found.where.file == __file__
    assert "T343" not in found.statement
    assert "nothing else is evaluated" in found.statement


def test_once_at_the_end_is_a_sign(watching):
    torch.manual_seed(0)
    with watching(StaleProbe) as seen:
        model = net()
        old = copy.deepcopy(model)
        training(lambda epoch: evaluate(old) if epoch == 3 else None, model)
    (found,) = seen.findings
    assert (found.severity.value, found.bearing.value) == ("medium", "sign")


# ---- healthy


def the_model_itself():
    model = net()
    training(lambda _: evaluate(model), model)


def average_that_follows():
    model = net()
    average = torch.optim.swa_utils.AveragedModel(model)
    training(lambda _: evaluate(average), model, each=average.update_parameters)


def teacher_beside_each_step():
    model = net()
    teacher = copy.deepcopy(model).eval()

    def distance(x):
        with torch.no_grad():
            told = teacher(x)
        return F.mse_loss(model(x), told)

    training(lambda _: None, model, extra=distance)


def baseline_beside_it():
    model = net()
    untrained = copy.deepcopy(model)
    training(lambda _: (evaluate(untrained), evaluate(model)), model)


def before_the_first_step():
    model = net()
    evaluate(copy.deepcopy(model))
    training(lambda _: None, model)


def a_new_copy_each_time():
    model = net()
    training(lambda _: evaluate(copy.deepcopy(model)), model)


def traced_with_shared_weights():
    model = net().eval()
    served = torch.jit.trace(model, torch.randn(2, 6))
    training(lambda _: served(batch()[0]), model)


def frozen_with_shared_weights():
    """The constants of this graph are the model's own tensors, which the optimizer changes in place."""
    model = nn.Sequential(nn.Linear(6, 16), nn.ReLU(), nn.Linear(16, 3)).eval()
    served = torch.jit.freeze(torch.jit.trace(model, torch.randn(2, 6)))
    training(lambda _: served(batch()[0]), model)


def frozen_features():
    body = nn.Linear(6, 8).requires_grad_(False)
    head = nn.Linear(8, 3)
    both = nn.Sequential(body, head)
    other = copy.deepcopy(body)
    training(lambda _: (other(batch()[0]), evaluate(both)), both)


def evaluated_in_training_mode():
    model = net()
    old = copy.deepcopy(model)
    training(lambda _: (evaluate(old), model.train(), model(batch()[0])), model)


def rewound():
    """The first weights are put back, as for lottery tickets; the copy is only read."""
    model = net()
    first = copy.deepcopy(model)
    training(lambda _: (evaluate(model), model.load_state_dict(first.state_dict())), model)


HEALTHY = [the_model_itself, average_that_follows, teacher_beside_each_step, baseline_beside_it, before_the_first_step,
           a_new_copy_each_time, traced_with_shared_weights, frozen_with_shared_weights,
           frozen_features, evaluated_in_training_mode, rewound]


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
@pytest.mark.parametrize("program", HEALTHY, ids=lambda f: f.__name__)
def test_copies_that_are_meant_are_silent(watching, program):
    torch.manual_seed(0)
    with watching(StaleProbe) as seen:
        program()
    assert seen.findings == []


def test_nothing_of_the_program_changes(watching):
    def weights():
        torch.manual_seed(0)
        model = net()
        old = copy.deepcopy(model)
        training(lambda _: evaluate(old), model)
        return [*model.state_dict().values(), torch.rand(3)]

    alone = weights()
    with watching(StaleProbe):
        observed = weights()
    assert all(torch.equal(a, b) for a, b in zip(alone, observed, strict=True))


@pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::torch.jit.TracerWarning")
def test_nothing_of_ours_is_in_a_trace(watching):
    def graph():
        torch.manual_seed(0)
        return [n.kind() for n in torch.jit.trace(net().eval(), torch.randn(2, 6)).graph.nodes()]

    alone = graph()
    with watching(StaleProbe):
        assert graph() == alone


def test_odd_tensors_are_passed_over(watching):
    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(6, 3)
            self.register_buffer("sparse", torch.eye(3).to_sparse())
            self.register_buffer("empty", torch.zeros(0))
            self.register_buffer("nothing", None)
            self.meta = nn.Parameter(torch.zeros(2, device="meta"), requires_grad=False)

        def forward(self, x):
            return self.layer(x)

    torch.manual_seed(0)
    with watching(StaleProbe) as seen:
        model = Odd()
        training(lambda _: evaluate(model), model)
    assert seen.findings == []
