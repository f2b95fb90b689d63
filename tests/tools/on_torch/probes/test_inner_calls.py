"""Probes that look at inner modules: they see each call, leave no trace in the model and compile nothing anew."""

from __future__ import annotations

import copy
import io

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402

from traindx_tools.on_torch.probe import TorchProbe  # noqa: E402
from traindx_tools.on_torch.probes.membership import MembershipProbe  # noqa: E402


class Seer(TorchProbe):
    def __init__(self, scene):
        super().__init__(scene)
        self.seen = []
        scene.inner.append(self.look)

    def look(self, module, args, kwargs, output):
        self.seen.append(type(module).__name__)


class Broken(Seer):
    def look(self, module, args, kwargs, output):
        raise RuntimeError("a fault of the instrument")


def net():
    return nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 4))


def test_every_call_is_seen_in_order(watching):
    with watching(Seer) as w:
        net()(torch.randn(2, 4))
    assert w.probes[0].seen == ["Linear", "ReLU", "Linear", "Sequential"]


def test_a_listener_that_fails_leaves_the_training_alone(watching):
    with watching(Broken) as w:
        out = net()(torch.randn(2, 4))
    assert out.shape == (2, 4)
    assert w.scene.inner == []


def test_models_are_copied_and_saved_as_ever(watching):
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(MembershipProbe):
        model(torch.randn(2, 4)).sum().backward()
        optimizer.step()
        twin = copy.deepcopy(model)
        torch.save(model, io.BytesIO())
    assert all(not m._forward_hooks and not m._forward_pre_hooks for m in twin.modules())


def test_a_compiled_model_is_compiled_once(watching):
    torch._dynamo.reset()
    torch._dynamo.utils.counters.clear()
    compiled = torch.compile(net(), backend="eager")
    optimizer = torch.optim.SGD(compiled.parameters(), 0.1)
    with watching(MembershipProbe) as w:
        for _ in range(6):
            compiled(torch.randn(2, 4)).sum().backward()
            optimizer.step()
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] == 1
    assert not torch._dynamo.utils.counters["graph_break"]
    assert w.loud == []
