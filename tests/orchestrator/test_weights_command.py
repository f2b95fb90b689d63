"""Checkpoints through the faces: the command, the MCP tool, and by themselves within a diagnosis."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from traindx import cli
from traindx.diagnose import diagnose
from traindx.mcp_paths import Reach
from traindx.mcp_tools import call
from traindx.sandbox import find_sandbox
from traindx_tools.errors import TraindxError
from traindx_tools.on_weights import of_run

LOG = "".join(f"step {i} loss {2 + 1 / (i + 1):.4f}\n" for i in range(80))


def _write(path: Path, scale: float = 1.0, prefix: str = "") -> Path:
    """Six blocks; the fourth is scaled."""
    rng = np.random.default_rng(0)
    header: dict[str, Any] = {}
    data = b""
    for i in range(6):
        raw = (rng.standard_t(5, (32, 32)) * 0.1 * (scale if i == 3 else 1)).astype("<f4").tobytes()
        header[f"{prefix}h.{i}.weight"] = {"dtype": "F32", "shape": [32, 32],
                                           "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    head = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + data)
    return path


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_command_names_the_tensor_and_its_exit_code_says_so(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here / "good.safetensors")
    _write(here / "bad.safetensors", 12)
    assert cli.run(["weights", "good.safetensors"]) == 0
    assert "0 found, 0 remarks" in capsys.readouterr().out
    assert cli.run(["weights", "bad.safetensors"]) == 1
    out = capsys.readouterr().out
    assert "bad.safetensors, module h.3.weight: W103 high: h.3.weight in bad.safetensors is" in out
    assert cli.run(["weights", "bad.safetensors", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["findings"][0]["rule"] == "W103"
    assert told["values"] == 6 * 1024


def test_what_cannot_be_read_is_one_line(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (here / "text.pt").write_text("hello")
    for arguments in (["text.pt"], ["nowhere.pt"], ["."], ["text.pt", "--seconds", "0"]):
        assert cli.run(["weights", *arguments]) == 2
        said = capsys.readouterr()
        assert said.out == ""
        assert said.err.startswith("traindx: ")
        assert said.err.count("\n") == 1


def test_two_files_are_matched(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here / "one.safetensors")
    _write(here / "two.safetensors", prefix="module.")
    assert cli.run(["weights", "one.safetensors", "two.safetensors"]) == 1
    out = capsys.readouterr().out
    assert "0 names match, 6 more with 'module.' put in front; 0 missing there" in out
    assert "6,144 of 6,144 values (100%) would stay random" in out


def test_time_that_does_not_suffice_is_said(here: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(here / "good.safetensors")
    cli.run(["weights", "good.safetensors", "--seconds", "1e-9"])
    assert "6 tensors were not measured" in capsys.readouterr().out


def test_the_tool_reads_below_its_root_alone(here: Path) -> None:
    root = here / "root"
    root.mkdir()
    _write(root / "bad.safetensors", 12)
    _write(here / "outside.safetensors")
    text = call("examine_weights", {"file": "bad.safetensors"}, Reach.of(root), lambda _: None)
    assert text.startswith("1 of 1 findings")
    assert '"rule": "W103"' in text
    for name in ("../outside.safetensors", str(here / "outside.safetensors"), "nowhere.pt"):
        with pytest.raises(TraindxError):
            call("examine_weights", {"file": name}, Reach.of(root), lambda _: None)


def test_a_diagnosis_reads_the_checkpoints_of_its_folder(here: Path) -> None:
    (here / "train.log").write_text(LOG)
    _write(here / "init.safetensors", 12)
    report = diagnose([here], root=here)
    assert [f.rule for f in report.seen.findings if f.rule[0] == "W"] == ["W103"]
    assert report.hypotheses[0].failure_mode == "ckpt.tensor-damaged"
    assert "h.3.weight" in report.hypotheses[0].issue


def test_a_diagnosis_reads_what_the_code_names(here: Path) -> None:
    (here / "logs").mkdir()
    (here / "checkpoints").mkdir()
    (here / "logs" / "train.log").write_text(LOG)
    (here / "train.py").write_text("state = load_file('checkpoints/init.safetensors')\n")
    _write(here / "checkpoints" / "init.safetensors", 12)
    _write(here / "checkpoints" / "other.safetensors", 40)
    report = diagnose([here / "logs" / "train.log", here / "train.py"], root=here)
    found = [f for f in report.seen.findings if f.rule[0] == "W"]
    assert [f.where.file for f in found] == ["checkpoints/init.safetensors"]
    assert ("checkpoints/init.safetensors", "weights") in {(a.path, a.format) for a in report.run.artifacts}


def test_a_sound_checkpoint_changes_no_verdict(here: Path) -> None:
    (here / "train.log").write_text(LOG)
    before = diagnose([here], root=here)
    _write(here / "init.safetensors")
    after = diagnose([here], root=here)
    assert after.status == before.status
    assert [f.statement for f in after.seen.findings] == [f.statement for f in before.seen.findings]
    assert not [n for n in after.notes if "refused" in n]


def test_a_cut_checkpoint_is_a_finding_of_the_diagnosis(here: Path) -> None:
    (here / "train.log").write_text(LOG)
    whole = _write(here / "last.safetensors").read_bytes()
    (here / "last.safetensors").write_bytes(whole[:9000])
    report = diagnose([here], root=here)
    assert [f.rule for f in report.seen.findings if f.rule[0] == "W"] == ["W116"]
    assert report.hypotheses[0].failure_mode == "ckpt.corrupt"


def test_files_that_a_text_names_elsewhere_are_left_alone(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    outside = _write(tmp_path / "outside.safetensors", 12)
    (run / "train.py").write_text(f"load('../outside.safetensors'); load({str(outside)!r})\n")
    assert of_run([], [run / "train.py"], run).findings == ()


def test_a_diagnosis_says_what_it_had_no_time_for(tmp_path: Path) -> None:
    files = [str(_write(tmp_path / f"{i}.safetensors", 12)) for i in range(14)]
    seen = of_run(files)
    assert len(seen.read) == 12
    assert len([n for n in seen.notes if "not read" in n]) == 2
    assert "traindx weights" in of_run(files, seconds=0).notes[0]


MODEL = """
import torch

class Net(torch.nn.Module):
    def __init__(self, blocks=6, width=32):
        super().__init__()
        self.h = torch.nn.ModuleList(torch.nn.Linear(width, width, bias=False) for _ in range(blocks))

def stops():
    raise RuntimeError("no such preset")

def nothing():
    return {}

def writes():
    open("train.py", "a").write("x")
    return Net()
"""


@pytest.fixture
def modelled(here: Path) -> Path:
    (here / "net.py").write_text(MODEL)
    (here / "train.py").write_text("pass\n")
    return here


@pytest.mark.slow
def test_a_model_that_the_checkpoint_fits(modelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(modelled / "good.safetensors")
    assert cli.run(["weights", "good.safetensors", "--model", "net:Net"]) == 0
    assert "into the model net:Net: 6 names match; 0 missing in the file, 0 only in the file" in capsys.readouterr().out


@pytest.mark.slow
def test_what_a_load_into_the_model_would_leave_random(modelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(modelled / "wrapped.safetensors", prefix="module.")
    assert cli.run(["weights", "wrapped.safetensors", "--model", "net:Net", "--json"]) == 1
    told = json.loads(capsys.readouterr().out)
    assert told["model"]["renaming"] == "'module.' put in front"
    assert told["model"]["values_that_would_stay_random"] == 6 * 32 * 32
    assert "would stay random" in next(f["statement"] for f in told["findings"] if f["rule"] == "W110")


@pytest.mark.slow
def test_a_model_with_arguments_of_its_own(modelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _write(modelled / "good.safetensors")
    assert cli.run(["weights", "good.safetensors", "--model", "net:Net", "--model-args", '{"blocks": 8}']) == 1
    assert "2 missing in the file" in capsys.readouterr().out


@pytest.mark.slow
@pytest.mark.parametrize(("words", "said"), [
    (["--model", "net.Net"], "--model is module:Class"),
    (["--model", "net:Net;x"], "--model is module:Class"),
    (["--model", "net:Nothing"], "cannot be built: AttributeError"),
    (["--model", "nowhere:Net"], "cannot be built: ModuleNotFoundError"),
    (["--model", "net:stops"], "cannot be built: RuntimeError: no such preset"),
    (["--model", "net:nothing"], "no parameters and no buffers"),
    (["--model", "net:Net", "--model-args", "[1]"], "a JSON object of keyword arguments"),
    (["--model-args", "{}"], "goes to the class that --model names"),
])  # fmt: skip
def test_a_model_that_cannot_be_had_is_told_in_one_line(
        modelled: Path, capsys: pytest.CaptureFixture[str], words: list[str], said: str) -> None:
    _write(modelled / "good.safetensors")
    assert cli.run(["weights", "good.safetensors", *words]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.slow
def test_building_a_model_writes_nothing(modelled: Path, capsys: pytest.CaptureFixture[str]) -> None:
    if find_sandbox().program is None:
        pytest.skip("nothing on this machine holds a program back")
    _write(modelled / "good.safetensors")
    assert cli.run(["weights", "good.safetensors", "--model", "net:writes"]) == 2
    assert (modelled / "train.py").read_text() == "pass\n"
