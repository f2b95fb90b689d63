"""Every diagnosis ends with what to do next: commands as they stand, and in words what no command can fetch."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import click
import pytest

from traindx import group, next_steps
from traindx.diagnose import Report, diagnose
from traindx.next_steps import commands

HALF = "step 0 loss 10.8\nValueError: Attempting to unscale FP16 gradients.\n"
FLAT = "".join(f"step {i} loss {2.302 + 0.001 * (i % 3):.4f} acc 0.101\n" for i in range(60))
TRAIN = """import torch
import torch.nn.functional as F
net = torch.nn.Linear(4, 10)
opt = torch.optim.SGD(net.parameters(), lr=1e-9)
for step in range(60):
    loss = F.cross_entropy(net(torch.randn(8, 4)), torch.zeros(8).long())
    opt.zero_grad()
    loss.backward()
    opt.step()
    print(f"step {step} loss {loss.item():.4f} acc 0.1")
"""


def of(folder: Path, log: str, code: str | None = None, symptom: str = "") -> Report:
    (folder / "log.txt").write_text(log)
    if code is not None:
        (folder / "train.py").write_text(code)
    return diagnose(["log.txt"], symptom=symptom)


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def known(command: str) -> bool:
    """Whether it is a command of traindx with options that exist and without a word left to fill in."""
    program, name, *arguments = shlex.split(command)
    found = group.traindx.get_command(click.Context(group.traindx), name)
    options = {o for p in found.params for o in (*p.opts, *p.secondary_opts)} if found else set()
    filled = not {"CMD", "PATH", "TEXT", "FILE"}.intersection(arguments)
    return program == "traindx" and filled and all(a in options for a in arguments if a.startswith("--"))


@pytest.mark.parametrize(("log", "symptom"), [
    (FLAT, ""), ("hello\nworld\n", "loss is nan"), ("step 0 loss 3.1\nstep 1 loss 3.0\n", ""),
    ("".join(f"step {i} loss {3 * 0.9**i:.4f}\n" for i in range(40)), "generated samples are garbled"),
])
def test_a_log_alone_that_does_not_tell_gets_commands_and_words(here: Path, log: str, symptom: str) -> None:
    report = of(here, log, symptom=symptom)
    assert report.status == "needs_more_data"
    assert bool(report.next_checks) == bool(report.seen.records), "no command of ours shows a text without a metric"
    assert all(known(c) for c in report.next_checks)
    assert any("training script" in w for w in report.wanted)
    assert report.to_json()["analysis_artifacts"]["wanted"]
    text = report.terminal({}, verbose=True)
    assert "What would settle it" in text
    if report.next_checks:
        assert text.index("What would settle it") < text.index("Next commands")
        assert text.splitlines()[-1].strip() == report.next_checks[-1]


def test_with_the_code_the_run_under_instruments_and_a_line_to_log_are_offered(here: Path) -> None:
    report = of(here, "step 0 loss 3.1\nstep 1 loss 3.0\n", TRAIN)
    assert report.status == "needs_more_data", report.seen.verdict.reason
    assert "traindx diagnose log.txt --run 'python train.py'" in report.next_checks
    assert any("opt.param_groups[0]['lr']" in w for w in report.wanted)
    assert not any("training script" in w for w in report.wanted)


def test_code_further_up_is_named_with_its_folder(here: Path) -> None:
    (here / "train.py").write_text(TRAIN)
    run = here / "runs" / "seven"
    run.mkdir(parents=True)
    (run / "log.txt").write_text(FLAT)
    report = diagnose(["runs/seven/log.txt"])
    assert "traindx diagnose runs/seven/log.txt ." in report.next_checks
    (here / "train.py").write_text("print('a tool that trains nothing')\n")
    assert not any("log.txt ." in c for c in diagnose(["runs/seven/log.txt"]).next_checks)
    (here / "train.py").write_text(TRAIN)
    (here / "runs" / ".git").mkdir()
    assert not any("log.txt ." in c for c in diagnose(["runs/seven/log.txt"]).next_checks), "another project's code"


def test_an_experiment_that_would_decide_is_named_with_its_command(here: Path) -> None:
    report = of(here, FLAT, TRAIN, "the loss does not go down")
    assert report.status == "needs_more_data"
    named = [c for c in report.next_checks if c.startswith("traindx experiment ")]
    assert "traindx experiment log.txt --run 'python train.py' --change learning-rate:times=10.0" in named
    assert all(known(c) for c in named)
    (here / "train.py").unlink()
    alone = of(here, FLAT, symptom="the loss does not go down")
    assert not any(c.startswith("traindx experiment ") for c in alone.next_checks), "nothing says how it is started"


@pytest.mark.usefixtures("sure_figures")
def test_a_cause_that_is_found_leads_to_a_session(here: Path) -> None:
    report = of(here, HALF)
    assert report.status == "diagnosis_complete"
    assert not any(c.startswith("traindx debug") for c in report.next_checks), "no fix could be proposed"
    assert report.wanted == ("the training script, so that the fix names its lines: "
                             "`traindx diagnose log.txt PATH/TO/train.py`",)
    assert "traindx diagnose log.txt PATH/TO/train.py" in " ".join(report.terminal({}).split())
    (here / "train.py").write_text(TRAIN)
    assert "no line of the code that was read" in diagnose(["log.txt"]).wanted[0]
    frame = 'Traceback (most recent call last):\n  File "train.py", line 5, in <module>\n    loss.backward()\n'
    (here / "log.txt").write_text(HALF.replace("ValueError", frame + "ValueError"))
    assert diagnose(["log.txt"]).wanted == ()
    assert diagnose(["log.txt"]).next_checks[0] == "traindx debug log.txt --verify 'python train.py'"
    assert diagnose(["log.txt", "train.py"]).next_checks[0] == "traindx debug . --verify 'python train.py'"


@pytest.mark.usefixtures("sure_figures")
def test_a_cause_without_code_leads_to_the_code_further_up(here: Path) -> None:
    (here / "runs").mkdir()
    (here / "train.py").write_text(TRAIN)
    (here / "runs" / "log.txt").write_text(HALF)
    found = diagnose(["runs/log.txt"])
    assert found.next_checks[0] == "traindx diagnose runs/log.txt ."
    assert not any(c.startswith("traindx debug") for c in found.next_checks)


def test_nothing_is_offered_for_a_cause_that_was_rejected(here: Path) -> None:
    report = of(here, HALF, TRAIN)
    rejected = report.seen.verdict.hypotheses[0].mode.id
    left = commands(report, {rejected})
    assert left != report.next_checks
    assert not any(c.startswith("traindx debug") or rejected in c for c in left)


def test_the_code_that_lies_beside_a_log_is_listed_as_read(here: Path) -> None:
    report = of(here, FLAT, TRAIN)
    assert [(a.path, a.note) for a in report.run.artifacts if a.format == "python"] == [
        ("train.py", "found beside the log")]
    assert "train.py" in report.terminal({}, verbose=True)
    given = diagnose(["."]).run.artifacts
    assert [a.note for a in given if a.format == "python"] == [""]


def test_what_was_just_typed_is_not_offered(here: Path) -> None:
    report = of(here, FLAT, TRAIN)
    assert report.command("traindx diagnose PATH", {}) == ""


WARNED = FLAT + """{script}:7: RuntimeWarning: divide by zero encountered in log
  loss = -np.log(p).mean()
step 60 loss nan acc 0.1
step 61 loss nan acc 0.1
"""


DIVERGED = "".join(f"step {i} loss {x}\n" for i, x in enumerate([0.9, 0.5, 0.3, 0.2, "nan", "nan", "nan"]))


def kept(run: Path, name: str) -> Path:
    """A file that a run kept; what is in it plays no part in whether it is named."""
    file = run / name
    file.parent.mkdir(parents=True)
    file.write_bytes(b"")
    return file


def test_the_step_that_the_newest_run_kept_is_offered_for_a_replay(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept(here / "traindx-run" / "20260101-000000", "steps/rank00000-step00000002-loss.step.npz")
    newest = kept(here / "traindx-run" / "20260102-000000", "steps/rank00000-step00000004-loss.step.npz")
    report = of(here, DIVERGED, TRAIN)
    named = newest.relative_to(here)
    assert f"traindx replay {named} --run 'python train.py'" in commands(report)
    monkeypatch.chdir(here.parent)
    (command,) = (c for c in commands(diagnose([f"{here.name}/log.txt"])) if "replay" in c)
    assert command == f"traindx replay {here.name}/{named} --run 'python train.py' --workspace {here.name}"
    assert known(command)


def test_a_kept_batch_needs_no_command_and_a_step_without_one_is_not_offered(here: Path) -> None:
    kept(here / "traindx-run" / "1", "steps/rank00000-step00000004-loss.step.npz")
    assert not [c for c in commands(of(here, DIVERGED)) if "replay" in c]
    batch = kept(here / "traindx-run" / "2", "rank00000.batch.npz")
    assert f"traindx replay {batch.relative_to(here)}" in commands(of(here, DIVERGED))


def test_without_a_kept_failure_or_a_failure_there_is_nothing_to_replay(here: Path) -> None:
    (here / "traindx-run").write_text("a file, no folder")
    assert not [c for c in commands(of(here, DIVERGED, TRAIN)) if "replay" in c]
    (here / "traindx-run").unlink()
    (here / "train.py").unlink()
    kept(here / "traindx-run" / "1", "rank00000.batch.npz")
    fine = "".join(f"step {i} loss {2.0 / (1 + i / 9):.4f}\n" for i in range(60))
    assert not [c for c in commands(of(here, fine)) if "replay" in c]


def test_a_run_that_was_just_made_is_not_offered_again(here: Path) -> None:
    report = of(here, DIVERGED, TRAIN)
    again = "traindx diagnose log.txt --run 'python train.py'"
    assert again in commands(report)
    made = replace(report, made=here / "made")
    assert again not in commands(made)


def test_a_script_that_the_log_names_and_that_is_here_is_offered(
        here: Path, tmp_path_factory: pytest.TempPathFactory) -> None:
    elsewhere = tmp_path_factory.mktemp("code") / "fit.py"
    elsewhere.write_text(TRAIN)
    report = of(here, WARNED.format(script=elsewhere))
    assert any(str(elsewhere.name) in c and c.startswith("traindx diagnose log.txt ") for c in commands(report))


@pytest.mark.parametrize("text", ["print('no training')", None])
def test_a_named_script_that_is_not_here_or_does_not_train_is_not_offered(here: Path, text: str | None) -> None:
    folder = here / "other"
    folder.mkdir()
    if text is not None:
        (folder / "fit.py").write_text(text)
    report = of(here, WARNED.format(script=folder / "fit.py"))
    assert not any("fit.py" in c for c in commands(report))


def test_the_records_of_a_run_lead_to_a_session_where_it_ran(here: Path) -> None:
    (here / "train.py").write_text(TRAIN)
    folder = here / "traindx-run" / "1"
    folder.mkdir(parents=True)
    (folder / "run.json").write_text(json.dumps({
        "traindx": "live-run", "command": ["python", "train.py"], "cwd": str(here), "started": 5.0}))
    (folder / "log.txt").write_text(HALF)
    report = diagnose(["traindx-run/1"])
    assert (next_steps._one_path(report), next_steps._artifacts(report)) == (".", " --artifact traindx-run/1")
    (here / "log.txt").write_text(HALF)
    beside = diagnose(["log.txt"])
    assert (next_steps._one_path(beside), next_steps._artifacts(beside)) == ("log.txt", "")


def test_the_line_that_is_asked_for_logs_what_is_absent_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nnet = torch.nn.Linear(2, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
        "for step in range(30):\n    loss = net(torch.ones(1, 2)).sum()\n    opt.zero_grad()\n    loss.backward()\n"
        "    opt.step()\n")
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss {'nan' if i > 12 else 2 - i / 40} lr 0.1\n"
                                              for i in range(30)))
    asked = next(w for w in diagnose([tmp_path], symptom="the loss is nan").wanted if "in the log" in w)
    assert asked.startswith("the gradient norm in the log")
    assert "lr {" not in asked
    line = re.search(r"`(.*)`", asked)
    assert line is not None
    ran = subprocess.run([sys.executable, "-c", (tmp_path / "train.py").read_text() + "    " + line[1]],
                         capture_output=True, text=True, check=True)
    assert re.match(r"step 0 grad_norm 1\.732", ran.stdout)


def test_a_history_in_memory_beside_a_file_is_asked_for_in_python(tmp_path: Path) -> None:
    (tmp_path / "notes.py").write_text("x = 1\n")
    history = [{"step": i, "loss": 2.0 + 10.0 ** (i - 20)} for i in range(30)]
    told = " ".join(diagnose([history, tmp_path / "notes.py"]).wanted)
    assert "--against" not in told
    assert "traindx diagnose" not in told
