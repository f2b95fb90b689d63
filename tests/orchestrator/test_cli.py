"""The command line under bad luck: one message instead of a traceback, whatever comes, and honest exit codes."""

from __future__ import annotations

import errno
import io
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from traindx import cli, group

GOOD = "".join(f"step {i} loss {2.0 / (1 + i):.4f}\n" for i in range(40))
BAD = GOOD + "".join(f"step {i} loss nan\n" for i in range(40, 60))


def run(*arguments: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str, str]:
    code = cli.run(arguments)
    said = capsys.readouterr()
    return code, said.out, said.err


@pytest.mark.parametrize(("error", "said"), [
    (ValueError("odd"), "a defect of traindx"), (RecursionError(), "a defect of traindx"),
    (MemoryError(), "not enough memory"), (OSError(errno.ENOSPC, "No space left on device"), "free some space"),
    (PermissionError(errno.EACCES, "Permission denied", "a\nb"), "a b: Permission denied"),
])
def test_no_error_is_a_traceback(error: Exception, said: str, monkeypatch: pytest.MonkeyPatch,
                                 capsys: pytest.CaptureFixture[str]) -> None:
    def fails(*_: object, **__: object) -> None:
        raise error

    monkeypatch.setattr(group.traindx, "main", fails)
    code, out, err = run("doctor", capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert said in err


def test_a_defect_shows_where_it_came_from_when_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    def fails(*_: object, **__: object) -> None:
        raise ValueError("odd")

    monkeypatch.setattr(group.traindx, "main", fails)
    monkeypatch.setenv(cli.TRACEBACK, "1")
    with pytest.raises(ValueError, match="odd"):
        cli.run(["doctor"])


@pytest.mark.parametrize("arguments", [
    ("audit", "run.log"), ("audit", "empty"), ("audit", "nowhere"),
    ("diagnose", "run.log", "--run", "true", "--timeout", "0"),
    ("diagnose", "run.log", "--run", "true", "--timeout", "nan"), ("diagnose", "run.log", "--run", " "),
    ("debug", ".", "--verify", ""), ("debug", ".", "--verify", "true", "--timeout", "-1"),
    ("debug", ".", "--verify", "true", "--timeout", "inf"), ("debug", ".", "--verify", "true", "--steps", "0"),
    ("debug", "nowhere"), ("debug", "pipe"), ("debug", ".", "--artifact", "nowhere"), ("diagnose", "pipe"),
    ("diagnose", "--context", "pipe"), ("diagnose", "--context", "/dev/zero"), ("sessions", "nowhere"),
    ("diagnose", "run.log", "--out", "run.log"), ("plot", "run.log", "--out", "."), ("diagnose", "a\nb"),
    ("sessions", "--workspace", "nowhere"), ("diagnose", "circle/a"), ("log", "circle/a"),
    ("show", "x"), ("explain", "x"), ("log", ""), ("log", "code.py"), ("plot", "code.py")])
def test_a_refusal_is_one_line_and_leaves_nothing(arguments: tuple[str, ...], tmp_path: Path,
                                                  monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_text(BAD)
    (tmp_path / "code.py").write_text("print('no log')\n")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "empty").mkdir()
    (tmp_path / "circle").mkdir()
    (tmp_path / "circle" / "a").symlink_to("b")
    (tmp_path / "circle" / "b").symlink_to("a")
    monkeypatch.chdir(tmp_path)
    code, out, err = run(*arguments, capsys=capsys)
    assert (code, out, err.count("\n")) == (2, "", 1), err
    assert "defect" not in err
    assert {p.name for p in tmp_path.iterdir()} == {"run.log", "code.py", "pipe", "empty", "circle"}


def test_a_context_package_too_large_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                capsys: pytest.CaptureFixture[str]) -> None:
    from traindx.commands import diagnose

    monkeypatch.setattr(diagnose, "CONTEXT_LIMIT", 100)
    (tmp_path / "context.json").write_text(json.dumps({"task": "x" * 200}))
    code, _, err = run("diagnose", "--context", str(tmp_path / "context.json"), capsys=capsys)
    assert code == 2
    assert "larger than" in err


@pytest.mark.parametrize("entry", ["gone/log.txt", "my runs/log.txt"])
def test_a_context_package_that_names_nothing_that_is_there_says_what(entry: str, tmp_path: Path,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    package = {"artifacts": {"training_logs": entry, "paths": ["not here at all"]}}
    (tmp_path / "context.json").write_text(json.dumps(package))
    code, _, err = run("diagnose", "--context", str(tmp_path / "context.json"), capsys=capsys)
    assert code == 2
    assert f"training_logs: {entry}" in err
    assert "paths: not here at all" in err


def test_two_values_are_no_healthy_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "run.log").write_text("step 1 loss 0.5\nstep 2 loss 0.4\n")
    code, out, _ = run("diagnose", str(tmp_path / "run.log"), "--json", capsys=capsys)
    assert (code, json.loads(out)["status"]) == (3, "needs_more_data")


@pytest.mark.slow
def test_a_name_that_is_no_text_is_shown_with_escapes(tmp_path: Path) -> None:
    path = os.fsencode(tmp_path) + b"/a\xff.log"
    with open(path, "wb") as file:
        file.write(BAD.encode())
    (tmp_path / "out").mkdir()
    done = subprocess.run([sys.executable, "-m", "traindx", "diagnose", path, "--out", str(tmp_path / "out")],
                          capture_output=True, timeout=100, check=False)
    assert (done.returncode in (1, 3), done.stderr) == (True, b"")
    assert (tmp_path / "out/report.html").stat().st_size > 1000


def test_a_terminal_of_few_letters_shows_escapes(monkeypatch: pytest.MonkeyPatch) -> None:
    raw = io.BytesIO()
    monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(raw, encoding="ascii"))
    cli.run(["explain", "--list"])
    sys.stdout.write("…")
    sys.stdout.flush()
    assert raw.getvalue().endswith(b"\\u2026")


@pytest.mark.slow
def test_a_full_disk_behind_standard_output_is_one_message() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run([sys.executable, "-m", "traindx", "explain", "--list"], stdout=full,
                              stderr=subprocess.PIPE, timeout=100, check=False)
    assert (done.returncode, done.stderr.count(b"\n")) == (2, 1)
    assert b"free some space" in done.stderr


@pytest.mark.slow
def test_a_reader_that_went_away_is_no_error() -> None:
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-m", "traindx", "explain", "--list"], stdout=write,
                          stderr=subprocess.PIPE, timeout=100, check=False)
    os.close(write)
    assert (done.returncode, done.stderr) == (0, b"")


def test_names_of_files_are_quoted_in_the_commands_to_run_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch,
                                                               capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a; touch owned .log", "-x.log"):
        (tmp_path / name).write_text(BAD)
    (tmp_path / "train$(touch owned).py").write_text("if __name__ == '__main__':\n    lr = 0.1\n")
    _, out, _ = run("diagnose", "a; touch owned .log", "--json", capsys=capsys)
    commands = [c for c in json.loads(out)["next_checks"] if c.startswith("traindx") and "explain" not in c]
    assert commands
    assert all("'a; touch owned .log'" in c for c in commands)
    assert not any("touch owned)'" in c and "'\"'\"'" not in c for c in commands if "--run" in c)
    _, out, _ = run("diagnose", "--json", "--", "-x.log", capsys=capsys)
    assert all("./-x.log" in c for c in json.loads(out)["next_checks"] if "traindx" in c and "explain" not in c)


def test_the_text_in_a_context_package_hides_neither_the_folder_nor_the_command(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "runs").mkdir()
    (tmp_path / "runs/log.txt").write_text(BAD)
    (tmp_path / "runs/train.py").write_text("import numpy as np\nlr = 0.1\nloss = np.log(0.0)\n"
                                            "if __name__ == '__main__':\n    print(loss)\n")
    package = {"artifacts": {"training_logs": "runs/log.txt", "model_code": ["runs/train.py"], "config": {"lr": 0.1},
                             "error_messages": "RuntimeWarning: divide by zero encountered in log"}}
    (tmp_path / "context.json").write_text(json.dumps(package))
    monkeypatch.chdir(tmp_path)
    code, out, _ = run("diagnose", "--context", "context.json", "-v", capsys=capsys)
    assert code in (1, 3)
    assert re.search(r"^  log\.txt +free text", out, re.MULTILINE)
    assert re.search(r"^  traindx diagnose runs/log\.txt runs/train\.py --run ", out, re.MULTILINE), out


@pytest.mark.parametrize(("asked", "offered"), [
    ("lr", "lr.too-high"), ("lr.to-high", "lr.too-high"), ("L3033", "L303"), ("overfit", "fit.overfitting"),
    ("C10", "C101"), ("softmax", "loss.softmax-before-ce")])
def test_a_name_that_is_none_is_answered_with_those_it_may_have_meant(asked: str, offered: str,
                                                                      capsys: pytest.CaptureFixture[str]) -> None:
    code, _, err = run("explain", asked, capsys=capsys)
    assert code == 2
    assert offered in err.split("Did you mean")[1].replace("?", ",")
    assert "--list" in err


def test_nothing_is_guessed_for_a_name_that_is_like_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert "Did you mean" not in run("explain", "nonsense", capsys=capsys)[2]


def test_a_command_that_is_typed_nearly_right_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    code, out, err = run("diagnos", capsys=capsys)
    assert (code, out) == (2, "")
    assert "No such command 'diagnos'. Did you mean 'diagnose'?" in err
    assert "Did you mean" not in run("xyzzy", capsys=capsys)[2]


def test_ctrl_c_says_what_a_command_leaves_behind(monkeypatch: pytest.MonkeyPatch,
                                                  capsys: pytest.CaptureFixture[str]) -> None:
    from traindx.commands import doctor

    def pressed(**_: object) -> None:
        raise KeyboardInterrupt("session 7 is kept")

    monkeypatch.setattr(doctor.command, "callback", pressed)
    code, out, err = run("doctor", capsys=capsys)
    assert (code, out, err.lstrip()) == (130, "", "traindx: interrupted; session 7 is kept\n")
