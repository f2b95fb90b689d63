"""Experiments that decide a diagnosis: what is tried, what a verdict does to the hypotheses, when it ends."""

from __future__ import annotations

import re
import wave
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pytest

from traindx.by_setting import settings_in
from traindx.decidable import arranged
from traindx.diagnose import Report, diagnose
from traindx.joining import joined
from traindx.proving import (
    MOST_EXPERIMENTS,
    MOST_VAIN,
    Planned,
    fitting_decisions,
    has_own,
    own_decisions,
    proven,
    with_experiments,
)
from traindx_tools.catalog.experiment_entries import experiment_entries
from traindx_tools.experiments.budget import Budget
from traindx_tools.experiments.change import Change
from traindx_tools.experiments.experiment import Engine
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.place import Enough, Prepared
from traindx_tools.experiments.screening.arms import Arm
from traindx_tools.experiments.trace import LIVE, Applied, Curve, Trace
from traindx_tools.finding import Bearing, Finding, Location, Severity

PROGRAM = """
import torch
from torch.optim.lr_scheduler import OneCycleLR
model = torch.nn.Linear(8, 1)
opt = torch.optim.SGD(model.parameters(), lr=1.6)
for step in range(400):
    loss = (model(torch.randn(32, 8)) ** 2).mean()
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f}")
"""


@dataclass
class Scripted:
    """A place where the run becomes NaN at step 5, but for runs with one of these changes."""

    cures: Sequence[str] = ()
    workspace: Path = Path()
    fingerprint: str = ""
    runs: list[str] = field(default_factory=list)
    sick: bool = True

    def run(self, prepared: Prepared, enough: Enough, *, seconds: float) -> Trace:
        change = next((c for c in prepared.inside if c.name != "seed"), Change())
        self.runs.append(str(change))
        well = change.name in self.cures or not self.sick
        values = np.linspace(2.0, 1.0, 60) if well else np.array([2.0, 9.0, 80.0, 6e3, np.nan] + [np.nan] * 55)
        curve = Curve(np.arange(1.0, 61.0), values)
        applied = {} if change.is_control else {str(change): Applied(60, "train.py:5")}
        return Trace(Path(), {f"{LIVE}loss": curve}, ended=True, exit_code=0, seconds=1.0, changes=applied)


def prepared(change: Change, seed: int) -> Prepared:
    changes = [c for c in (change, Change("seed", {"by": seed}) if seed else Change()) if not c.is_control]
    return Prepared("python train.py", inside=tuple(changes))


@pytest.fixture(autouse=True)
def _no_pictures(monkeypatch: pytest.MonkeyPatch) -> None:
    """Half of the time; `test_records.py` draws them."""
    monkeypatch.setattr("traindx_tools.experiments.picture.draw_experiment", lambda result, out: None)


@pytest.fixture
def report(tmp_path: Path) -> Report:
    """A run that diverges, with its code: a suspicion and no proof."""
    (tmp_path / "train.py").write_text(PROGRAM)
    rows = [f"step {i} loss {2.0 * 1.6 ** i:.4f}" for i in range(30)] + [f"step {i} loss nan" for i in range(30, 60)]
    (tmp_path / "train.log").write_text("\n".join(rows))
    return diagnose([tmp_path], symptom="the loss explodes and becomes nan, is the learning rate too high?")


def planned(report: Report, place: Scripted, folder: Path, seconds: float = 100.0) -> Planned:
    return Planned(report, Engine(place, prepared), Outcome("nonfinite"), Budget(seconds), folder, 1.0, lambda _: None,
                   "python train.py", folder)


def confidence(report: Report, mode: str) -> float:
    return next((h.confidence for h in report.seen.verdict.hypotheses if h.mode.id == mode and h.speaks_for), 0.0)


def test_a_change_that_takes_the_symptom_away_raises_what_it_decides(report: Report, tmp_path: Path) -> None:
    place = Scripted(("learning-rate",))
    after = planned(report, place, tmp_path / "x").done()
    assert "learning-rate:times=0.1" in place.runs
    assert confidence(after, "lr.too-high") > confidence(report, "lr.too-high")
    first = after.seen.verdict.hypotheses[0]
    assert any(w.finding.rule == "X101" for w in first.speaks_for)
    said = next(f.statement for f in after.seen.findings if f.rule == "X101")
    assert "learning-rate:times=0.1 (each step with so many times its learning rate) removes the symptom" in said


def test_the_run_that_was_made_first_is_the_first_control(report: Report, tmp_path: Path) -> None:
    place = Scripted(("learning-rate",))
    own = place.run(prepared(Change(), 0), lambda _: False, seconds=9.0)
    place.runs.clear()
    engine = Engine(place, prepared, control=own)
    Planned(report, engine, Outcome("nonfinite"), Budget(100.0), tmp_path / "x", 1.0, lambda _: None,
            "python train.py", tmp_path).done()
    assert place.runs[0] != "control"
    assert place.runs.count("control") == 2, "two placebos of the change that helps"


def test_two_changes_that_are_no_better_end_it(report: Report, tmp_path: Path) -> None:
    place = Scripted()
    after = planned(report, place, tmp_path / "x", seconds=10_000.0).done()
    assert len({r for r in place.runs if r != "control"}) == MOST_VAIN
    assert "did not take the symptom away" in after.remarks[-1]


def test_a_change_without_effect_speaks_against_what_it_decides(report: Report, tmp_path: Path) -> None:
    after = planned(report, Scripted(), tmp_path / "x").done()
    assert confidence(report, "lr.too-high") > 0.0
    assert confidence(after, "lr.too-high") < confidence(report, "lr.too-high")
    idle = [f for f in after.seen.findings if f.rule == "X103"]
    assert any("lr.too-high" in str(f.measured["decides"]) for f in idle)
    assert not after.seen.verdict.causes


def test_with_time_for_it_every_setting_is_changed(report: Report, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(PROGRAM + "\nimport yaml\ncfg = yaml.safe_load(open('run.yaml'))\n")
    (tmp_path / "run.yaml").write_text("scale: 3.0\ndepth: 2\nbias: true\n")
    place = Scripted(("set",))

    def prepare(change: Change, seed: int) -> Prepared:
        made = prepared(change, seed)
        cures = change.name == "set" and "run.yaml:scale" in change.options
        return made if cures or change.name != "set" else Prepared(made.command, inside=(
            Change("other", change.options),))

    engine = Engine(place, prepare)
    after = Planned(report, engine, Outcome("nonfinite"), Budget(10_000.0), tmp_path / "x", 1.0, lambda _: None,
                    "python train.py", tmp_path).done()
    found = [f for f in after.seen.findings if f.rule == "X105"]
    assert [f.measured["setting"] for f in found] == ["run.yaml:scale"] * len(found)
    assert found
    carries = next(h for h in after.seen.verdict.hypotheses if h.mode.id == "cfg.value-carries")
    assert any(w.finding.rule == "X101" for w in carries.speaks_for)
    assert after.seen.verdict.hypotheses[0] is carries
    assert "one at a time" in after.remarks[-1]
    assert (tmp_path / "x" / f"{found[0].measured['experiment']}.md").is_file()


def test_a_control_without_the_symptom_ends_it_and_says_so(report: Report, tmp_path: Path) -> None:
    place = Scripted(sick=False)
    after = planned(report, place, tmp_path / "x").done()
    assert set(place.runs) == {"control"}
    assert "The control did not show the symptom" in after.remarks[-1]
    assert confidence(after, "lr.too-high") == confidence(report, "lr.too-high")


def test_it_ends_with_the_budget(report: Report, tmp_path: Path) -> None:
    after = planned(report, Scripted(), tmp_path / "x", seconds=0.5).done()
    assert "The budget of 0 s is spent" in after.remarks[-1]
    assert not [f for f in after.seen.findings if f.rule in ("X101", "X102", "X103")]


def test_what_the_budget_left_out_is_counted_with_its_time_and_the_command(report: Report, tmp_path: Path) -> None:
    after = planned(report, Scripted(), tmp_path / "x", seconds=1.0).done()
    told = after.remarks[-1]
    count, seconds, wanted = map(int, re.findall(
        r"It left out (\d+) more experiments? of about (\d+) s in all: traindx diagnose \S+ --run .* --budget (\d+)",
        told)[0])
    assert 1 <= count <= MOST_EXPERIMENTS
    assert wanted >= seconds
    assert after.extra_checks[-1] in told
    assert after.next_checks[0] == after.extra_checks[-1]


def test_a_budget_that_is_enough_left_nothing_out(report: Report, tmp_path: Path) -> None:
    for cures in ((), ("learning-rate", "schedule-fixed")):
        after = planned(report, Scripted(cures=cures), tmp_path / "x", seconds=10_000.0).done()
        assert "left out" not in after.remarks[-1]
        assert not after.extra_checks


def test_the_default_is_a_minute_for_a_short_run_and_never_screens(
        report: Report, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[Planned] = []
    monkeypatch.setattr(Planned, "done", lambda self: (made.append(self), self.report)[1])
    for seconds, budget, asked in ((1.0, None, 60.0), (30.0, None, 150.0), (1000.0, None, 300.0), (1.0, 7.0, 7.0)):
        with_experiments(report, "true", tmp_path, tmp_path / "x", seconds, budget)
        assert made[-1].purse.seconds == asked
        assert made[-1].screens == (budget is not None)


def test_no_more_than_a_few_are_made(report: Report, tmp_path: Path) -> None:
    place = Scripted()
    after = planned(report, place, tmp_path / "x", seconds=10_000.0).done()
    tried = {r for r in place.runs if r != "control"}
    assert len(tried) <= MOST_EXPERIMENTS
    assert len([f for f in after.seen.findings if f.rule[0] == "X"]) == len(tried)


def test_what_needs_something_that_the_code_does_not_hold_is_not_tried(report: Report) -> None:
    names = {d.change.name for d in fitting_decisions(report)}
    assert {"learning-rate", "schedule-fixed"} <= names
    assert not names & {"no-dropout", "batch-statistics", "single-process", "no-workers"}


def test_an_error_is_decided_for_what_can_raise_one_alone(report: Report) -> None:
    """Rows in order make no loss better, and raise no error: that one is gone with a change says nothing of them."""
    raised = {str(d.change): d.removes for d in fitting_decisions(report, Outcome("error", metric="RuntimeError"))}
    other = {str(d.change): d.removes for d in fitting_decisions(report, Outcome("nonfinite"))}
    assert "data.unshuffled" in other["one-batch:number=0"]
    assert raised["one-batch:number=0"] == {"data.corrupt-sample"}
    assert "shuffle:seed=0" not in raised
    assert "learning-rate:times=0.1" not in raised


def test_an_event_that_the_control_does_not_show_is_not_tried_and_that_is_said(tmp_path: Path) -> None:
    """Seen: three controls of an exit code that the run does not have."""
    (tmp_path / "train.py").write_text(PROGRAM)
    (tmp_path / "train.log").write_text("step 1 no numbers here\n" * 3)
    seen = diagnose([tmp_path], symptom="it crashes")
    ended = Trace(tmp_path, {}, ended=True, exit_code=0, seconds=1.0)
    after = with_experiments(seen, "false", tmp_path, tmp_path / "x", 1.0, control=ended)
    assert "no experiment was made" in after.remarks[-1]
    assert not (tmp_path / "x").exists()


CRASH = """Traceback (most recent call last):
  File "/job/train.py", line 3, in <module>
    plan = made(model)
  File "/job/train.py", line 2, in made
    raise ArithmeticError("no plan for these widths")
ArithmeticError: no plan for these widths
"""


@pytest.mark.parametrize(("curves", "made"), [
    ({}, 0),  # it stops before anything is measured, and hints alone speak for what could be tried
    ({f"{LIVE}loss": Curve(np.arange(1.0, 9.0), np.ones(8))}, 1),  # it had trained for eight steps
])
def test_a_program_that_stops_before_its_first_step_costs_no_experiments(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, curves: dict[str, Curve], made: int) -> None:
    (tmp_path / "train.py").write_text("import torch\n\nmodel = torch.nn.Linear(8, 1)\n")
    (tmp_path / "log.txt").write_text(CRASH)
    seen = diagnose([tmp_path])
    begun: list[Planned] = []

    def done(self: Planned) -> Report:
        begun.append(self)
        return self.report

    monkeypatch.setattr(Planned, "done", done)
    control = Trace(tmp_path, curves, ended=True, exit_code=1, error="ArithmeticError: no plan for these widths")
    after = with_experiments(seen, "false", tmp_path, tmp_path / "x", 1.0, control=control)
    assert len(begun) == made
    assert any("stops before its first step" in r for r in after.remarks) is not bool(made)
    with_experiments(seen, "false", tmp_path, tmp_path / "x", 1.0, budget=60.0, control=control)
    assert len(begun) == made + 1  # who names a budget wants it spent


def test_a_program_of_numpy_gets_no_change_of_torch(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import numpy as np\nprint('step 0 loss', np.zeros(1)[0])\n")
    (tmp_path / "train.log").write_text("\n".join(f"step {i} loss 2.30{i % 3}" for i in range(60)))
    assert not list(fitting_decisions(diagnose([tmp_path], symptom="the loss does not go down")))


def test_a_healthy_run_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join(f"step {i} loss {2 / (1 + i):.4f}" for i in range(60)))
    healthy = diagnose([tmp_path])
    assert healthy.status == "healthy"
    assert with_experiments(healthy, "false", tmp_path, tmp_path / "x", 1.0) is healthy
    assert not proven(healthy)


def test_a_shard_that_is_odd_is_left_out(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    (tmp_path / "data").mkdir()
    for i in range(6):
        y = rng.integers(0, 4, 200)
        x = rng.normal(size=(200, 6)) + np.eye(6)[y] * 4
        np.savez(tmp_path / "data" / f"part_{i}.npz", x=x, y=(y + 1) % 4 if i == 2 else y)
    (tmp_path / "train.log").write_text("\n".join(f"step {i} loss 1.38{i % 7}" for i in range(60)))
    seen = diagnose([tmp_path], symptom="the loss does not go down")
    decisions = list(own_decisions(seen, tmp_path))
    left_out = [d for d in decisions if d.change.name == "files-left-out"]
    assert [str(d.change.options["files"]) for d in left_out] == ["data/part_2.npz"]
    assert all(d.specific for d in left_out)
    assert {"data.shard-labels"} <= {m for d in left_out for m in d.removes}


def test_one_mode_alone_is_proven_by_its_own_change_and_suspected_by_a_common_one() -> None:
    pro, con = experiment_entries("lr.too-high")
    assert [(s.rule, s.role, s.bearing) for s in pro] == [
        ("X101", "cause", None), ("X101", "sign", Bearing.SIGN), ("X102", "companion", Bearing.SIGN),
        ("X105", "companion", Bearing.SIGN), ("X301", "companion", None)]
    assert [s.role for s in con] == ["contradicts"]
    for text, meant in (("lr.too-high", True), ("a.b,lr.too-high", True), ("lr.too-high-after-shift", False),
                        ("xlr.too-high", False), ("", False)):
        assert all(s.when[0].holds({"decides": text}) is meant for s in (*pro, *con))


SHUFFLED = {"shuffled": "the DataLoader over Rows draws its rows at random", "schedule": "CosineAnnealingLR steps"}


def test_what_a_run_was_seen_to_have_decides_what_is_tried(report: Report) -> None:
    """The text may call a thing by any name, or import what it never uses."""
    names = {d.change.name for d in fitting_decisions(report, None, SHUFFLED)}
    assert {"no-shuffle", "schedule-fixed", "learning-rate"} <= names
    assert not names & {"shuffle", "no-dropout", "no-decay", "no-clipping", "no-workers"}


def test_a_screen_tries_the_suspects_first_and_says_why(report: Report, tmp_path: Path) -> None:
    told = Finding("T730", "order", Severity.HIGH, Bearing.CAUSE, "the loss needs an order", Location(file="train.py"),
                   "test", {"kind": "cumulative"})
    control = Trace(tmp_path, {}, ended=True, seconds=2.0, parts=SHUFFLED)
    arms = [Arm("settings", "width", Change("set", {"width": 3})), Arm("stages", "no-decay", Change("no-decay")),
            Arm("stages", "no-shuffle", Change("no-shuffle")), Arm("stages", "mine", Change("no-dropout"), own=True)]
    found = arranged(arms, joined(report, [told], 0), control, Outcome("fall", bound=0.1))
    assert [a.what for a in found] == ["mine", "no-shuffle", "width"], "what is not there is not tried"
    assert "data.order" in found[1].why
    assert "the DataLoader over Rows draws its rows at random" in found[1].why
    assert [a.what for a in arranged(arms[:1], None, control, Outcome("level"))] == ["width"]


def test_a_change_that_was_made_is_told_in_words_behind_the_line_that_shows_the_cause() -> None:
    from traindx_tools.experiments.change import Change
    from traindx_tools.experiments.interventions import interventions, with_words

    assert with_words(Change("no-shuffle")) == "no-shuffle (samples come in the order of the data set)"
    for name in interventions():
        assert with_words(Change(name)).endswith(")"), name
        assert ": " not in with_words(Change(name)), "the report cuts the sentence there"


def wav(path: Path, rate: int, seed: int) -> None:
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(rate)
        file.writeframes((np.random.default_rng(seed).normal(size=400) * 3000).astype("<i2").tobytes())


@pytest.mark.parametrize(("stated", "wanted"), [(44100, ["conf.toml:audio.sample_rate=8000"]), (8000, [])])
def test_a_setting_that_the_data_contradict_is_set_to_what_they_say(stated: int, wanted: list[str],
                                                                    tmp_path: Path) -> None:
    (tmp_path / "clips").mkdir()
    for i in range(12):
        wav(tmp_path / "clips" / f"c{i:02}.wav", 8000, i)
    (tmp_path / "conf.toml").write_text(f'[audio]\ndir = "clips"\nsample_rate = {stated}\nbatch = 12\n')
    (tmp_path / "train.py").write_text("import tomllib\nC = tomllib.load(open('conf.toml', 'rb'))\n"
                                       "print(C['audio']['sample_rate'], C['audio']['dir'])\n")
    (tmp_path / "train.log").write_text("\n".join(f"step {i} loss 1.38{i % 7}" for i in range(60)))
    seen = diagnose([tmp_path], symptom="the loss does not go down")
    decisions = list(own_decisions(seen, tmp_path, settings_in("python train.py", tmp_path)))
    changes = [d for d in decisions if d.change.name == "set"]
    assert [f"{k}={v}" for d in changes for k, v in d.change.options.items()] == wanted
    assert all(d.specific for d in changes)
    assert not [d for d in decisions if d.change.options.get("files") == "."]
    assert has_own(seen, tmp_path / "own", "python train.py", tmp_path) is bool(wanted)
