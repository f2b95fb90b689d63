"""A next command can be made here, decides something, and is about this run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from traindx.decidable import _can_be_made, can_be_screened
from traindx.experiments import Request, run_experiments
from traindx.fruitless import NEVER_TRAINED, NO_METRICS, fruitless
from traindx.in_brief import next_command, what_it_does
from traindx.places import Places
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.choosing import choose
from traindx_tools.experiments.outcome import Outcome
from traindx_tools.experiments.trace import Trace
from traindx_tools.experiments.watch import curves_of
from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.run import Run

BARE = "import torch\nnet = torch.nn.Linear(2, 1)\nnet(torch.ones(1, 2)).sum().backward()\n"
SETTINGS = "import argparse\np = argparse.ArgumentParser()\np.add_argument('--lr', type=float, default=0.1)\n" + BARE
STEADY = """import os
rate = float(os.environ.get("RATE", "0"))
for step in range(1, 61):
    print(f"step {step} loss {max(2.0, 3.0 - 0.4 * step) * (1 - min(rate, 0.9) * step / 60):.4f}", flush=True)
"""


def program(folder: Path, text: str) -> Path:
    (folder / "train.py").write_text(text)
    return folder


def test_a_screen_is_offered_where_something_can_be_changed(tmp_path: Path) -> None:
    assert not can_be_screened("python train.py", program(tmp_path, BARE), BARE)
    assert can_be_screened("python train.py", program(tmp_path, SETTINGS), SETTINGS)
    assert not can_be_screened("python nothing.py", tmp_path, SETTINGS)


def test_like_files_can_be_screened(tmp_path: Path) -> None:
    program(tmp_path, BARE)
    for number in range(3):
        (tmp_path / f"part-{number}.npz").write_bytes(b"")
    assert can_be_screened("python train.py", tmp_path, BARE)


def test_one_process_needs_a_launcher_to_take_away(tmp_path: Path) -> None:
    program(tmp_path, "import torch.multiprocessing as mp\nmp.spawn(main, (4,), nprocs=4)\n")
    single = parse_change("single-process")
    assert not _can_be_made([single], "python train.py", tmp_path)
    assert _can_be_made([single], "torchrun --nproc_per_node 4 train.py", tmp_path)


class Checks:
    """What `next_command` reads of a view."""

    status = "needs_more_data"
    pictured = False

    def __init__(self, *commands: str) -> None:
        self.next_checks = commands


def test_one_run_with_instruments_comes_before_a_screen_and_as_listed_beside_an_experiment() -> None:
    screen, rerun = "traindx experiment . --run 'python t.py' --screen", "traindx diagnose . --run 'python t.py'"
    one = "traindx experiment . --run 'python t.py' --change no-decay"
    assert next_command(Checks(screen, rerun)) == rerun  # type: ignore[arg-type]
    assert next_command(Checks(screen, rerun, one)) == rerun  # type: ignore[arg-type]
    assert next_command(Checks(screen, one, rerun)) == one  # type: ignore[arg-type]
    assert next_command(Checks("traindx log .", screen)) == screen  # type: ignore[arg-type]


def test_a_session_is_told_to_apply_only_what_it_has_as_a_diff() -> None:
    assert "applies and verifies" in what_it_does("traindx debug .")
    by_hand = what_it_does("traindx debug .", by_hand=True)
    assert "you make" in by_hand
    assert "applies" not in by_hand
    assert what_it_does("traindx log .", by_hand=True) == what_it_does("traindx log .")


@pytest.mark.parametrize(("text", "trains"), [
    ("import time\nfrom traindx import diagnose\nprint(diagnose([{'loss': 2.3}]))\n", False),
    ("import torch\nnet(x).backward()\n", True), ("from training import main\nmain()\n", True)])
def test_a_script_that_uses_traindx_is_no_training(tmp_path: Path, text: str, *, trains: bool) -> None:
    script = tmp_path / "job.py"
    script.write_text(text)
    assert (Places(tmp_path, (script,)).training_command is not None) == trains


def test_a_control_that_is_well_by_its_bound_is_measured_by_where_it_ends() -> None:
    log = "".join(f"step {i} loss {2.9 + 0.001 * (i % 2)}\n" for i in range(1, 61))
    stays = read_run(["-"], stdin=log.encode())
    fell = read_run(["-"], stdin=("step 0 loss 3.6\n" * 3 + log).encode())
    same, other = (Trace(Path(), curves_of(r), ended=True) for r in (stays, fell))
    assert choose("the loss does not fall", Run(), (), same).kind == "fall"
    assert choose("the loss does not fall", Run(), (), other) == Outcome("level")


@pytest.mark.slow
@pytest.mark.parametrize("chosen", [True, False])
def test_an_outcome_that_nobody_named_is_changed_where_the_control_contradicts_it(tmp_path: Path, *,
                                                                                 chosen: bool) -> None:
    request = Request(program(tmp_path, STEADY), f"{sys.executable} train.py", (parse_change("env:RATE=0.9"),),
                      Outcome("fall", bound=0.1), budget=600, chosen=chosen)
    said: list[str] = []
    (result,) = run_experiments(request, said.append).results
    assert result.verdict.is_effect == chosen
    assert result.design.outcome.kind == ("level" if chosen else "fall")
    assert any("measured instead" in s for s in said) == chosen
    assert chosen or result.verdict.lacks == "symptom"


def test_a_command_that_trained_nothing_is_told() -> None:
    failed = f"`bash fail.sh` was run again in a copy and ended with exit code 7 after 0 s {NEVER_TRAINED}: boom."
    hung = f"`bash hang.sh` was run again in a copy and did not end within its limit: {NO_METRICS}."
    assert (fruitless(["x", failed]), fruitless([hung])) == (failed, hung)
    assert not fruitless(["`python train.py` was run again in a copy and ended with exit code 0: reproduced, L201"])
