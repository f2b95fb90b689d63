"""No probe raises an alarm on a training with nothing wrong."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")
sys.path.insert(0, str(Path(__file__).parent))

import healthy_trainings  # noqa: E402

from traindx_tools.on_torch.registry import known_probes  # noqa: E402

MINE = ("gradients", "updates", "membership", "batches", "rows", "activations", "accumulation", "losses", "state",
        "program", "captured-call", "course", "step-copy", "sharing", "optimizer-copy", "stale",
        "siblings", "padding-side", "padding-masks", "table-rows", "averages", "fields")


def probes():
    known = known_probes()
    return [known[name] for name in MINE if name in known]


@pytest.mark.slow
@pytest.mark.parametrize("training", healthy_trainings.ALL, ids=lambda t: t.__name__)
def test_a_healthy_training_is_left_alone(training, watching):
    with watching(*probes()) as seen:
        training()
    assert seen.loud == []


@pytest.mark.parametrize("training", [healthy_trainings.mlp, healthy_trainings.cnn, healthy_trainings.tied_lm],
                         ids=lambda t: t.__name__)
def test_probes_change_nothing(training, watching, monkeypatch):
    """The same losses, bit by bit, with and without."""

    def losses():
        torch.manual_seed(3)
        seen = []
        backward = torch.Tensor.backward
        monkeypatch.setattr(torch.Tensor, "backward", lambda t, *a, **k: (seen.append(t.item()), backward(t, *a, **k)))
        training(20)
        monkeypatch.undo()
        return seen

    alone = losses()
    with watching(*probes()):
        watched = losses()
    assert alone == watched
    assert len(alone) >= 20
