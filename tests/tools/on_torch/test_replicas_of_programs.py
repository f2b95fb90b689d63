"""Replicas that are not kept equal, in whole programs of two ranks."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("torch")

sys.path.insert(0, str(Path(__file__).parent))

from ranked_programs import FAULTY, HEAD, HEAD_TOGETHER, HEALTHY, LAUNCHER, TAIL, TOGETHER, accumulated

from traindx_tools.finding import Finding, Severity
from traindx_tools.live.reading import read_folder
from traindx_tools.live.runner import Job, run

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]


ABORTED = 6
SHARDED = "sharded parameters"
"""What FSDP puts into torch stays for the next program: it has ranks of its own."""


def command(folder: Path, text: str) -> tuple[str, ...]:
    (folder / "launch.py").write_text(LAUNCHER)
    (folder / "train.py").write_text(HEAD + text + TAIL)
    return sys.executable, str(folder / "launch.py"), str(folder / "train.py")


def found(folder: Path, text: str, probes: tuple[str, ...] = ("replicas",)) -> list[Finding]:
    for attempt in range(3):  # gloo's own threads may abort a process that has ended (SIGABRT), instruments or not
        done = run(Job(command(folder, text), folder / f"run{attempt}", probes, second_pass="never"))
        if done.exit_code != ABORTED:
            break
    assert done.exit_code == 0
    assert {f.rank for f in done.seen.files} <= {0, 1}
    return [f for f in done.seen.findings if f.rule[0] == "R"]


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The folder of each program, all of them run by one pair of ranks, which imports torch once."""
    made = {}
    for name, text in {**{n: f[0] for n, f in FAULTY.items()}, **HEALTHY}.items():
        if name == SHARDED:
            continue
        made[name] = tmp_path_factory.mktemp("program")
        (made[name] / "train.py").write_text(HEAD_TOGETHER + text)
    home = tmp_path_factory.mktemp("together")
    (home / "launch.py").write_text(LAUNCHER)
    (home / "together.py").write_text(TOGETHER)
    command = [sys.executable, str(home / "launch.py"), str(home / "together.py"), *map(str, made.values())]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280, check=False)
    assert done.stdout.count("all of them came to their end") == 2, done.stderr[-3000:]
    return made


def seen_in(folder: Path) -> list[Finding]:
    """What is more than a remark."""
    seen = read_folder(folder / "run")
    assert {0} <= {f.rank for f in seen.files} <= {0, 1}
    return [f for f in seen.findings if f.rule[0] == "R" and f.severity.rank > Severity.LOW.rank]


@pytest.mark.parametrize("name", FAULTY)
def test_replicas_that_part_are_seen_and_why(name: str, folders: dict[str, Path]) -> None:
    text, rule, kind = FAULTY[name]
    seen = seen_in(folders[name])
    assert {(f.rule, f.measured["kind"]) for f in seen} >= {(rule, kind)}
    finding = next(f for f in seen if f.rule == rule)
    if "# <- call" in text:
        whole = (HEAD_TOGETHER + text).splitlines()
        assert finding.where.line == 1 + next(i for i, line in enumerate(whole) if "# <- call" in line)
        assert finding.severity is Severity.CRITICAL


@pytest.mark.parametrize("name", [name for name in HEALTHY if name != SHARDED])
def test_programs_that_look_alike_are_left_alone(name: str, folders: dict[str, Path]) -> None:
    assert seen_in(folders[name]) == []


def test_sharded_parameters_are_left_alone(tmp_path: Path) -> None:
    assert [f for f in found(tmp_path, HEALTHY[SHARDED]) if f.severity.rank > Severity.LOW.rank] == []


def test_nothing_of_the_program_changes(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    text = accumulated(between="model.require_backward_grad_sync = last")
    bare = subprocess.run(command(tmp_path, text), capture_output=True, text=True, check=True, env=dict(os.environ))
    capfd.readouterr()
    found(tmp_path, text, ("always",))
    losses = [sorted(re.findall(r"loss of \S+ \S+ \S+", t)) for t in (bare.stdout, capfd.readouterr().out)]
    assert losses[0] == losses[1]
    assert len(losses[0]) == 16


def test_a_rank_that_is_killed_leaves_what_can_be_compared(tmp_path: Path) -> None:
    text = accumulated(between="model.require_backward_grad_sync = last").replace(
        "    told(step, loss)", "    told(step, loss)\n    if step == 5:\n        os.kill(os.getpid(), 9)")
    done = run(Job(command(tmp_path, text), tmp_path / "run", ("replicas",), second_pass="never"))
    assert done.exit_code
    (finding,) = [f for f in read_folder(tmp_path / "run").findings if f.rule == "R101"]
    assert (finding.measured["kind"], finding.measured["unsynchronised"]) == ("flag-late", 6)
