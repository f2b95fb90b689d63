"""The padding id that is a real one, texts whose end is never asked for, and paddings that are right."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.padding_id import PaddingIdProbe, look
from traindx_tools.on_torch.rules import t723_padding_id
from traindx_tools.on_torch.rules.t723_padding_id import PaddingSeen

VOCABULARY = 24


class Next(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(VOCABULARY, 8)
        self.out = nn.Linear(8, VOCABULARY)

    def forward(self, ids):
        return self.out(self.embedding(ids))


def rows(lowest, pad, end=None, size=16, length=12):
    """Rows of random ids from `lowest` on, of different lengths, filled up behind."""
    out = torch.full((size, length), pad)
    for row in out:
        n = int(torch.randint(5, length - 1, ()))
        row[:n] = torch.randint(lowest, VOCABULARY, (n,))
        if end is not None:
            row[n - 1] = end
    return out


def trained(make, target, steps=8):
    model = Next()
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    for _ in range(steps):
        ids = make()
        loss = target(model(ids), ids)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def following(ignored):
    loss = nn.CrossEntropyLoss(ignore_index=ignored)
    return lambda out, ids: loss(out[:, :-1].flatten(0, 1), ids[:, 1:].flatten())


def masked(pad):
    """Labels equal to the padding are -100."""
    return lambda out, ids: F.cross_entropy(
        out[:, :-1].flatten(0, 1), ids[:, 1:].masked_fill(ids[:, 1:] == pad, -100).flatten())


@pytest.fixture
def told(watching):
    """The findings of a program."""
    def told(program):
        with watching(PaddingIdProbe) as seen:
            program()
        return [f.measured for f in seen.findings]
    return told


def test_a_real_item_has_the_number_of_the_padding(told):
    (found,) = told(lambda: trained(lambda: rows(0, 0), following(0)))
    assert (found["kind"], found["id"]) == ("between", 0)


def test_an_end_token_that_is_the_padding_is_never_asked_for(told):
    assert [m["kind"] for m in told(lambda: trained(lambda: rows(2, 1), masked(1)))] == ["no-end"]


@pytest.mark.parametrize(("make", "target"), [
    (lambda: rows(1, 0, end=1), following(0)),  # padding of its own, texts that end
    (lambda: rows(2, 0, end=1), masked(0)),
    (lambda: rows(0, 0, length=12), following(-100)),  # nothing is ignored
    (lambda: torch.randint(2, VOCABULARY, (16, 12)), masked(1)),  # packed: no end within a row
    (lambda: rows(2, 1), lambda out, ids: F.cross_entropy(out[:, 0], ids[:, 0])),  # one class a row
], ids=["own padding", "masked", "nothing ignored", "packed", "classifier"])
def test_paddings_that_are_right_are_left_alone(told, make, target):
    assert told(lambda: trained(make, target)) == []


def test_a_masked_language_model_ignores_places_whose_inputs_are_real(told):
    def target(out, ids):
        labels = torch.where(torch.rand(ids.shape) < 0.15, ids, 0)
        return F.cross_entropy(out.flatten(0, 1), labels.flatten(), ignore_index=0)

    assert told(lambda: trained(lambda: rows(2, 0, end=1), target)) == []


def tagged(step, seen, fill, share=0.1, masked=False, ignored=3):
    """Words filled up with 0, and a class of each: `fill` behind, `ignored` at a share of the real places."""
    rng = np.random.default_rng(step)
    words, classes = rng.integers(1, 50, (16, 12)), rng.choice([0, 1, 2], (16, 12)).astype(float)
    classes[rng.random((16, 12)) < share] = ignored
    for row in range(16):
        n = rng.integers(5, 10)
        words[row, n:], classes[row, n:] = 0, fill
    if masked:
        words[(classes != ignored) & (words > 0)] = 51
    look(seen, step, ignored, words.astype(float), classes)


def classes_told(**how):
    seen = PaddingSeen()
    for step in range(6):
        tagged(step, seen, **how)
    return [(f.measured["kind"], f.measured["id"], f.bearing.value) for f in t723_padding_id.check([seen])]


def test_a_class_that_fills_up_the_targets_and_is_real():
    assert classes_told(fill=3) == [("class", 3, "sign")]
    assert classes_told(fill=0, ignored=0) == [("class", 0, "sign")]


def test_classes_that_are_ignored_on_purpose():
    assert classes_told(fill=3, share=0.0) == []  # padding alone
    assert classes_told(fill=1) == []  # something else fills up
    assert classes_told(fill=3, share=0.8) == []  # what is outside of all spans
    assert classes_told(fill=3, share=0.4, masked=True) == []  # asked where a mask stands


def test_an_end_that_is_asked_for_once_is_fine():
    seen, rng = PaddingSeen(), np.random.default_rng(0)
    for step in range(8):
        ids = np.ones((16, 10))
        ids[:, :6] = rng.integers(2, 20, (16, 6))
        target = np.where(np.arange(9) < 6, ids[:, 1:], -100)
        look(seen, step, -100, ids, target)
    assert seen.rows == 128
    assert not list(t723_padding_id.check([seen]))


def test_batches_of_one_id_or_without_any_are_no_rows():
    seen = PaddingSeen()
    look(seen, 1, 0, np.zeros((4, 6)), np.zeros((4, 6)))
    look(seen, 1, None, np.zeros((0, 6)), np.zeros((0, 5)))
    assert (seen.rows, seen.between) == (0, 0)
    assert not list(t723_padding_id.check([seen, PaddingSeen()]))
