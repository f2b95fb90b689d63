"""Targets that stand beside other rows, in a batch, in arrays and in tokens."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from row_programs import CLASSES, WIDTH, Next, Words, fit, loader, net, rows, split  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402


@pytest.mark.parametrize(("rolled", "workers"), [(1, 0), (-2, 2)])
def test_labels_that_are_off_by_rows(rolled, workers, watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y.roll(rolled), num_workers=workers), epochs=1)
    found = w.one("T714")
    assert (found.measured["kind"], found.measured["lag"]) == ("shifted", -rolled)


def test_a_loss_of_ones_own_and_labels_of_the_batch(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y.roll(1)), epochs=1,
            loss_of=lambda o, t: -(o.log_softmax(-1) * F.one_hot(t, CLASSES)).sum(-1).mean())
    assert w.one("T714").measured["kind"] == "shifted"


@pytest.mark.parametrize(("change", "kinds"), [
    (lambda y: y, []), (lambda y: (y + 1) % CLASSES, ["split"]), (lambda y: y.roll(7), ["evaluation-shuffled"])])
def test_labels_of_the_evaluation(change, kinds, watching):
    x, y = rows(1400)
    with watching(RowProbe) as w:
        fit(net(), loader(x[:800], y[:800]), loader(x[800:], change(y[800:]), False), epochs=1)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T714"] == kinds
    assert len([told for told in w.loud if not told.startswith("T721")]) == len(kinds)


def test_labels_of_token_rows(watching):
    y = torch.randint(0, 3, (900,))
    tokens = torch.where(torch.rand(900, 14) < 0.5, torch.randint(0, 6, (900, 14)) + 6 * y[:, None] + 2,
                         torch.randint(0, 50, (900, 14)))
    with watching(RowProbe) as w:
        fit(Words(), loader(tokens, y.roll(1)), epochs=1)
    assert w.one("T714").measured["kind"] == "shifted"


def test_labels_that_are_off_by_other_numbers_of_rows_behind_each_dropped_row(watching):
    x, y, *_ = split()
    kept = torch.ones(800, dtype=torch.bool)
    kept[[200, 450, 451]] = False
    with watching(RowProbe) as w:
        fit(net(), loader(x[kept], y[:797]), epochs=2)
    found = w.one("T714")
    assert (found.measured["kind"], found.measured["pieces"]) == ("shifted", 3)
    assert "when moved by -3" in found.statement


def by_slices(x, y, held=None, labels=None, epochs=2):
    """A program without a DataLoader: rows of arrays in its variables."""
    model = net()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    for _ in range(epochs):
        model.train()
        order = torch.randperm(len(x))
        for k in range(0, len(x), 40):
            rows_now = order[k:k + 40]
            loss = F.cross_entropy(model(x[rows_now]), y[rows_now])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        model.eval()
        with torch.no_grad():
            for k in range(0, len(held) if held is not None else 0, 40):
                F.cross_entropy(model(held[k:k + 40]), labels[k:k + 40])


def test_rows_of_arrays_in_the_programs_variables(watching):
    x, y, held, labels = split()
    with watching(RowProbe) as w:
        by_slices(x, y.roll(1), held, labels)
    found = w.one("T714")
    assert (found.measured["kind"], found.measured["lag"]) == ("shifted", -1)
    assert "of the rows of x" in found.statement


def test_labels_of_the_evaluation_beside_its_rows(watching):
    x, y = rows(1400)
    with watching(RowProbe) as w:
        by_slices(x[:800], y[:800], x[800:], (y[800:] + 1) % CLASSES)
    assert w.one("T714").measured["kind"] == "split"


def test_evaluated_inputs_of_another_meaning_and_the_same_statistics(watching):
    x = torch.randint(0, 2, (1600, WIDTH)).float()
    y = (x[:, :4].sum(1) > 1.5).long()
    with watching(RowProbe) as w:
        by_slices(x[:1000], y[:1000], x[1000:].roll(8, 1), y[1000:], epochs=1)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T714"] == ["evaluation-otherwise"]


def test_healthy_slices_are_left_alone(watching):
    x, y, held, labels = split()
    with watching(RowProbe) as w:
        by_slices(x, y, held, labels)
    assert w.findings == []


def test_evaluated_rows_that_are_changed_copies(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(x[:100] + 0.01 * torch.randn(100, WIDTH), y[:100], False), epochs=2)
    found = w.one("T714")
    assert (found.measured["kind"], found.measured["as"]) == ("changed-copies", "D114")


@pytest.mark.parametrize(("shift", "kinds"), [(0, ["not-shifted"]), (1, []), (2, ["shifted-twice"])])
def test_where_the_targets_of_tokens_stand(shift, kinds, watching):
    def loss(logits, tokens):
        end = tokens.shape[1] - shift
        return F.cross_entropy(logits[:, :end].reshape(-1, 30), tokens[:, shift:].reshape(-1))

    tokens = torch.randint(0, 30, (256, 20))
    with watching(RowProbe) as w:
        fit(Next(), loader(tokens, tokens), loss_of=loss, epochs=1)
    found = [f for f in w.findings if f.rule == "T717"]
    assert [f.measured["kind"] for f in found] == kinds
    assert len(w.loud) == (kinds == ["shifted-twice"])


def test_a_target_that_is_a_column_of_the_input(watching):
    x, _ = rows(400)
    model = nn.Linear(WIDTH, 1)
    with watching(RowProbe) as w:
        fit(model, loader(x, 2 * x[:, 5:6] + 1), loss_of=F.mse_loss, epochs=2)
    assert w.one("T717").measured["column"] == 5


def test_a_regression_on_several_columns_and_an_autoencoder_are_left_alone(watching):
    x, _ = rows(400)
    with watching(RowProbe) as w:
        fit(nn.Linear(WIDTH, 1), loader(x, x[:, 5:6] + 0.3 * x[:, :1]), loss_of=F.mse_loss, epochs=2)
        fit(nn.Linear(WIDTH, WIDTH), loader(x, x), loss_of=F.mse_loss, epochs=2)
    assert w.findings == []
