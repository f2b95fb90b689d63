"""Where a step's time goes: loaders that are waited for, recompilations, stragglers, reads of device values."""

from __future__ import annotations

import warnings
from itertools import count

import pytest

torch = pytest.importorskip("torch")

from traindx_tools.on_torch.probe import Scene  # noqa: E402
from traindx_tools.on_torch.probes import speed as speed_probes  # noqa: E402
from traindx_tools.on_torch.rules import (  # noqa: E402
    t851_waiting_for_data,
    t852_host_synchronisation,
    t853_recompilations,
    t854_straggling_steps,
)
from traindx_tools.on_torch.speed.clock import KEPT, StepClock  # noqa: E402
from traindx_tools.on_torch.speed.compilations import Recompiled, recompilations  # noqa: E402


class Notes:
    rank = 0

    def __init__(self):
        self.findings, self.numbers = [], []

    def metrics(self, step, values):
        self.numbers.append((step, dict(values)))

    def finding(self, finding):
        self.findings.append(finding)


def scene():
    model = torch.nn.Linear(4, 1)
    return Scene(Notes(), models=[model], optimizers=[torch.optim.SGD(model.parameters(), 0.1)])


def judged(seconds, waits):
    steps = list(range(11, 11 + len(seconds)))
    return list(t851_waiting_for_data.check(steps, seconds, waits, "test", 0))


def test_a_loader_that_takes_most_of_each_step_is_named_with_its_share():
    (finding,) = judged([0.1] * 60, [0.08] * 60)
    assert finding.measured["share"] == pytest.approx(0.8)
    assert "80%" in finding.statement


def test_workers_that_keep_up_tiny_models_and_short_runs_are_left_alone():
    assert judged([0.1] * 60, [0.002] * 60) == []
    assert judged([0.0004] * 60, [0.0003] * 60) == []
    assert judged([0.1] * 5, [0.09] * 5) == []
    assert judged([0.1] * 60, [0.0] * 60) == []
    assert judged([0.1] * 60 + [9.0], [0.001] * 60 + [8.9]) == []  # the first batch of an epoch starts the workers


def test_the_clock_keeps_a_bounded_window_and_the_wait_of_each_step():
    clock = StepClock()
    for step in range(KEPT + 50):
        clock.waited(0.25)
        clock.waited(0.25)
        clock.stepped(step, float(step))
    steps, seconds, waits = clock.arrays(skip=10)
    assert len(steps) == KEPT
    assert set(seconds) == {1.0}
    assert set(waits) == {0.5}


def test_a_slow_dataset_is_seen_through_the_probe(monkeypatch):
    torch._dynamo.utils.clear_compilation_metrics()  # of other tests in this process
    now = count()
    times = iter(float(n) for n in now)
    monkeypatch.setattr(speed_probes.time, "perf_counter", lambda: next(times))
    here = scene()
    probe = speed_probes.SpeedProbe(here)
    for _ in torch.utils.data.DataLoader(list(range(80))):
        here.step += 1
        probe.after_step(here.optimizers[0])
    assert [f.rule for f in probe.finish()] == ["T851"]  # by this clock the loader takes 1 s of every 3
    assert here.recorder.numbers[0][1] == {"step_time": 3.0, "data_time": 1.0}


def test_stragglers_at_random_are_a_finding_and_planned_ones_a_remark():
    def found(slow):
        seconds = [0.01] * 200
        for i in slow:
            seconds[i] = 0.5
        return list(t854_straggling_steps.check(list(range(200)), seconds, "test", 0))

    (random,) = found([13, 60, 71, 150])
    (planned,) = found([0, 50, 100, 150])
    assert (random.severity.value, planned.severity.value) == ("low", "info")
    assert "every 50 steps" in planned.statement
    assert found([13]) == []
    assert found([]) == []
    assert found(list(range(0, 200, 3))) != []
    assert found(sorted({i * i % 200 for i in range(60)})) == []  # too many to be single ones


def test_jolts_of_a_shared_machine_on_toy_steps_are_no_finding():
    seconds = [0.0021] * 1190
    for i in range(0, 1190, 7):
        seconds[i + i % 5] = 0.0135
    assert list(t854_straggling_steps.check(list(range(1190)), seconds, "test", 0)) == []


@pytest.mark.parametrize("on_device", [True, False])
def test_a_wait_is_a_remark_and_only_an_accelerator_idles(on_device):
    (found,) = t851_waiting_for_data.check(list(range(50)), [0.1] * 50, [0.06] * 50, "test", 0, on_device)
    assert found.severity.value == "low"
    assert ("idle" in found.statement) is on_device


def test_a_toys_loader_is_not_worth_a_word():
    steps, waits = [0.0021] * 200, [0.0007, 0.0007, 0.0007, 0.02] * 50
    assert list(t851_waiting_for_data.check(list(range(200)), steps, waits, "test", 0)) == []


@pytest.mark.parametrize(("usual", "slow", "steps"), [(0.0005, 0.5, 200), (0.003, 0.05, 200), (0.01, 0.5, 40)])
def test_jolts_of_a_tiny_loop_are_no_finding(usual, slow, steps):
    seconds = [usual] * steps
    for i in (3, 12, 31, 38):
        seconds[i] = slow
    assert list(t854_straggling_steps.check(list(range(steps)), seconds, "test", 0)) == []


def test_a_number_that_changes_each_step_is_named_as_the_guard():
    def scaled(x, factor):
        return x * factor + 1

    torch._dynamo.reset()
    torch._dynamo.utils.clear_compilation_metrics()
    compiled = torch.compile(scaled, backend="eager", dynamic=False)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for step in range(5):
            compiled(torch.ones(2), 1.0 + step)
    (one,) = recompilations()
    assert (one.function, one.file, one.times) == ("scaled", __file__, 4)
    assert one.guard.startswith("factor ==")
    (finding,) = t853_recompilations.check((one,), 5, "test", 0)
    assert finding.where.line == one.line
    torch._dynamo.reset()
    torch._dynamo.utils.clear_compilation_metrics()
    assert recompilations() == ()


def test_two_variants_are_usual_and_the_limit_is_not():
    usual = Recompiled("step", "train.py", 3, 2, "grad mode", False)
    given_up = Recompiled("step", "train.py", 3, 2, "s == 4.0", True)
    assert list(t853_recompilations.check((usual,), 9, "test", 0)) == []
    assert next(t853_recompilations.check((given_up,), 9, "test", 0)).severity.value == "high"


def training(read):
    here = scene()
    probe = speed_probes.SynchronisationProbe(here)
    model, optimizer = here.models[0], here.optimizers[0]
    for _ in range(14):
        loss = model(torch.ones(2, 4)).sum()
        optimizer.zero_grad()
        loss.backward()
        read(loss, model)
        optimizer.step()
        here.step += 1
        probe.after_step(optimizer)
    assert list(probe.finish()) == []
    return here.recorder.findings


def test_lines_that_read_values_are_named_by_the_users_line():
    def read(loss, model):
        for p in model.parameters():
            float(p.grad.norm())
        if loss.abs() >= 0:
            loss.item()

    (finding,) = training(read)
    assert finding.rule == "T852"
    assert finding.measured["per_step"] == 4
    assert finding.where.file == __file__
    assert finding.severity.value == "info"  # a CPU: nothing is waited for


def test_a_program_that_compiles_is_not_traced():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        torch.compile(lambda x: x + 1, backend="eager")(torch.ones(2))
    assert training(lambda loss, _: [loss.item() for _ in range(5)]) == []
    torch._dynamo.reset()


def test_one_read_a_step_is_left_alone_and_the_device_decides_the_severity():
    assert training(lambda loss, _: loss.item()) == []
    lines = {("train.py", 7): ("a number", 5)}
    assert next(t852_host_synchronisation.check(lines, True, 3, "test", 0)).severity.value == "low"
