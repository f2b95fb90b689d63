"""A step that goes wrong is run again with one change at a time; the run's own results stay as they are."""

from __future__ import annotations

import contextlib
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import programs
import pytest
from programs import Program

from traindx_tools.finding import Finding, Severity
from traindx_tools.on_torch.monitor import Monitor

pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Case:
    """What is to be found: the kind of symptom, where it comes from, what takes it away, a mode that this is for."""

    run: Program
    symptom: str
    at: str
    removes: tuple[str, ...]
    mode: str
    stays: tuple[str, ...] = ()


CASES = (
    Case(programs.half_overflow, "loss", "pass", ("float32", "no-autocast", "float64"), "num.fp16-activation-overflow"),
    Case(programs.half_resolution, "loss", "pass", ("float32", "no-autocast"), "num.epsilon-below-resolution"),
    Case(programs.bad_row, "loss", "pass", ("rows-left-out",), "data.corrupt-sample", ("float64",)),
    Case(programs.outlying_row, "loss-jump", "pass", ("rows-left-out",), "data.outlier-batch", ("float64",)),
    Case(programs.wrong_state, "loss-jump", "update", ("fresh-state",), "resume.optimizer-not-restored", ("float64",)),
    Case(programs.never_cleared, "loss-rise", "update", ("clear-gradients",), "accum.zero-grad-missing", ("float64",)),
    Case(programs.high_rate, "loss-jump", "update", ("learning-rate:times=0.1",), "lr.too-high", ("no-dropout",)),
    Case(programs.strong_decay, "loss-jump", "update", ("no-decay",), "opt.weight-decay-dominates", ("float64",)),
)


@dataclass(frozen=True)
class Watched:
    """What a run gave, what was found in it, what it printed to both streams, and the folder of its records."""

    end: list[str]
    found: list[Finding]
    printed: str
    warned: str
    folder: Path


Watching = Callable[[Program], Watched]


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Watching:
    """Each program runs under the instruments once, however many tests ask for it."""

    @cache
    def made(run: Program) -> Watched:
        folder, out, err = tmp_path_factory.mktemp("run"), io.StringIO(), io.StringIO()
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), Monitor(
                out=folder, probes=(), snapshot=True) as monitor:
            end = run()
        found = [f for f in monitor.findings if f.rule[0] == "X"]
        return Watched(end, found, out.getvalue(), err.getvalue(), folder)

    return made


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.run.__name__)
def test_the_change_that_undoes_the_fault_takes_it_away(case: Case, watched: Watching) -> None:
    found = watched(case.run).found
    finding = next(f for f in found if f.rule == "X301" and f.measured["symptom"] == case.symptom)
    measured = finding.measured
    assert measured["at"] == case.at
    assert set(case.removes) <= set(measured["removes"])  # type: ignore[arg-type]
    assert set(case.stays) <= set(measured["no_effect"] + measured.get("moves", ()))  # type: ignore[operator]
    assert case.mode in str(measured["decides"]).split(",")
    assert finding.severity is not Severity.INFO


@pytest.mark.parametrize("run", [*(c.run for c in CASES), *programs.HEALTHY, programs.dead_moments,
                                 programs.clipped_and_high], ids=lambda r: r.__name__)
def test_the_run_s_own_results_stay_bitwise_the_same(run: Program, watched: Watching) -> None:
    assert watched(run).end == run()
    assert not watched(run).printed


@pytest.mark.parametrize("run", programs.HEALTHY, ids=lambda r: r.__name__)
def test_nothing_is_said_of_a_healthy_run(run: Program, watched: Watching) -> None:
    assert not [f for f in watched(run).found if f.severity is not Severity.INFO]
    assert not watched(run).warned


def test_a_batch_that_is_only_hard_is_a_remark_with_its_table(watched: Watching) -> None:
    found = watched(programs.hard_batch).found
    assert all(f.measured["recovered"] is True for f in found)
    told = [json.loads(p.read_text()) for p in (watched(programs.hard_batch).folder / "replays").glob("*.json")]
    assert [(t["symptom"]["kind"], t["recovered"], t["at"]) for t in told] == [("loss-jump", True, "pass")]


def test_the_row_is_named_as_the_dataset_counts_it(watched: Watching) -> None:
    (finding,) = watched(programs.bad_row).found
    assert finding.measured["dataset_rows"] == (137,)
    assert "1 of 32 rows carries it (row 137 of the dataset)" in finding.statement


def test_what_clipping_does_is_seen_from_the_step_alone(watched: Watching) -> None:
    first = min(watched(programs.clipped_and_high).found, key=lambda f: f.where.step or 0)
    table = {row[0]: row[1:] for row in first.measured["table"]}  # type: ignore[union-attr, index, misc]
    assert table["no-clipping"][0] == "moves it"  # type: ignore[index]
    assert "learning-rate:times=0.1" in first.measured["removes"]  # type: ignore[operator]


def test_parameters_that_a_step_breaks_are_laid_to_the_update(watched: Watching) -> None:
    (finding,) = watched(programs.dead_moments).found
    assert (finding.measured["symptom"], finding.measured["at"]) == ("parameters", "update")
    assert "learning-rate:times=0.1" in finding.measured["no_effect"]  # type: ignore[operator]


def test_the_table_is_kept_with_every_number(watched: Watching) -> None:
    folder = watched(programs.high_rate).folder
    page = next((folder / "replays").glob("*loss-jump.md")).read_text()
    assert "| none (control) |" in page
    assert "| learning-rate:times=0.1 (a tenth of the learning rate) | removes the symptom |" in page
    assert "- clear-gradients: there are no gradients of earlier steps" in page
    told = json.loads(next((folder / "replays").glob("*loss-jump.json")).read_text())
    (tenth,) = [t for t in told["tried"] if t["change"] == "learning-rate:times=0.1"]
    ratio = tenth["measured"]["update_norm"] / told["control"]["update_norm"]
    assert ratio == pytest.approx(0.1, rel=1e-4)
