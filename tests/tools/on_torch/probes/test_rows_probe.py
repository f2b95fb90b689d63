"""What is trained on against what is evaluated, row by row: a faulty run, its healthy twin, a broken input."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import (  # noqa: E402
    ConcatDataset,
    DataLoader,
    IterableDataset,
    Subset,
    TensorDataset,
    WeightedRandomSampler,
)

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402

CLASSES, WIDTH = 4, 16


def rows(n=1000, offset=0.0):
    """Four classes around centres of their own."""
    random = torch.Generator().manual_seed(1)
    centres = 1.3 * torch.randn(CLASSES, WIDTH, generator=random)
    y = torch.randint(0, CLASSES, (n,), generator=random)
    return centres[y] + torch.randn(n, WIDTH, generator=random) + offset, y


def net():
    return nn.Sequential(nn.Linear(WIDTH, 32), nn.ReLU(), nn.Linear(32, CLASSES))


def loader(x, y, shuffle=True, **options):
    return DataLoader(TensorDataset(x, y), 32, shuffle=shuffle, **options)


def fit(model, train, held_out=None, epochs=3, loss_of=F.cross_entropy, rate=1e-2, given=lambda x: x):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    for _ in range(epochs):
        model.train()
        for x, y in train:
            loss = loss_of(model(given(x)), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        if held_out is not None:
            model.eval()
            with torch.no_grad():
                for x, _ in held_out:
                    model(x)


def split(n=1000):
    x, y = rows(n)
    return x[:800], y[:800], x[800:], y[800:]


# ---- evaluation inputs


def shuffled_columns(x):
    return x.flip(1)


@pytest.mark.parametrize(("change", "kind"), [
    (lambda x: x * 255, "scaled"), (lambda x: x / 10, "scaled"), (shuffled_columns, "permuted"),
    (lambda x: x * torch.cat([torch.zeros(3), torch.ones(WIDTH - 3)]), "constant-features"),
    (lambda x: x * torch.linspace(1, 3, WIDTH) + torch.arange(WIDTH) * 4 + 6, "standardised"),
], ids=["bytes", "tenth", "reversed", "zeroed", "raw"])
def test_evaluated_inputs_of_another_transform(change, kind, watching):
    level = torch.arange(WIDTH) if kind == "permuted" else torch.zeros(WIDTH)
    x, y, held, labels = split()
    if kind == "standardised":
        held = (held - x.mean(0)) / x.std(0)
        x = (x - x.mean(0)) / x.std(0)
    with watching(RowProbe) as w:
        fit(net(), loader(x + level, y), loader(change(held + level), labels, False))
    found = w.one("T712")
    assert found.measured["kind"] == kind
    assert found.severity.rank >= 2


def test_the_factor_is_named(watching):
    x, y, held, labels = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(held * 255, labels, False))
    found = w.one("T712")
    assert "are scaled otherwise: x" in found.statement
    assert 230 < found.measured["ratio"] < 280
    assert found.measured["exact"] == 1


def test_pictures_that_are_normalised_in_training_alone(watching):
    x = torch.rand(400, 3, 8, 8)
    y = (x.mean((1, 2, 3)) > 0.5).long()
    model = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.Flatten(), nn.Linear(144, 2))
    with watching(RowProbe) as w:
        fit(model, loader((x[:300] - 0.5) / 0.1, y[:300]), loader(x[300:], y[300:], False), rate=1e-3)
    assert w.one("T712").measured["kind"] == "scaled"


def ids(n, moved=0):
    share = 1.0 / (1 + torch.arange(40.0))
    return torch.multinomial(share.expand(n, -1), 12, replacement=True) + moved


class Words(nn.Module):
    def __init__(self):
        super().__init__()
        self.words, self.head = nn.Embedding(50, 8), nn.Linear(8, 3)

    def forward(self, input_ids):
        return self.head(self.words(input_ids).mean(1))


@pytest.mark.parametrize(("moved", "kinds"), [(0, []), (2, ["ids-moved"])])
def test_token_ids_that_are_moved(moved, kinds, watching):
    y = torch.randint(0, 3, (400,))
    with watching(RowProbe) as w:
        fit(Words(), loader(ids(400), y), loader(ids(200, moved), y[:200], False))
    assert [f.measured["kind"] for f in w.findings if f.rule == "T712"] == kinds


def test_masks_of_training_and_padding_of_a_generation_are_left_alone(watching):
    def hidden(tokens):
        return tokens.masked_fill(torch.rand(tokens.shape) < 0.3, 1)

    model, tokens = Next(), torch.randint(2, 30, (320, 16))
    with watching(RowProbe) as w:
        fit(model, loader(tokens, tokens), epochs=2, given=hidden,
            loss_of=lambda logits, t: F.cross_entropy(logits.reshape(-1, 30), t.reshape(-1)))
        model.eval()
        with torch.no_grad():
            for _ in range(3):
                written = torch.cat([torch.zeros(4, 5, dtype=torch.long), tokens[:4, :4]], 1)
                for _ in range(8):
                    written = torch.cat([written, model(written)[:, -1:].argmax(-1)], 1)
    assert w.loud == []


def test_padding_on_evaluated_prompts_is_left_alone(watching):
    tokens, y = ids(400, 2), torch.randint(0, 3, (400,))
    padded = ids(200, 2)
    padded[:, :6] = 0
    with watching(RowProbe) as w:
        fit(Words(), loader(tokens, y), loader(padded, y[:200], False))
    assert w.loud == []


def test_another_domain_is_a_remark(watching):
    x, y, held, labels = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(held * 1.4 + 2.0 * torch.randn(WIDTH), labels, False))
    assert w.loud == []
    assert w.one("T712").measured["kind"] == "differs"


@pytest.mark.slow
def test_augmentation_in_training_alone_is_left_alone(watching):
    x, y, held, labels = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(held, labels, False),
            given=lambda v: v * (0.8 + 0.4 * torch.rand(len(v), 1)) + 0.3 * torch.randn_like(v))
    assert w.loud == []


# ---- a part of the rows


def spoilt(kind, first=300, last=500):
    x, y, held, labels = split()
    part = slice(first, last)
    if kind == "mapped":
        y[part] = (y[part] + 1) % CLASSES
    elif kind == "random":
        y[part] = torch.randint(0, CLASSES, (last - first,))
    elif kind == "inputs":
        x[part] *= 0.01
    return x, y, held, labels


@pytest.mark.parametrize(("fault", "kind"), [("mapped", "labels-mapped"), ("random", "labels-unrelated"),
                                             ("inputs", "inputs-otherwise")])
def test_a_range_that_is_not_learned(fault, kind, watching):
    x, y, held, labels = spoilt(fault)
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), loader(held, labels, False), epochs=4)
    found = next(f for f in w.findings if f.rule == "T713")
    assert found.measured["kind"] == kind
    assert abs(found.measured["first"] - 300) <= 5
    assert abs(found.measured["last"] - 499) <= 5


def test_the_file_of_a_dataset_that_was_put_together(watching):
    x, y, *_ = split()
    y[400:600] = (y[400:600] + 2) % CLASSES
    data = ConcatDataset([TensorDataset(x[a:b], y[a:b]) for a, b in ((0, 400), (400, 600), (600, 800))])
    with watching(RowProbe) as w:
        fit(net(), DataLoader(data, 32, shuffle=True), epochs=4)
    assert next(f for f in w.findings if f.rule == "T713").measured["part"] == "datasets = dataset 1"


class Sources(TensorDataset):
    """Rows with the site that each comes from."""

    def __init__(self, x, y, sites):
        super().__init__(x, y)
        self.sites = sites


def test_what_the_dataset_keeps_of_each_row_is_named(watching):
    x, y, *_ = split()
    sites = ["abc"[k % 3] for k in range(len(x))]
    of_b = torch.tensor([s == "b" for s in sites])
    y[of_b] = torch.randint(0, CLASSES, (int(of_b.sum()),))
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Sources(x, y, sites), 32, shuffle=True), epochs=4)
    assert next(f for f in w.findings if f.rule == "T713").measured["part"] == "sites = b"


@pytest.mark.slow
@pytest.mark.parametrize(("mixed", "kinds"), [(True, ["labels-unrelated"]), (False, [])])
def test_a_corpus_whose_tokens_are_in_no_order(mixed, kinds, watching):
    def text(n):
        return (torch.randint(0, 30, (n, 1)) + torch.arange(16)[None] * torch.randint(1, 3, (n, 1))) % 30

    corpora = [text(200), text(160), text(160)]
    if mixed:
        corpora[1] = torch.stack([row[torch.randperm(16)] for row in corpora[1]])
    data = ConcatDataset([TensorDataset(t, t) for t in corpora])
    with watching(RowProbe) as w:
        fit(Next(), DataLoader(data, 20, shuffle=True), epochs=10, rate=2e-2,
            loss_of=lambda logits, t: F.cross_entropy(logits[:, :-1].reshape(-1, 30), t[:, 1:].reshape(-1)))
    found = [f for f in w.findings if f.rule == "T713"]
    assert [f.measured["kind"] for f in found] == kinds
    assert [f.measured["part"] for f in found] == ["datasets = dataset 1"] * len(kinds)


class OwnLoss(nn.Module):
    """A model that is given its labels."""

    def __init__(self):
        super().__init__()
        self.inner = net()

    def forward(self, x, labels=None):
        logits = self.inner(x)
        return logits if labels is None else F.cross_entropy(logits, labels)


@pytest.mark.parametrize(("rolled", "rules"), [(0, []), (1, ["T714"])])
def test_labels_that_a_model_is_given_are_no_inputs(rolled, rules, watching):
    x, y, *_ = split()
    model = OwnLoss()
    optimizer = torch.optim.Adam(model.parameters(), 1e-2)
    with watching(RowProbe) as w:
        for rows_now, labels in loader(x, y.roll(rolled)):
            model(x=rows_now, labels=labels).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert w.rules == rules


def test_a_harder_source_is_left_alone(watching):
    x, y, *_ = split()
    sites = ["abc"[k % 3] for k in range(len(x))]
    of_b = torch.tensor([s == "b" for s in sites])
    x[of_b] += 1.5 * torch.randn(int(of_b.sum()), WIDTH)
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Sources(x, y, sites), 32, shuffle=True), epochs=5)
    assert w.loud == []


def test_rare_classes_and_a_little_label_noise_are_left_alone(watching):
    x, y, *_ = split()
    keep = (y > 0) | (torch.rand(len(y)) < 0.1)
    x, y = x[keep], y[keep]
    wrong = torch.rand(len(y)) < 0.05
    y[wrong] = torch.randint(0, CLASSES, (int(wrong.sum()),))
    weights = (1.0 / torch.bincount(y))[y]
    with watching(RowProbe) as w:
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=WeightedRandomSampler(weights, len(y))), epochs=5)
    assert w.loud == []


def test_data_that_is_sorted_on_purpose_is_left_alone(watching):
    x, y, held, labels = split()
    order = (x**2).sum(1).argsort()
    with watching(RowProbe) as w:
        fit(net(), loader(x[order], y[order], False), loader(held, labels, False), epochs=4)
    assert w.loud == []


# ---- labels against inputs


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


class Next(nn.Module):
    """Predicts a token from the one at its place and those before."""

    def __init__(self):
        super().__init__()
        self.words, self.inner, self.head = nn.Embedding(30, 16), nn.GRU(16, 16, batch_first=True), nn.Linear(16, 30)

    def forward(self, input_ids):
        return self.head(self.inner(self.words(input_ids))[0])


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


# ---- rows that were trained on


@pytest.mark.parametrize(("shared", "kinds"), [(0, []), (12, ["leak"]), (40, ["same-data"])])
@pytest.mark.parametrize("epochs", [1, 3])
def test_evaluation_rows_that_were_trained_on(shared, kinds, epochs, watching):
    x, y = torch.randn(80, 8), torch.randint(0, 4, (80,))
    held = torch.cat([x[:shared], torch.randn(40 - shared, 8)])
    held = held[torch.randperm(40)]
    with watching(RowProbe) as w:
        fit(nn.Linear(8, 4), loader(x, y), DataLoader(TensorDataset(held, torch.zeros(40)), 10), epochs=epochs)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T711"] == kinds
    assert len(w.loud) == ("leak" in kinds)


def test_training_data_that_is_evaluated_in_one_piece_is_no_leak(watching):
    """Of rows that were augmented, those of a table are known by their numbers, and after one epoch not all of them."""
    x, y, *_ = split()
    held = torch.randn(60, x.shape[1])
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(RowProbe) as w:
        for _ in range(3):
            for ix in torch.randperm(len(x))[:int(0.8 * len(x))].split(20):
                F.cross_entropy(model(x[ix]), y[ix]).backward()
                optimizer.step()
                optimizer.zero_grad()
            x, y = x[:int(0.9 * len(x))], y[:int(0.9 * len(y))]
            model.eval()
            with torch.no_grad():
                model(x), model(held)
            model.train()
    assert "T711" not in w.rules


class Noisy(TensorDataset):
    """Another augmentation each time."""

    def __getitem__(self, index):
        x, y = super().__getitem__(index)
        return x + 0.5 * torch.randn_like(x), y


@pytest.mark.parametrize(("first", "kinds"), [(200, []), (180, ["leak"])])
def test_parts_of_one_dataset_that_overlap_are_known_by_number(first, kinds, watching):
    data = Noisy(*rows(280))
    train, held = Subset(data, range(200)), Subset(data, range(first, first + 80))
    with watching(RowProbe) as w:
        fit(net(), DataLoader(train, 20, shuffle=True), DataLoader(held, 20, shuffle=True), epochs=2)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T711"] == kinds


def test_rows_of_few_values_recur_by_nature(watching):
    x = torch.randint(0, 2, (400, 4)).float()
    with watching(RowProbe) as w:
        fit(nn.Linear(4, 2), loader(x, x[:, 0].long()), loader(torch.randint(0, 2, (100, 4)).float(),
                                                             torch.zeros(100), False), epochs=2)
    assert "T711" not in w.rules


def test_what_is_evaluated_first_and_trained_on_afterwards_leaks_nothing(watching):
    x, y, *_ = split()
    model = net()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    with watching(RowProbe) as w:
        for k in range(0, 800, 40):
            part = slice(k, k + 40)
            model.eval()
            with torch.no_grad():
                model(x[part])
            model.train()
            F.cross_entropy(model(x[part]), y[part]).backward()
            optimizer.step()
            optimizer.zero_grad()
    assert w.findings == []


# ---- rows that change


class InPlace(TensorDataset):
    """Normalises what it keeps."""

    def __getitem__(self, index):
        x = self.tensors[0][index]
        return x.div_(2.0), self.tensors[1][index]


class Drawn(TensorDataset):
    """Draws a label, or turns the row as its label says."""

    def __init__(self, x, y, turned):
        super().__init__(x, y)
        self.turned = turned

    def __getitem__(self, index):
        label = int(torch.randint(0, CLASSES, ()))
        x = self.tensors[0][index]
        return (x.roll(4 * label) if self.turned else x), label


def test_rows_that_are_scaled_in_place(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(InPlace(x, y), 32, shuffle=True), epochs=4)
    assert w.one("T718").measured["kind"] == "scaled-each-visit"
    assert w.one("T718").measured["ratio"] == pytest.approx(0.25, rel=0.01)


@pytest.mark.parametrize(("turned", "kinds"), [(False, ["labels-redrawn"]), (True, [])])
def test_labels_that_are_drawn_anew(turned, kinds, watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Drawn(x, y, turned), 32, shuffle=True), epochs=3)
    assert [f.measured["kind"] for f in w.findings if f.rule == "T718"] == kinds


def test_augmentation_is_no_change(watching):
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Noisy(*rows(400)), 32, shuffle=True), epochs=5)
    assert w.loud == []


# ---- order, coverage, jumps


def test_rows_that_no_loader_draws(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=torch.randperm(600).tolist()), epochs=5)
    found = w.one("T715")
    assert (found.measured["first"], found.measured["last"], found.measured["rows"]) == (600, 799, 200)
    assert w.loud == []


def test_rows_that_another_part_of_the_dataset_draws_are_drawn(watching):
    data = TensorDataset(*rows(1000))
    fold = torch.arange(1000) % 5 == 0
    train = Subset(data, (~fold).nonzero()[:, 0].tolist())
    with watching(RowProbe) as w:
        fit(net(), DataLoader(train, 32, shuffle=True), DataLoader(data, 32, sampler=fold.nonzero()[:, 0].tolist()),
            epochs=5)
    assert w.findings == []


def test_a_dropped_last_batch_and_sampling_with_weights_are_left_alone(watching):
    x, y, *_ = split()
    with watching(RowProbe) as w:
        fit(net(), loader(x, y, False, drop_last=True), epochs=4)
        fit(net(), DataLoader(TensorDataset(x, y), 32, sampler=WeightedRandomSampler(torch.ones(800), 800)), epochs=6)
    assert "T715" not in w.rules


def test_the_rows_of_the_jumps_are_named(watching):
    x, y, *_ = split()
    x[[17, 93]] *= 200
    y[[17, 93]] = torch.randint(0, CLASSES, (2,))
    with watching(RowProbe) as w:
        fit(net(), loader(x, y), epochs=6, rate=1e-4)
    found = w.one("T716")
    assert found.measured["kind"] == "extreme-inputs"
    assert found.measured["row"] in (17, 93)
    assert found.measured["rows"] <= 2


# ---- nothing changes, nothing breaks


def test_losses_are_the_same_bit_by_bit(watching):
    def losses():
        torch.manual_seed(3)
        seen = []
        x, y, held, labels = split()
        fit(net(), loader(x, y, num_workers=1), loader(held, labels), epochs=2,
            loss_of=lambda a, b: (seen.append(F.cross_entropy(a, b)), seen[-1])[1])
        return [v.item() for v in seen]

    alone = losses()
    with watching(RowProbe):
        watched = losses()
    assert alone == watched
    assert len(alone) == 50


class Stream(IterableDataset):
    def __iter__(self):
        for _ in range(64):
            yield torch.randn(WIDTH), int(torch.randint(0, CLASSES, ()))


def test_odd_programs_are_survived(watching):
    """Streams without numbers, values that are not finite, empty and growing inputs, losses without a known term."""
    x, y, *_ = split()
    x = x.clone()
    x[3, 2], x[4, 1] = float("nan"), float("inf")
    with watching(RowProbe) as w:
        fit(net(), DataLoader(Stream(), 16), epochs=1)
        fit(net(), loader(x[:64], y[:64]), epochs=2)
        fit(net(), loader(x[:0], y[:0], False), epochs=1)
        fit(nn.Linear(WIDTH, 1), loader(x[100:164], y[100:164]), loss_of=lambda a, b: a.square().sum(), epochs=2)
        model = Next()
        with torch.no_grad():
            for length in range(1, 9):
                model(torch.zeros(2, length, dtype=torch.long))
    assert w.loud == []


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
