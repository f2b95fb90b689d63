"""States that are read, loaded, taken and written: what never reaches the model, and what is meant."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import nn
from torch.nn import functional as F

from traindx_tools.on_torch.probes.state import StateProbe


def net():
    return nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 4))


def train(model, optimizer, steps=5):
    for _ in range(steps):
        x = torch.randn(32, 8)
        loss = F.cross_entropy(model(x), x.argmax(1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def adam(model):
    return torch.optim.Adam(model.parameters())


def evaluate(model):
    with torch.no_grad():
        for _ in range(3):
            model.eval()(torch.randn(8, 8))


@pytest.fixture
def files(tmp_path):
    """A full checkpoint, weights alone, and weights of a wrapped model."""
    model = net()
    optimizer = adam(model)
    train(model, optimizer)
    full, weights, wrapped = (str(tmp_path / n) for n in ("full.pt", "weights.pt", "wrapped.pt"))
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 3}, full)
    torch.save(model.state_dict(), weights)
    torch.save({f"module.{k}": v for k, v in model.state_dict().items()}, wrapped)
    return full, weights, wrapped


def epoch_alone(full, weights, wrapped):
    checkpoint = torch.load(full)
    model = net()
    optimizer = adam(model)
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer)


def filtered_away(full, weights, wrapped):
    model = net()
    own = model.state_dict()
    own.update({k: v for k, v in torch.load(wrapped).items() if k in own})
    model.load_state_dict(own)
    evaluate(model)


def initialised_after(full, weights, wrapped):
    model = net()
    model.load_state_dict(torch.load(weights))
    model.apply(lambda m: m.reset_parameters() if hasattr(m, "reset_parameters") else None)
    evaluate(model)


def prefix(full, weights, wrapped):
    model = net()
    model.load_state_dict(torch.load(wrapped), strict=False)
    evaluate(model)


def another_instance(full, weights, wrapped):
    model = net()
    model.load_state_dict(torch.load(weights))
    model = net()
    train(model, adam(model))


def resumed_in_part(full, weights, wrapped):
    checkpoint = torch.load(full)
    model = net()
    model.load_state_dict(checkpoint["model"])
    optimizer = adam(model)
    train(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}, full)


def best_by_reference(full, weights, wrapped):
    model = net()
    optimizer = adam(model)
    train(model, optimizer)
    best = model.state_dict()
    train(model, optimizer)
    model.load_state_dict(best)
    evaluate(model)


def best_saved_late(full, weights, wrapped):
    model = net()
    optimizer = adam(model)
    train(model, optimizer)
    best = {k: v.cpu() for k, v in model.state_dict().items()}
    train(model, optimizer)
    torch.save(best, weights)


def averaged(save, weights):
    model = net()
    average, optimizer = copy.deepcopy(model), adam(model)
    for _ in range(3):
        model.train()
        train(model, optimizer, 2)
        with torch.no_grad():
            for a, b in zip(average.parameters(), model.parameters(), strict=True):
                a.lerp_(b, 0.5)
        evaluate(average)
        torch.save(save(model, average), weights)


def average_not_saved(full, weights, wrapped):
    averaged(lambda model, average: model.state_dict(), weights)


def untrained_saved(full, weights, wrapped):
    model = net()
    spare = copy.deepcopy(model)
    evaluate(spare)
    train(model, adam(model))
    torch.save(spare.state_dict(), weights)


def normed():
    return nn.Sequential(nn.Linear(8, 16), nn.BatchNorm1d(16), nn.ReLU(), nn.Linear(16, 4))


def parameters_of(model):
    train(model, adam(model), 20)
    return dict(model.named_parameters())


def statistics_left_out(full, weights, wrapped):
    model = normed()
    model.load_state_dict(parameters_of(normed()), strict=False)
    evaluate(model)


FAULTY = {statistics_left_out: ("T322", "statistics"), epoch_alone: ("T321", "trained"),
          filtered_away: ("T321", "evaluated"),
          initialised_after: ("T321", "overwritten"), prefix: ("T322", "prefix"), another_instance: ("T324", "trained"),
          resumed_in_part: ("T323", "optimizer resume"), best_by_reference: ("T326", "loaded"),
          best_saved_late: ("T326", "saved"), average_not_saved: ("T325", "not-evaluated"),
          untrained_saved: ("T325", "untrained")}  # fmt: skip


def resumed(full, weights, wrapped):
    checkpoint = torch.load(full)
    model = net()
    model.load_state_dict(checkpoint["model"])
    optimizer = adam(model)
    optimizer.load_state_dict(checkpoint["optimizer"])
    train(model, optimizer)
    torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 4}, full)


def fine_tuned(full, weights, wrapped):
    model = net()
    model.load_state_dict(torch.load(full)["model"])
    train(model, adam(model))
    torch.save(model.state_dict(), weights)


def copied_by_hand(full, weights, wrapped):
    state, model = torch.load(weights), net()
    with torch.no_grad():
        for name, p in model.named_parameters():
            p.copy_(state[name])
    evaluate(model)


def statistics_made_anew(full, weights, wrapped):
    model = normed()
    model.load_state_dict(parameters_of(normed()), strict=False)
    train(model, adam(model))
    evaluate(model)


def statistics_filled_by_hand(full, weights, wrapped):
    model, other = normed(), normed()
    model.load_state_dict(parameters_of(other), strict=False)
    model[1].running_mean.copy_(other[1].running_mean)
    model[1].running_var.copy_(other[1].running_var)
    evaluate(model)


def statistics_of_a_layer_of_its_own(full, weights, wrapped):
    model = normed()
    model.load_state_dict({k: v for k, v in parameters_of(normed()).items() if not k.startswith("1.")}, strict=False)
    model.eval()
    evaluate(model)


def new_head(full, weights, wrapped):
    model = nn.Sequential(nn.Linear(8, 32), nn.ReLU(), nn.Linear(32, 7))
    model.load_state_dict({k: v for k, v in torch.load(weights).items() if k.startswith("0.")}, strict=False)
    evaluate(model)


def teacher(full, weights, wrapped):
    fixed, student = net(), net()
    fixed.load_state_dict(torch.load(weights))
    optimizer = adam(student)
    for _ in range(5):
        x = torch.randn(8, 8)
        with torch.no_grad():
            y = fixed(x)
        loss = F.mse_loss(student(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    torch.save(student.state_dict(), weights)


def best_by_copy(full, weights, wrapped):
    model = net()
    optimizer = adam(model)
    train(model, optimizer)
    best = copy.deepcopy(model.state_dict())
    train(model, optimizer)
    model.load_state_dict(best)
    evaluate(model)


def target_network(full, weights, wrapped):
    model, target = net(), net()
    optimizer = adam(model)
    for _ in range(3):
        train(model, optimizer, 2)
        target.load_state_dict(model.state_dict())
        evaluate(target)


def average_saved_too(full, weights, wrapped):
    averaged(lambda model, average: {"raw": model.state_dict(), "average": average.state_dict()}, weights)


def data_file(full, weights, wrapped):
    torch.save({"x": torch.randn(64, 8), "y": torch.randn(64, 4)}, weights)
    data, model = torch.load(weights), net()
    optimizer = adam(model)
    for _ in range(4):
        loss = F.mse_loss(model(data["x"]), data["y"])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def looked_at(full, weights, wrapped):
    torch.load(full)


def live_view(full, weights, wrapped):
    model = net()
    optimizer, view = adam(model), model.state_dict()
    for _ in range(3):
        train(model, optimizer, 2)
        torch.save(view, weights)


HEALTHY = (resumed, fine_tuned, copied_by_hand, statistics_made_anew, statistics_filled_by_hand,
           statistics_of_a_layer_of_its_own, new_head, teacher, best_by_copy, target_network, average_saved_too,
           data_file, looked_at, live_view)  # fmt: skip


@pytest.mark.parametrize("program", FAULTY, ids=lambda p: p.__name__)
def test_a_state_that_does_not_arrive_is_named_at_its_line(program, watching, files):
    with watching(StateProbe) as seen:
        program(*files)
    loud = [f for f in seen.findings if f.severity.rank >= 2]
    assert [(f.rule, f.measured["kind"]) for f in loud] == [FAULTY[program]]
    assert loud[0].where.file == __file__
    assert loud[0].where.line is not None


@pytest.mark.parametrize("program", HEALTHY, ids=lambda p: p.__name__)
def test_what_is_meant_is_left_alone(program, watching, files):
    with watching(StateProbe) as seen:
        program(*files)
    assert seen.loud == []


def test_files_of_other_things_and_odd_states(watching, tmp_path):
    with watching(StateProbe) as seen:
        torch.save([1, "two", {3: 4}], tmp_path / "odd.pt")
        torch.load(tmp_path / "odd.pt")
        torch.save({}, tmp_path / "empty.pt")
        net().load_state_dict(torch.load(tmp_path / "empty.pt"), strict=False)
        with pytest.raises(RuntimeError, match="Missing key"):
            net().load_state_dict({"a": torch.ones(2)})
        with pytest.raises(FileNotFoundError):
            torch.load(tmp_path / "none.pt")
    assert seen.rules == []


def test_what_was_read_is_not_kept_alive(watching, files):
    import gc
    import weakref

    with watching(StateProbe):
        state = torch.load(files[1])
        tensor = weakref.ref(next(iter(state.values())).untyped_storage())
        del state
        gc.collect()
        assert tensor() is None
