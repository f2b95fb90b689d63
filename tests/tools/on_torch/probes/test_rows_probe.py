"""What is evaluated is transformed as what is trained on: faulty runs, healthy twins, odd programs."""

from __future__ import annotations

import pytest

torch = pytest.importorskip("torch")
from row_programs import CLASSES, WIDTH, Next, Words, fit, loader, net, split  # noqa: E402
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, IterableDataset  # noqa: E402

from traindx_tools.on_torch.probes.rows import RowProbe  # noqa: E402


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
