"""`traindx isolate`: what it prints, exit codes, going on after an interruption, and inputs that make no sense."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from in_process import InProcess

from traindx.cli import run
from traindx_tools.experiments.place import Prepared


@pytest.fixture
def configs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two files with 40 settings each, and the current directory."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "good.json").write_text(json.dumps({f"k{i}": i for i in range(40)}))
    (folder / "bad.json").write_text(json.dumps({f"k{i}": i + 1 for i in range(40)}))
    monkeypatch.chdir(folder)
    return folder


def settings(prepared: Prepared) -> dict[str, Any]:
    (content,) = prepared.files.values()
    assert content is not None
    return dict(json.loads(content))


def isolate(*words: str) -> int:
    return run(["isolate", *words])


RUN = ("--run", "python train.py {config}", "--fails-if", "loss>1")
CONFIG = ("config", "good.json", "bad.json", *RUN)


def test_the_key_is_found_and_said(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    place.answer = lambda p: (f"loss {5 if settings(p)['k23'] == 24 else 0.5}", 0)
    assert isolate(*CONFIG) == 1
    said = capsys.readouterr()
    assert "settings: found: what makes the symptom come among 40 differences\n  k23: 23 -> 24\n" in said.out
    assert "the bad run without it does not show the symptom" in said.out
    assert f"{len(place.runs)} runs, controls and repeats included; 6 are the fewest" in said.out
    assert said.err == ""
    assert sorted(p.name for p in configs.iterdir()) == ["bad.json", "good.json", "scratch"]


def test_the_same_command_goes_on_where_it_was_cut_off(configs: Path, place: InProcess,
                                                       capsys: pytest.CaptureFixture[str]) -> None:
    place.answer = lambda p: (f"loss {5 if settings(p)['k23'] == 24 else 0.5}", 0)
    assert isolate(*CONFIG, "--budget", "6") == 3
    assert "a larger --budget goes on from here" in capsys.readouterr().out
    (trials,) = configs.glob("scratch/debug/isolate-*/trials.jsonl")
    with trials.open("a") as file:
        file.write('{"key": "cut off')
    assert isolate(*CONFIG) == 1
    first = len(place.runs)
    assert isolate(*CONFIG, "--json") == 1
    told = json.loads(capsys.readouterr().out.partition("{\n")[2].join(["{\n", ""]))
    assert len(place.runs) == first
    (finding,) = told["findings"]
    assert finding["rule"] == "X201"
    assert "of 40 differences k23: 23 -> 24 alone makes the symptom (loss>1) come" in finding["statement"]
    assert (told["levels"][0]["runs"], told["levels"][0]["causes"]) == (0, [["k23: 23 -> 24"]])
    (configs / "bad.json").write_text((configs / "bad.json").read_text().replace('"k0": 1', '"k0": 7'))
    assert isolate(*CONFIG) == 1
    assert len(place.runs) > first  # another difference, and nothing of before holds


@pytest.mark.parametrize(("output", "code", "exit_code", "said"), [
    ("loss 0.5", 0, 0, "not bad: the bad run does not show the symptom here (last loss is 0.5)"),
    ("loss 5", 0, 3, "both bad: the good run shows the symptom too"),
    ("loss 0.5", 1, 3, "unresolved: the bad run says neither"),
    ("nothing", 0, 3, "it records no loss"),
])  # fmt: skip
def test_ends_between_which_there_is_nothing(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str],
                                             output: str, code: int, exit_code: int, said: str) -> None:
    place.answer = lambda p: (output, code)
    assert isolate(*CONFIG) == exit_code
    assert said in capsys.readouterr().out


def test_noise_is_called_noise(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    place.answer = lambda p: (f"loss {5 if len(place.runs) % 2 else 0.5}", 0)
    assert isolate(*CONFIG) == 3
    assert "that is noise" in capsys.readouterr().out


def test_a_run_that_failed_is_made_again(configs: Path, place: InProcess) -> None:
    place.answer = lambda p: ("ModuleNotFoundError", 1)
    assert isolate(*CONFIG) == 3
    place.answer = lambda p: (f"loss {5 if settings(p)['k3'] == 4 else 0.5}", 0)
    assert isolate(*CONFIG) == 1


def test_command_lines_and_environments(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    place.answer = lambda p: (f"loss {5 if '--lr=1' in p.command else 0.5}", 0)
    assert isolate("config", "python t.py --lr=0.1 --x 2", "python t.py --lr=1 --x 3", "--fails-if", "loss>1") == 1
    assert "  --lr=0.1 -> --lr=1\n" in capsys.readouterr().out
    Path("good.env").write_text("A=1\nB=1\ntorch==1.0\n")
    Path("bad.env").write_text("A=2\nB=2\ntorch==2.0\n")
    place.answer = lambda p: ("", int(p.environment["B"] == "2"))
    assert isolate("config", "good.env", "bad.env", "--run", "python t.py") == 1
    said = capsys.readouterr().out
    assert "  B: 1 -> 2\n" in said
    assert "note: versions differ and cannot be changed here: torch 1.0 -> 2.0" in said


def test_shards_and_then_rows(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    import io

    Path("data").mkdir()
    for i in range(8):
        np.save(f"data/x_{i}.npy", np.array([5.0 if (i, j) == (6, 2) else j for j in range(4)]))

    def answer(prepared: Prepared) -> tuple[str, int]:
        held = [np.load(io.BytesIO(c or b"")) for n, c in prepared.files.items() if n.startswith("data/")]
        return f"loss {max(a.max() for a in held)}", 0

    place.answer = answer
    assert isolate("data", "data", "--run", "python t.py", "--fails-if", "loss>4") == 1
    said = capsys.readouterr().out
    assert "shards: found" in said
    assert "  x_6.npy\n" in said
    assert "rows of x_6.npy: found" in said
    assert "  row 2\n" in said


def test_equal_runs(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    place.answer = lambda p: ("step 1 loss 0.5", 0)
    assert isolate("runs", "--run", "python t.py") == 0
    assert "equal: 4 runs of the command are equal in what they print; no step of torch or JAX was recorded" in (
        capsys.readouterr().out)
    place.answer = lambda p: (f"step 1 loss {len(place.runs) if p.environment.get('OMP_NUM_THREADS') != '1' else 1}", 0)
    assert isolate("runs", "--run", "python other.py") == 1
    said = capsys.readouterr().out
    assert "line 1: 'step 1 loss" in said
    assert "equal with one thread" in said
    assert isolate("runs", "--run", "python other.py", "--json") == 1
    (finding,) = json.loads(capsys.readouterr().out)["findings"]
    assert finding["rule"] == "X202"
    assert "equal with one thread" in finding["statement"]
    place.answer = lambda p: ("Traceback", 1)
    assert isolate("runs", "--run", "python third.py") == 3
    assert "unresolved: the run ended with exit code 1" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "said"), [
    (("config", "good.json", "bad.json"), "--run needs a command"),
    (("config", "good.json", "none.json", *RUN), "no such file"),
    (("config", "good.json", "bad.json", "--run", "python t.py"), "not clear where the run reads it"),
    ((*CONFIG, "--fails-if", "loss"), "is no condition"),
    ((*CONFIG, "--budget", "0"), "--budget is a number of runs"),
    ((*CONFIG, "--timeout", "nan"), "--timeout a number of seconds"),
    ((*CONFIG, "--workspace", "nowhere"), "no such folder"),
    ((*CONFIG, "--out", "good.json"), "outcomes cannot be kept"),
    (("data", "--run", "x"), "give one folder or file of data"),
    (("data", "none.npy", "--run", "x"), "none.npy"),
    (("weights", "good.json", "bad.json", "--run", "x"), "expected one file of torch.save"),
    (("commits", "HEAD", "--run", "x"), "expected GOOD..BAD"),
    (("runs",), "--run needs a command"),
    (("runs", "--run", "x", "--steps", "0"), "--steps is a number from 1 on"),
    (("config", "a b", "c d", "--run", "e"), "--run is for files of settings"),
])  # fmt: skip
def test_what_makes_no_sense_is_one_line(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str],
                                         words: tuple[str, ...], said: str) -> None:
    assert isolate(*words) == 2
    told = capsys.readouterr()
    assert said in told.err
    assert told.err.count("\n") == 1
    assert told.out == ""
    assert place.runs == []


@pytest.mark.parametrize("kind", ["config", "commits", "data", "weights", "runs"])
def test_help_names_the_exit_codes(kind: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert isolate(kind, "--help") == 0
    said = capsys.readouterr().out
    assert "Exit codes:" in said
    assert "--run CMD" in said


def test_versions_alone_cannot_be_tried(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    Path("good.txt").write_text("torch==1.0\n")
    Path("bad.txt").write_text("torch==2.0\n")
    assert isolate("config", "good.txt", "bad.txt", "--run", "python t.py") == 3
    assert "cannot be changed here: torch 1.0 -> 2.0" in capsys.readouterr().out


@pytest.mark.parametrize("rule", ["X201", "X202"])
def test_the_rules_have_pages(rule: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", rule]) == 0
    assert "runs" in capsys.readouterr().out


def test_two_files_alike_are_no_difference(configs: Path, place: InProcess, capsys: pytest.CaptureFixture[str]) -> None:
    assert isolate("config", "good.json", "good.json", *RUN) == 0
    assert "no difference" in capsys.readouterr().out
    assert place.runs == []
