"""An evaluation, or loaded weights, with another numbering of the classes."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from row_programs import fit, loader, net, split  # noqa: E402
from torch.utils.data import DataLoader, TensorDataset  # noqa: E402

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402


def evaluated(model, held_out, labels):
    model.eval()
    with torch.no_grad():
        for x, _ in DataLoader(TensorDataset(held_out, labels), 50):
            model(x)


@pytest.mark.parametrize(("order", "rules"), [([2, 0, 3, 1], ["T721"]), ([0, 1, 2, 3], []), ([0, 0, 2, 3], [])])
def test_an_evaluation_with_another_numbering_of_classes(watching, order, rules):
    """Two labels that are one class are no renumbering."""
    x, y, held_out, labels = split()
    with watching(RowProbe) as w:
        model = net()
        for _ in range(3):
            fit(model, loader(x, y), epochs=2)
            evaluated(model, held_out, torch.tensor(order)[labels])
    found = [f for f in w.findings if f.rule == "T721"]
    assert [f.rule for f in found] == rules
    if found:
        assert found[0].measured["kind"] == "evaluation"
        assert found[0].measured["before"] < 0.3 < 0.8 < found[0].measured["after"]


def test_loaded_weights_with_another_numbering(watching):
    x, y, held_out, labels = split()
    old = net()
    fit(old, loader(x, y), epochs=6)
    with watching(RowProbe) as w:
        model = net()
        model.load_state_dict(old.state_dict())
        renumbered = torch.tensor([2, 0, 3, 1])
        evaluated(model, held_out, renumbered[labels])
        fit(model, loader(x, renumbered[y]), epochs=8)
        evaluated(model, held_out, renumbered[labels])
    assert [f.measured["kind"] for f in w.findings if f.rule == "T721"] == ["loaded"]


def test_an_evaluation_of_an_untrained_model_says_nothing_of_classes(watching):
    x, y, held_out, labels = split()
    with watching(RowProbe) as w:
        model = net()
        evaluated(model, held_out, labels)
        fit(model, loader(x, y), epochs=3)
        evaluated(model, held_out, labels)
    assert not [f for f in w.findings if f.rule == "T721"]
