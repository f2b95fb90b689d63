"""Between two looks of a settled training the probes are not called; nothing that matters goes unseen for that."""

from __future__ import annotations

from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest

pytest.importorskip("torch")

import torch

from traindx_tools.finding import Finding
from traindx_tools.on_torch.attachment import Attachment
from traindx_tools.on_torch.measures.cadence import SETTLED, SPARSER, Cadence
from traindx_tools.on_torch.moments import Moments
from traindx_tools.on_torch.probe import Scene, TorchProbe
from traindx_tools.on_torch.probes.gradients import GradientProbe
from traindx_tools.on_torch.probes.updates import UpdateProbe
from traindx_tools.on_torch.registry import probes_for


class Notes:
    """A recorder that keeps all."""

    rank = 0

    def __init__(self) -> None:
        self.rows: list[tuple[int, dict[str, float]]] = []
        self.findings: list[Finding] = []

    def metrics(self, step: int, values: dict[str, float]) -> None:
        self.rows.append((step, dict(values)))

    def finding(self, finding: Finding) -> None:
        self.findings.append(finding)

    def steps_of(self, name: str) -> list[int]:
        return [step for step, values in self.rows if name in values]


class Training:
    """A small model under these probes (kinds, or the name of a set); `rate(step)` is its learning rate."""

    def __init__(self, probes: Any, **options: Any) -> None:
        torch.manual_seed(0)
        self.notes = Notes()
        self.scene = Scene(self.notes, options=options)  # type: ignore[arg-type]
        made = probes_for(self.scene, [probes]) if isinstance(probes, str) else [kind(self.scene) for kind in probes]
        self.probes, self.moments = made, Moments(made, self.scene)
        session = SimpleNamespace(asleep=False, at_step=[], note_files=lambda: None)
        self.attachment = Attachment(self.scene, self.moments, session)  # type: ignore[arg-type]
        self.model = torch.nn.Linear(4, 2)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=1e-3)
        self.x = torch.randn(8, 4)

    def __enter__(self) -> Training:
        self.attachment.patch()
        return self

    def __exit__(self, *_: object) -> None:
        self.attachment.unpatch()

    def step(self, factor: float = 1.0) -> None:
        self.optimizer.zero_grad()
        (self.model(self.x).square().mean() * factor).backward()
        self.optimizer.step()

    def settle(self) -> None:
        while self.scene.step < SETTLED:
            self.step()


class Spy(TorchProbe):
    """Notes the moments with the step; looks each hundredth step."""

    name = "spy"

    def __init__(self, scene: Scene) -> None:
        super().__init__(scene)
        self.told: list[tuple[str, int]] = []

    def next_look(self) -> int:
        return -(-self.scene.step // 100) * 100

    def before_forward(self, model: Any, args: Any, kwargs: Any) -> None:
        self.told.append(("evaluation" if not torch.is_grad_enabled() else "forward", self.scene.step))

    def before_backward(self, loss: Any) -> None:
        self.told.append(("backward", self.scene.step))

    def after_step(self, optimizer: Any) -> None:
        self.told.append(("stepped", self.scene.step))

    def optimizer_found(self, optimizer: Any) -> None:
        self.told.append(("optimizer", self.scene.step))

    def since(self, step: int) -> list[tuple[str, int]]:
        return [(m, s) for m, s in self.told if s >= step]


@pytest.mark.parametrize("cadence", [
    Cadence(12, 25), Cadence(12, 25, thins=True), Cadence(0, 7), Cadence(4, 50, thins=True),
    Cadence(600, 30, thins=True), Cadence(0, 1, thins=True)])  # fmt: skip
def test_the_next_measured_step_is_the_first_that_is_due(cadence: Cadence) -> None:
    for step in (*range(120), *range(SETTLED - 60, SETTLED + 60), 3 * SETTLED + 1):
        assert cadence.next_due(step) == next(s for s in range(step, step + 1000) if cadence.due(s))


def test_a_resting_probe_is_told_one_whole_step_in_a_hundred() -> None:
    with Training([Spy]) as run:
        for _ in range(SETTLED + 250):
            run.step()
    spy = run.probes[0]
    assert isinstance(spy, Spy)
    assert len([1 for m, s in spy.told if m == "forward" and s < SETTLED]) == SETTLED
    assert spy.since(SETTLED + 20) == [
        told for s in (SETTLED + 100, SETTLED + 200) for told in (("forward", s), ("backward", s), ("stepped", s + 1))]


def test_evaluations_are_never_kept_from_it() -> None:
    with Training([Spy]) as run:
        run.settle()
        for _ in range(30):
            run.step()
        with torch.no_grad():
            run.model(run.x)
        run.step()
        run.step()
    spy = run.probes[0]
    assert isinstance(spy, Spy)
    assert spy.since(SETTLED + 20) == [("evaluation", SETTLED + 30), ("forward", SETTLED + 30),
                                      ("backward", SETTLED + 30), ("stepped", SETTLED + 31)]


def test_with_two_optimizers_nobody_rests() -> None:
    with Training([Spy]) as run:
        run.settle()
        for _ in range(30):
            run.step()
        second = torch.optim.SGD([torch.nn.Parameter(torch.ones(1))], lr=0.1)
        second.param_groups[0]["params"][0].grad = torch.ones(1)
        second.step()
        begin = run.scene.step
        for _ in range(40):
            run.step()
    spy = run.probes[0]
    assert isinstance(spy, Spy)
    assert ("optimizer", begin) in spy.told
    assert len([1 for m, _ in spy.since(begin + 1) if m == "forward"]) == 39


@pytest.mark.slow
def test_a_value_that_is_not_finite_is_seen_between_two_looks() -> None:
    with Training("always") as run:
        run.settle()
        for _ in range(30):
            run.step()
        run.step(float("nan"))
        run.step()
    found = next(f for f in run.notes.findings if f.rule == "T102")
    assert found.where.step == SETTLED + 31


@pytest.mark.slow
def test_what_is_recorded_keeps_its_interval_and_the_true_step() -> None:
    with Training("always") as run:
        for _ in range(SETTLED + 420):
            run.step()
    late = [s for s in run.notes.steps_of("grad_norm") if s > SETTLED]
    assert late == [s + 1 for s in range(SETTLED, SETTLED + 420, 25 * SPARSER)]
    assert [s for s in run.notes.steps_of("update_ratio") if s > SETTLED] == [
        s + 1 for s in range(SETTLED, SETTLED + 420) if s % (50 * SPARSER) == 0]
    assert run.notes.steps_of("loss") == list(range(1, SETTLED + 420))
    assert [s for s in run.notes.steps_of("memory") if s > SETTLED] == [*range(SETTLED + 12, SETTLED + 13),
                                                                        *range(SETTLED + 50, SETTLED + 420, 50)]


@pytest.mark.slow
def test_terms_of_the_loss_are_looked_at_each_hundredth_step() -> None:
    with Training("always") as run:
        while run.scene.step < SETTLED + 320:
            run.optimizer.zero_grad()
            out = run.model(run.x)
            fit = out.square().mean()
            decay = run.model.weight.square().sum()
            loss = fit + 0.1 * decay
            loss.backward()
            run.optimizer.step()
    assert [s for s in run.notes.steps_of("loss/decay") if s > SETTLED] == [SETTLED + 100, SETTLED + 200, SETTLED + 300]


def test_an_interval_of_one_is_kept_and_two_steps_in_a_row_are_two() -> None:
    with Training([GradientProbe, UpdateProbe], gradients_every=1, updates_every=1) as run:
        for _ in range(SETTLED + 30):
            run.step()
    assert run.notes.steps_of("grad_norm") == list(range(1, SETTLED + 31))
    assert run.notes.steps_of("update_ratio") == list(range(1, SETTLED + 31))


def test_a_probe_that_cannot_say_when_it_looks_next_is_switched_off(capsys: pytest.CaptureFixture[str],
                                                                    monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("traindx_tools.live.notice._said", [])  # a process says so many lines and then none

    class Broken(Spy):
        name = "broken"

        def next_look(self) -> int:
            raise RuntimeError("no idea")

    with Training([Broken, Spy]) as run:
        run.settle()
        for _ in range(20):
            run.step()
    assert [type(p).__name__ for p in run.moments.probes] == ["Spy"]
    assert "the probe broken is off" in capsys.readouterr().err
    assert run.scene.step == SETTLED + 20


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
