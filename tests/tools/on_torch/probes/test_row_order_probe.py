"""T730: losses and carried states that need their rows in an order, with shuffled rows and their healthy twins."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import BatchSampler, DataLoader, IterableDataset, Sampler, TensorDataset

from traindx_tools.on_torch.captured import row_order as asked
from traindx_tools.on_torch.probes.carried_state import CarriedStateProbe
from traindx_tools.on_torch.probes.step_copy import StepCopyProbe

ROWS = 16


def rows(count=96):
    torch.manual_seed(0)
    x, hours = torch.randn(count, 5), torch.rand(count)
    return x, hours, (torch.rand(count) < 0.7).float()


class Risk(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.drop, self.b = nn.Linear(5, 8), nn.Dropout(0.3), nn.Linear(8, 1)

    def forward(self, x):
        return self.b(self.drop(torch.tanh(self.a(x)))).squeeze(-1)


def cox(risk, hours, failed):
    return -((risk - torch.logcumsumexp(risk, 0)) * failed).sum() / failed.sum().clamp(min=1)


def cox_by_matrix(risk, hours, failed):
    before = torch.tril(torch.ones(len(risk), len(risk))).bool()
    every = risk[None].expand(len(risk), -1).masked_fill(~before, -1e9)
    return -((risk - every.logsumexp(1)) * failed).sum() / failed.sum().clamp(min=1)


def cox_sorted(risk, hours, failed):
    order = hours.argsort(descending=True)
    return cox(risk[order], hours[order], failed[order])


def cox_by_times(risk, hours, failed):
    at_risk = hours[None] >= hours[:, None]
    every = risk[None].expand(len(risk), -1).masked_fill(~at_risk, -1e9)
    return -((risk - every.logsumexp(1)) * failed).sum() / failed.sum().clamp(min=1)


def random_pairs(risk, hours, failed):
    """Pairs of random rows, on purpose: which ones they are does not matter."""
    half = len(risk) // 2
    return F.softplus(-(risk[:half] - risk[half:]) * torch.sign(hours[:half] - hours[half:])).mean()


def contrast(risk, hours, failed):
    z = F.normalize(torch.stack([risk, hours, failed], 1), dim=1)
    return F.cross_entropy(z @ z.t() / 0.1, torch.arange(len(risk)))


def train(loss_of, loader, epochs=2, before=lambda *batch: batch):
    model = Risk()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    for _ in range(epochs):
        for batch in loader:
            x, hours, failed = before(*batch)
            loss = loss_of(model(x), hours, failed)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()


def shuffled(**more):
    return DataLoader(TensorDataset(*rows()), batch_size=ROWS, shuffle=True, **more)


def seen(watching, loss_of, loader, **more):
    with watching(StepCopyProbe) as told:
        train(loss_of, loader, **more)
    return [f for f in told.findings if f.rule == "T730"], told


@pytest.mark.parametrize("loss_of", [cox, cox_by_matrix])
def test_risk_sets_of_shuffled_rows(watching, loss_of):
    (finding,), _ = seen(watching, loss_of, shuffled())
    assert finding.measured["kind"] == "cumulative"
    assert finding.severity == "high"
    assert finding.where.file.endswith("test_row_order_probe.py")


@pytest.mark.parametrize("loss_of", [cox_sorted, cox_by_times, contrast])
def test_a_loss_that_knows_its_order_by_itself(watching, loss_of):
    assert seen(watching, loss_of, shuffled())[0] == []


def test_pairs_of_random_rows_are_told_and_no_cause(watching):
    (finding,), _ = seen(watching, random_pairs, shuffled())
    assert (finding.measured["kind"], finding.severity, finding.bearing) == ("neighbours", "info", "companion")


def test_rows_that_a_collate_function_sorts(watching):
    def by_hours(batch):
        batch = sorted(batch, key=lambda row: -float(row[1]))
        return [torch.stack(column) for column in zip(*batch, strict=True)]

    assert seen(watching, cox, shuffled(collate_fn=by_hours))[0] == []


def test_rows_that_the_loop_sorts(watching):
    def by_hours(x, hours, failed):
        order = hours.argsort(descending=True)
        return x[order], hours[order], failed[order]

    assert seen(watching, cox, shuffled(), before=by_hours)[0] == []


def test_a_loader_that_keeps_the_order_is_a_remark(watching):
    found, told = seen(watching, cox, DataLoader(TensorDataset(*rows()), batch_size=ROWS))
    assert found == []
    assert any("depends on the order of its rows" in r for r in told.scene.program.remarks)


class Grouped(Sampler):
    """A sampler of the program's own: it may keep together what belongs together."""

    def __iter__(self):
        return iter(torch.randperm(96).tolist())

    def __len__(self):
        return 96


def test_a_sampler_of_the_programs_own_is_trusted(watching):
    loader = DataLoader(TensorDataset(*rows()), batch_sampler=BatchSampler(Grouped(), ROWS, drop_last=True))
    assert seen(watching, cox, loader)[0] == []


class Stream(IterableDataset):
    def __iter__(self):
        return zip(*rows(), strict=True)


def test_a_stream_has_no_rows_by_number(watching):
    assert seen(watching, cox, DataLoader(Stream(), batch_size=ROWS))[0] == []


def test_what_stands_in_order_was_sorted():
    x, hours, _ = rows()
    assert asked.in_order(hours.sort().values)
    assert asked.in_order(torch.stack([hours, hours.sort(descending=True).values], 1))
    assert not asked.in_order(hours)
    assert not asked.in_order(torch.zeros(32))
    assert not asked.in_order(x.to(torch.complex64))


# ---- a state that is carried on


class Carries(nn.Module):
    def __init__(self):
        super().__init__()
        self.cell, self.out = nn.GRU(3, 6, batch_first=True), nn.Linear(6, 1)

    def forward(self, x, state=None):
        h, state = self.cell(x, state)
        return self.out(h), state


def carrying(loader, *, anew=False, copied=False):
    model = Carries()
    optimizer = torch.optim.SGD(model.parameters(), 0.01)
    state = None
    for x, y in loader:
        out, state = model(x, None if anew else state)
        state = state.detach().clone() if copied else state.detach()
        optimizer.zero_grad()
        F.mse_loss(out, y).backward()
        optimizer.step()


def sequences(**how):
    return DataLoader(TensorDataset(torch.randn(96, 7, 3), torch.randn(96, 7, 1)), batch_size=16, **how)


@pytest.mark.parametrize("copied", [False, True])
def test_a_state_that_goes_to_other_sequences(watching, copied):
    with watching(CarriedStateProbe) as told:
        carrying(sequences(shuffle=True), copied=copied)
    (finding,) = told.findings
    assert (finding.rule, finding.measured["kind"], finding.measured["argument"]) == ("T730", "carried", "state")


def test_windows_in_their_order_and_states_that_begin_anew(watching):
    for loader, anew in ((sequences(), False), (sequences(shuffle=True), True)):
        with watching(CarriedStateProbe) as told:
            carrying(loader, anew=anew)
        assert told.findings == []


def test_what_another_model_made_is_no_state(watching):
    maker, judge = nn.Linear(3, 3), nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 1))
    optimizer = torch.optim.SGD([*maker.parameters(), *judge.parameters()], 0.01)
    fake = torch.zeros(16, 3)
    with watching(CarriedStateProbe) as told:
        for (x,) in DataLoader(TensorDataset(torch.randn(96, 3)), batch_size=16, shuffle=True):
            loss = judge(fake).mean() - judge(maker(x)).mean()
            fake = maker(x).detach()
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
    assert told.findings == []
