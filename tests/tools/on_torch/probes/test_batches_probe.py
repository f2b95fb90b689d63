"""What goes into the model: a faulty batch, its healthy twin, a broken input."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset, TensorDataset, get_worker_info  # noqa: E402

from traindx_tools.on_torch.probes.batches import BatchProbe  # noqa: E402
from traindx_tools.on_torch.rules import t701_index_beyond_table, t706_label_order  # noqa: E402


class Tokens(nn.Module):
    def __init__(self, rows=50, positions=16, classes=4):
        super().__init__()
        self.words, self.places, self.head = nn.Embedding(rows, 8), nn.Embedding(positions, 8), nn.Linear(8, classes)

    def forward(self, input_ids, attention_mask=None):
        x = self.words(input_ids) + self.places(torch.arange(input_ids.shape[1]))
        if attention_mask is not None:
            x = x * attention_mask[..., None]
        return self.head(x.mean(1))


def train(model, batches, loss_of=F.cross_entropy, steps=None):
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for x, y in batches:
        loss = loss_of(model(**x) if isinstance(x, dict) else model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def pictures(n=64, scale=1.0):
    return torch.rand(n, 1, 8, 8) * scale, torch.randint(0, 4, (n,))


def cnn():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))


def several(make, n=14):
    return [make() for _ in range(n)]


# ---- indices and labels out of range


def test_a_token_beyond_the_embedding(watching):
    ids = torch.randint(0, 50, (4, 8))
    ids[2, 5] = 50
    w = watching(BatchProbe)
    with pytest.raises(IndexError), w:
        train(Tokens(), [(torch.randint(0, 50, (4, 8)), torch.zeros(4).long()), (ids, torch.zeros(4).long())])
    found = w.one("T701")
    assert found.measured["kind"] == "token"
    assert (found.measured["index"], found.measured["table"], found.measured["position"]) == (50, "words", "[2, 5]")
    assert found.where.step == 2
    assert found.where.file == __file__


def test_an_embedding_that_is_called_by_itself_has_no_classes(watching):
    words, head = nn.Embedding(20, 8), nn.Linear(8, 3)
    optimizer = torch.optim.SGD([*words.parameters(), *head.parameters()], lr=0.1)
    ids = torch.randint(0, 20, (4, 6))
    bad = ids.clone()
    bad[1, 2] = 20

    def loop() -> None:
        for batch in (ids, ids, bad):
            loss = nn.functional.cross_entropy(head(words(batch).mean(1)), torch.zeros(4, dtype=torch.long))
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()

    w = watching(BatchProbe)
    with pytest.raises(IndexError), w:
        loop()
    assert (w.one("T701").measured["index"], "T702" in w.rules) == (20, False)


def test_a_sequence_longer_than_the_table_of_positions(watching):
    w = watching(BatchProbe)
    with pytest.raises(IndexError), w:
        train(Tokens(), [(torch.randint(0, 50, (4, 20)), torch.zeros(4, dtype=torch.long))])
    found = w.one("T701")
    assert (found.measured["kind"], found.measured["table"]) == ("position", "places")


def test_labels_that_count_from_one(watching):
    w = watching(BatchProbe)
    with pytest.raises(IndexError), w:
        train(cnn(), [(pictures(8)[0], torch.arange(8) % 4 + 1)])
    found = w.one("T702")
    assert found.measured["kind"] == "one-based"
    assert found.measured["classes"] == 4


def test_a_device_that_can_no_longer_be_read_is_explained_by_the_batch(watching):
    """What a device-side assert leaves behind: no frame of the lookup, and the batch as it was given out."""
    model, data = Tokens(), TensorDataset(torch.randint(0, 50, (12, 8)), torch.randint(0, 4, (12,)))
    data.tensors[0][9, 3] = 77

    def batches():
        for x, y in DataLoader(data, 4):
            if int(x.max()) >= 50:
                raise RuntimeError("CUDA error: device-side assert triggered")
            yield x, y

    w = watching(BatchProbe)
    with pytest.raises(RuntimeError), w:
        train(model, batches())
    found = w.one("T701")
    assert (found.measured["index"], found.measured["position"]) == (77, "[1, 3]")


def test_an_unrelated_error_is_left_alone(watching):
    w = watching(BatchProbe)
    with pytest.raises(ZeroDivisionError), w:
        train(cnn(), (1 / k for k in (0,)))
    assert w.findings == []


# ---- values


def test_nan_in_the_input(watching):
    def bad():
        x, y = pictures(8)
        x[3, 0, 2, 2] = float("nan")
        return x, y

    with watching(BatchProbe) as w:
        train(cnn(), [pictures(8), bad(), pictures(8)])
    found = w.one("T703")
    assert found.where.step == 2
    assert found.measured["nan"] == 1


def test_an_additive_mask_is_no_fault(watching):
    class Masked(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(6, 6)

        def forward(self, x, attention):
            return (self.lin(x) + attention).softmax(-1).mean(1)

    mask = torch.zeros(6).masked_fill(torch.arange(6) > 3, float("-inf"))
    with watching(BatchProbe) as w:
        train(Masked(), several(lambda: ({"x": torch.randn(4, 6), "attention": mask}, torch.rand(4))),
              loss_of=lambda out, y: ((out - y) ** 2).mean())
    assert w.loud == []


@pytest.mark.parametrize(("scale", "kinds"), [(255.0, ["bytes"]), (1.0, [])])
def test_pictures_that_were_never_divided(scale, kinds, watching):
    with watching(BatchProbe) as w:
        train(cnn(), several(lambda: pictures(8, scale)))
    assert [f.measured["kind"] for f in w.findings if f.rule == "T705"] == kinds


def test_a_division_inside_the_model_counts(watching):
    class Inside(nn.Module):
        def __init__(self):
            super().__init__()
            self.net = cnn()

        def forward(self, x):
            return self.net(x / 255)

    with watching(BatchProbe) as w:
        train(Inside(), several(lambda: pictures(8, 255.0)))
    assert w.loud == []


def test_a_target_of_the_wrong_scale(watching):
    with watching(BatchProbe) as w:
        train(nn.Linear(3, 1), several(lambda: (torch.randn(16, 3), torch.randn(16, 1) * 5e4)), loss_of=F.mse_loss)
    assert w.one("T705").measured["kind"] == "target"


# ---- repeats and order


def test_rows_that_are_all_alike(watching):
    with watching(BatchProbe) as w:
        train(cnn(), several(lambda: (torch.rand(1, 1, 8, 8).expand(8, -1, -1, -1), torch.randint(0, 4, (8,)))))
    assert w.one("T704").measured["kind"] == "constant"


class Stream(IterableDataset):
    """Every worker runs through the whole of it."""

    def __init__(self, sharded):
        self.x = torch.randn(96, 8)
        self.sharded = sharded

    def __iter__(self):
        worker = get_worker_info()
        start, step = (worker.id, worker.num_workers) if self.sharded and worker else (0, 1)
        for i in range(start, len(self.x), step):
            yield self.x[i], i % 4


@pytest.mark.parametrize(("sharded", "kinds"), [(False, ["workers"]), (True, [])])
def test_workers_that_repeat_each_other(sharded, kinds, watching):
    with watching(BatchProbe) as w:
        train(nn.Linear(8, 4), DataLoader(Stream(sharded), 4, num_workers=2))
    assert [f.measured["kind"] for f in w.findings if f.rule == "T704"] == kinds


def test_few_batches_an_epoch_are_no_repeats(watching):
    data = TensorDataset(torch.randn(24, 8), torch.randint(0, 4, (24,)))
    with watching(BatchProbe) as w:
        for _ in range(8):
            train(nn.Linear(8, 4), DataLoader(data, 8))
    assert "T704" not in w.rules


@pytest.mark.parametrize(("shuffle", "kinds"), [(False, ["ordered"]), (True, [])])
def test_data_in_the_order_of_its_classes(shuffle, kinds, watching):
    data = TensorDataset(torch.randn(400, 8), torch.arange(400) // 40)
    with watching(BatchProbe, batches_every=1) as w:
        train(nn.Linear(8, 10), DataLoader(data, 20, shuffle=shuffle))
    assert [f.measured["kind"] for f in w.findings if f.rule == "T706"] == kinds


def test_contrastive_labels_are_no_alarm(watching):
    with watching(BatchProbe) as w:
        train(nn.Linear(8, 10), several(lambda: (torch.randn(16, 8), torch.zeros(16, dtype=torch.long))))
    assert w.loud == []


# ---- labels and masks


def test_batches_without_a_label_that_counts(watching):
    def batch(empty):
        return torch.randn(8, 8), torch.full((8,), -100) if empty else torch.randint(0, 4, (8,))

    with watching(BatchProbe) as w:
        train(nn.Linear(8, 4), [batch(k == 3) for k in range(8)])
    found = w.one("T707")
    assert found.where.step == 4
    assert found.measured["kind"] == "all"


def padded(inverted=False, empty=False):
    ids = torch.randint(1, 50, (4, 8))
    length = torch.randint(3, 7, (4, 1))
    keep = torch.arange(8)[None] < length
    ids = ids.masked_fill(~keep, 0)
    if empty:
        keep[1] = False
    return {"input_ids": ids, "attention_mask": (~keep if inverted else keep).long()}, torch.randint(0, 4, (4,))


@pytest.mark.parametrize(("fault", "kinds"), [({}, []), ({"inverted": True}, ["inverted"]), ({"empty": True},
                                                                                            ["empty-row"])])
def test_masks(fault, kinds, watching):
    with watching(BatchProbe) as w:
        train(Tokens(), several(lambda: padded(**fault)))
    assert [f.measured["kind"] for f in w.findings if f.rule == "T708"] == kinds


def test_nothing_seen_says_nothing():
    assert list(t701_index_beyond_table.check(None)) == []
    assert list(t706_label_order.check([])) == []


def test_odd_batches_are_survived(watching):
    """Strings, None, empty tensors, complex numbers, objects."""
    model = nn.Linear(4, 2)

    class Odd(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = model

        def forward(self, *things, **more):
            return self.lin(things[0])

    with watching(BatchProbe) as w:
        net = Odd()
        for extra in (None, "text", torch.zeros(0, 3), torch.zeros(4, 2, dtype=torch.complex64), object(),
                      {"a": [torch.ones(3), None]}, torch.ones(5, 7, dtype=torch.bool), torch.zeros(6, 5).bfloat16()):
            net(torch.randn(4, 4), extra, more=extra).sum().backward()
    assert w.loud == []


# ---- shapes


@pytest.mark.parametrize(("shape", "kinds"), [((16,), ["loss"]), ((16, 1), [])])
@pytest.mark.filterwarnings("ignore:Using a target size")
def test_predictions_that_meet_every_target(shape, kinds, watching):
    with watching(BatchProbe) as w:
        train(nn.Linear(3, 1), several(lambda: (torch.randn(16, 3), torch.randn(*shape))), loss_of=F.mse_loss)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T709"] == kinds


def test_a_difference_written_out_and_a_matrix_of_pairs(watching):
    with watching(BatchProbe) as w:
        train(nn.Linear(3, 1), several(lambda: (torch.randn(16, 3), torch.randn(16))),
              loss_of=lambda out, y: ((out - y) ** 2).mean())
    assert w.one("T709").measured["prediction"] == "[16, 1]"
    with watching(BatchProbe) as w:
        train(nn.Linear(3, 1), several(lambda: (torch.randn(16, 3), torch.randn(16))),
              loss_of=lambda out, y: torch.relu(1 - (out - out.T) * (y[:, None] - y).sign()).mean())
    assert w.findings == []


def test_a_normalisation_behind_the_first_layer_makes_the_scale_harmless(watching):
    model = nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.Flatten(), nn.Linear(144, 4))
    with watching(BatchProbe) as w:
        train(model, several(lambda: pictures(8, 255.0)))
    assert w.one("T705").severity.value == "low"


def test_what_was_told_early_is_not_told_again(watching):
    data = TensorDataset(torch.randn(4000, 8), torch.arange(4000) // 400)
    with watching(BatchProbe, batches_every=1) as w:
        told = []
        w.notes.finding = told.append
        train(nn.Linear(8, 10), DataLoader(data, 20))
    assert [f.rule for f in told] == ["T706"]
