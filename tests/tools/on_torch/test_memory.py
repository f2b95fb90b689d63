"""What keeps memory: planted leaks are named by their variable; usual programs are left alone."""

from __future__ import annotations

import functools
from collections import deque
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.memory import memory_breakdown, take_census  # noqa: E402
from traindx_tools.on_torch.memory.saved import saved_activations  # noqa: E402
from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes import memory as memory_probe  # noqa: E402
from traindx_tools.on_torch.probes.memory import MemoryProbe  # noqa: E402
from traindx_tools.on_torch.rules import t804_out_of_memory, t805_fragmentation  # noqa: E402
from traindx_tools.on_variables.filling import line_that_fills  # noqa: E402

STEPS = 40


@pytest.fixture(autouse=True)
def time_enough(monkeypatch):
    """A test process holds far more than a training program, on a machine that does other things."""
    monkeypatch.setattr(memory_probe, "FREE_SECONDS", 600.0)
    monkeypatch.setattr(memory_probe, "take_census", lambda: take_census(60.0))


HISTORY: list[object] = []
BY_STEP: dict[int, object] = {}


class Notes:
    """A recorder that keeps what it is given."""

    rank = 0

    def __init__(self):
        self.findings, self.numbers = [], []

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        self.findings.append(finding)

    def withdraw(self, rule, key, value):
        self.findings = [f for f in self.findings if (f.rule, f.measured.get(key)) != (rule, value)]


class Training:
    """A small training whose probe is driven by hand; `each` is called with the loss and the output of each step."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
        self.optimizer = torch.optim.SGD(self.model.parameters(), 0.01)
        self.notes = Notes()
        self.scene = Scene(self.notes, models=[self.model], optimizers=[self.optimizer])
        self.probe = MemoryProbe(self.scene)

    def run(self, each, steps=STEPS, *, retain=False):
        for _ in range(steps):
            output = self.model(torch.randn(4, 8))
            loss = output.square().mean()
            self.optimizer.zero_grad()
            loss.backward(retain_graph=retain)
            each(loss, output)
            self.optimizer.step()
            self.scene.step += 1
            self.probe.after_step(self.optimizer)
        return self.notes.findings


class Ring:
    """A replay buffer: it fills up to its size and then overwrites the oldest."""

    def __init__(self, size):
        self.items, self.size, self.at = [], size, 0

    def push(self, item):
        if len(self.items) < self.size:
            self.items.append(item)
        self.items[self.at % self.size] = item
        self.at += 1


class Meter:
    def __init__(self):
        self.seen = []

    def update(self, value):
        self.seen.append(value)  # line of the meter


def variables(findings, rule="T801"):
    return [f.measured["variable"] for f in findings if f.rule == rule]


class Tracker:
    def __init__(self):
        self.values = []
        self.total = 0.0


class Slotted:
    __slots__ = ("kept",)

    def __init__(self):
        self.kept = []


def kept_in_a_local_list():
    losses = []
    found = Training().run(lambda loss, _: losses.append(loss))  # line of the leak
    return found, "losses"


def kept_in_an_attribute():
    tracker = Tracker()
    found = Training().run(lambda loss, _: tracker.values.append(loss))
    return found, "tracker.values"


def summed_without_item():
    tracker = Tracker()

    def add(loss, _):
        tracker.total = tracker.total + loss

    found = Training().run(add)
    return found, "tracker.total"


def kept_in_a_dict_by_step():
    BY_STEP.clear()
    found = Training().run(lambda loss, _: BY_STEP.update({len(BY_STEP): {"loss": loss}}))
    return found, "BY_STEP"


def kept_in_a_global():
    HISTORY.clear()
    found = Training().run(lambda loss, _: HISTORY.append((loss, "train")))
    return found, "HISTORY"


def kept_in_a_deque_without_bound():
    window = deque()
    found = Training().run(lambda _, output: window.append(output))
    return found, "window"


def kept_in_slots():
    slotted = Slotted()
    found = Training().run(lambda loss, _: slotted.kept.append(loss))
    return found, "slotted.kept"


def kept_by_a_cache():
    @functools.cache
    def scaled(loss):
        return loss * 2

    found = Training().run(lambda loss, _: scaled(loss))
    return found, "scaled"


def kept_in_a_default_argument():
    def remember(loss, _, seen=[]):  # noqa: B006 - the fault that is planted
        seen.append(loss)

    found = Training().run(remember)
    return found, "(default)"


def carried_state_never_detached():
    tracker = Tracker()

    def carry(_, output):
        tracker.total = torch.tanh(output.mean() + tracker.total)

    found = Training().run(carry, retain=True)
    return found, "tracker.total"


LEAKS = [kept_in_a_local_list, kept_in_an_attribute, summed_without_item, kept_in_a_dict_by_step, kept_in_a_global,
         kept_in_a_deque_without_bound, kept_in_slots, kept_by_a_cache, kept_in_a_default_argument,
         carried_state_never_detached]


@pytest.mark.slow
@pytest.mark.parametrize("leak", LEAKS, ids=lambda f: f.__name__)
def test_the_variable_that_keeps_graphs_is_named(leak):
    found, name = leak()
    assert name in variables(found)[0]
    first = next(f for f in found if f.rule == "T801")
    assert first.where.file == __file__
    if leak is kept_in_a_local_list:
        assert "# line of the leak" in Path(__file__).read_text().splitlines()[first.where.line - 1]
    assert first.bearing.value == "cause"


@pytest.mark.slow
def test_numbers_windows_and_detached_values_are_left_alone():
    floats, window, detached, best = [], deque(maxlen=3), [], {}

    def each(loss, output):
        floats.append(loss.item())
        window.append(loss)
        detached.append(loss.detach())
        best["output"] = output

    assert Training().run(each) == []


@pytest.mark.slow
@pytest.mark.parametrize("kept", ["loss", "tensor"])
def test_what_is_bounded_or_cleared_is_no_leak(kept):
    window, ring, epoch = deque(maxlen=1000), Ring(20), []

    def each(loss, output):
        item = loss if kept == "loss" else torch.zeros(512, 1024)
        ring.push(item)
        window.append(item if kept == "loss" else None)
        if len(epoch) == 24:
            epoch.clear()
        epoch.append(item)

    assert Training().run(each, steps=70) == []


@pytest.mark.slow
def test_the_line_that_stores_is_named_and_not_the_one_that_calls_backward():
    meter = Meter()
    found = Training().run(lambda loss, _: meter.update(loss))
    first = next(f for f in found if f.rule == "T801")
    assert "# line of the meter" in Path(__file__).read_text().splitlines()[first.where.line - 1]


@pytest.mark.slow
def test_the_line_lies_in_the_file_of_the_class(tmp_path, monkeypatch):
    (tmp_path / "meters_of_another_file.py").write_text(
        "class Kept:\n    def __init__(self):\n        self.inside = []\n\n    def take(self, value):\n"
        "        self.inside.append(value)\n")
    monkeypatch.syspath_prepend(tmp_path)
    from meters_of_another_file import Kept

    kept = Kept()
    found = Training().run(lambda loss, _: kept.take(loss))
    first = next(f for f in found if f.rule == "T801")
    assert (Path(first.where.file).name, first.where.line) == ("meters_of_another_file.py", 6)


@pytest.mark.parametrize(("source", "line"), [
    ("def main():\n    out, state = net(x, state)\n    state.backward()\n", 2),
    ("def main():\n    loss.backward()\n    total = total + loss\n", 3),
    ("def main():\n    loss.backward()\n    print(loss)\n", None),
])
def test_a_line_that_only_uses_it_is_none(tmp_path, source, line):
    file = tmp_path / "train.py"
    file.write_text(source)
    variable = "state" if "state" in source else "total" if "total" in source else "loss"
    assert line_that_fills(str(file), "main", variable) == line


@pytest.mark.slow
def test_a_sequence_that_is_longer_now_and_then_is_no_leak():
    training, lengths, kept = Training(), iter([3, 5, 4, 9, 6] * 10), {}

    def unrolled(_, output):
        value = output.mean()
        for _ in range(next(lengths)):
            value = torch.tanh(value)
        kept["last"] = value

    assert training.run(unrolled) == []


@pytest.mark.slow
def test_batches_kept_without_a_graph_are_named_with_their_rate():
    batches = []
    found = Training().run(lambda *_: batches.append(torch.zeros(512, 1024)))
    assert next(f.rule for f in found if f.rule.startswith("T80")) == "T802"
    assert "batches" in variables(found, "T802")[0]
    assert next(f for f in found if f.rule == "T802").measured["bytes_per_step"] == pytest.approx(2**21, rel=0.1)


@pytest.mark.slow
def test_hooks_registered_each_step_are_counted_and_those_registered_once_are_not():
    training = Training()
    training.model[0].register_forward_hook(lambda *_: None)
    assert training.run(lambda *_: None) == []
    training = Training()
    found = training.run(lambda *_: training.model[2].register_forward_hook(lambda *_: None))
    assert found[0].rule == "T803"
    assert found[0].where.module == "2"
    assert found[0].measured["per_step"] == pytest.approx(1.0)


def test_the_walk_is_bounded_and_calls_no_code_of_the_objects():
    class Hostile:
        def __getattr__(self, name):
            raise RuntimeError("an attribute was asked for")

        def __len__(self):
            raise RuntimeError("a length was asked for")

    hostile, endless = Hostile(), []
    endless.append(endless)
    many = [[i] for i in range(50_000)]
    census = take_census(60.0)
    assert census.complete
    assert hostile is not None
    assert len(many) == 50_000


def test_the_breakdown_counts_each_storage_once():
    model = torch.nn.Sequential(torch.nn.Embedding(100, 8), torch.nn.Linear(8, 100, bias=False))
    model[1].weight = model[0].weight
    optimizer = torch.optim.Adam(model.parameters())
    model(torch.zeros(2, dtype=torch.long)).sum().backward()
    optimizer.step()
    seen = memory_breakdown([model], [optimizer])
    assert seen.parameters == 100 * 8 * 4
    assert seen.gradients == 100 * 8 * 4
    assert seen.optimizer >= 2 * 100 * 8 * 4
    assert seen.by_module == {"0": 3200}


def test_saved_activations_are_counted_by_module_and_change_nothing():
    model = torch.nn.Sequential(torch.nn.Linear(64, 256), torch.nn.GELU(), torch.nn.Linear(256, 4))
    data = torch.randn(32, 64)
    model(data).sum().backward()
    plain = [p.grad.clone() for p in model.parameters()]
    model.zero_grad()
    with saved_activations(model) as saved:
        out = model(data)
    out.sum().backward()
    assert all(torch.equal(a, p.grad) for a, p in zip(plain, model.parameters(), strict=True))
    assert saved.by_module["1"] == 32 * 256 * 4
    assert saved.total == saved.by_module["0"] + saved.by_module["1"] + saved.by_module["2"]


def test_out_of_memory_is_explained_and_other_errors_are_not():
    training = Training()
    training.run(lambda *_: None, steps=2)
    error = RuntimeError("[enforce fail at alloc_cpu.cpp:117] DefaultCPUAllocator: can't allocate memory: you tried")
    found = list(training.probe.failed(error))
    assert [f.rule for f in found] == ["T804"]
    assert "parameters" in found[0].statement
    assert list(training.probe.failed(RuntimeError("shape mismatch"))) == []


def test_kinds_of_out_of_memory_are_told_apart():
    small = memory_breakdown([torch.nn.Linear(4, 4)])
    from dataclasses import replace

    fixed = replace(small, parameters=900, allocated=1000, reserved=1000, peak=1000)
    activations = replace(small, parameters=100, allocated=1000, reserved=1000, peak=1000)
    grew = {50 * i: 100.0 * i for i in range(1, 7)}

    def kind(breakdown, history):
        (finding,) = t804_out_of_memory.check("CUDA out of memory", breakdown, 3, history, "", "test", 0)
        return finding.measured["kind"]

    assert kind(fixed, {}) == "fixed"
    assert kind(activations, {50: 100.0, 100: 101.0}) == "activations"
    assert kind(activations, grew) == "grew"
    assert kind(small, {}) == "unknown"


def test_idle_reserved_memory_is_fragmentation_only_where_it_is_much():
    from dataclasses import replace

    gib = 2**30
    breakdown = memory_breakdown([torch.nn.Linear(4, 4)])
    assert list(t805_fragmentation.check(breakdown, 1, "test", 0)) == []
    apart = replace(breakdown, allocated=40 * gib, reserved=75 * gib, peak=70 * gib)
    close = replace(breakdown, allocated=74 * gib, reserved=75 * gib, peak=75 * gib)
    assert [f.rule for f in t805_fragmentation.check(apart, 1, "test", 0)] == ["T805"]
    assert list(t805_fragmentation.check(close, 1, "test", 0)) == []


@pytest.mark.slow
def test_hooks_registered_once_an_epoch_pile_up_and_those_that_are_removed_do_not():
    training, kept = Training(), []

    def validated(*_):
        if training.scene.step % 10 == 9:
            kept.append(training.model[2].register_forward_hook(lambda *_: None))

    (found, *_) = training.run(validated, steps=70)
    assert (found.rule, found.where.module) == ("T803", "2")
    training = Training()

    def removed(*_):
        if training.scene.step % 10 == 9:
            training.model[2].register_forward_hook(lambda *_: None).remove()

    assert training.run(removed, steps=70) == []
