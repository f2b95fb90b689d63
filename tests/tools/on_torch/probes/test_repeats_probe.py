"""What is drawn at random and the same in every epoch: faulty loaders, healthy twins, one that cannot be asked."""

from __future__ import annotations

import os

import numpy as np
import pytest

torch = pytest.importorskip("torch")
from torch import nn  # noqa: E402
from torch.nn import functional as F  # noqa: E402
from torch.utils.data import DataLoader, Dataset  # noqa: E402

from traindx_tools.on_torch.probes.repeats import RepeatsProbe  # noqa: E402

ROWS = 40


class Rows(Dataset):
    """Fixed values; `noise` says what is added to a row at each visit."""

    def __init__(self, noise="none"):
        self.x = np.random.default_rng(3).normal(size=(ROWS, 4)).astype(np.float32)
        self.noise, self.epoch, self.asked = noise, 0, 0
        self.rng = np.random.default_rng(1)

    def __len__(self):
        return ROWS

    def __getitem__(self, i):
        x = self.x[i]
        if self.noise == "numpy":
            x = x + np.random.normal(size=4)
        elif self.noise == "own":
            x = x + self.rng.normal(size=4)
        elif self.noise == "epoch":
            x = x + np.random.default_rng((self.epoch, i)).normal(size=4)
        elif self.noise == "fails":
            self.asked += 1
            if self.asked > 3 * ROWS:
                raise RuntimeError("asked too often")
        return torch.tensor(x, dtype=torch.float32), float(x.sum())


def fit(data, before=lambda epoch: None, epochs=3, shuffle=True, **options):
    torch.manual_seed(0)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    loader = DataLoader(data, 8, shuffle=shuffle, **options)
    for epoch in range(epochs):
        before(epoch)
        for x, y in loader:
            loss = F.mse_loss(model(x)[:, 0], y.float())
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def told(watching, *args, **options):
    with watching(RepeatsProbe, protected=True) as w:
        fit(*args, **options)
    return w.findings


class Touching(Rows):
    """A dataset that leaves a mark each time an item is made."""

    def __init__(self, folder):
        super().__init__("numpy")
        self.folder = folder

    def __getitem__(self, i):
        (self.folder / f"{os.getpid()}").write_text(str(i))
        return super().__getitem__(i)


@pytest.mark.parametrize("protected", [True, False])
def test_outside_of_a_protected_copy_no_item_is_made_that_the_program_did_not_ask_for(watching, tmp_path, protected):
    with watching(RepeatsProbe, protected=protected) as w:
        fit(Touching(tmp_path), seeded, shuffle=False)
    assert bool(w.findings) is protected
    assert len(list(tmp_path.iterdir())) == (2 if protected else 1)


def seeded(epoch):
    np.random.seed(5)


def test_one_seed_at_each_epoch_is_seen(watching):
    (found,) = told(watching, Rows("numpy"), seeded, shuffle=False)
    assert (found.rule, found.measured["kind"]) == ("T720", "seeded-anew")
    assert "identical in each of 3 epochs" in found.statement
    assert found.where.module == "Rows"


def copied(worker):
    """As a worker that starts anew: nothing."""


@pytest.mark.slow
def test_workers_that_start_from_one_copy_of_the_generator_are_seen(watching):
    found = told(watching, Rows("own"), shuffle=False, num_workers=1, worker_init_fn=copied)
    assert [f.measured["kind"] for f in found] == ["seeded-anew"]


@pytest.mark.slow
def test_workers_that_never_see_the_epoch_are_seen_and_new_ones_are_not(watching):
    data = Rows("epoch")

    def set_epoch(epoch):
        data.epoch = epoch

    (found,) = told(watching, data, set_epoch, num_workers=1, persistent_workers=True)
    assert (found.measured["kind"], found.measured["attribute"]) == ("change-not-seen", "epoch")
    assert not told(watching, data, set_epoch, num_workers=1)


@pytest.mark.parametrize("noise", ["none", "numpy", "own", "epoch"])
def test_fixed_rows_and_rows_that_do_change_are_left_alone(watching, noise):
    """`epoch` without anybody who sets it is a fixed augmentation on purpose."""
    assert not told(watching, Rows(noise))


def test_validation_with_fixed_draws_is_left_alone(watching):
    with watching(RepeatsProbe, protected=True) as w:
        held = DataLoader(Rows("numpy"), 8)
        for epoch in range(3):
            fit(Rows(), epochs=1)
            seeded(epoch)
            with torch.no_grad():
                for _ in held:
                    pass
    assert not w.findings


def test_a_dataset_that_cannot_be_asked_and_one_epoch_say_nothing(watching):
    assert not told(watching, Rows("fails"), shuffle=False)
    assert not told(watching, Rows("numpy"), seeded, epochs=1)
