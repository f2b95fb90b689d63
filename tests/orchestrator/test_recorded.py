"""The command of a recorded run is offered as the one that verifies, where it starts a script of this workspace."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from traindx.diagnose import diagnose
from traindx.recorded import recorded_command


def run_at(root: Path, name: str, **record: Any) -> Path:
    folder = root / "traindx-run" / name
    folder.mkdir(parents=True)
    told = {"traindx": "live-run", "command": ["python", "fit.py", "--rate", "0.1"], "cwd": str(root), "started": 5.0}
    (folder / "run.json").write_text(json.dumps({**told, **record}))
    return folder


@pytest.fixture
def root(tmp_path: Path) -> Path:
    (tmp_path / "fit.py").write_text("x = 1\n")
    return tmp_path


def test_the_last_command_is_taken(root: Path) -> None:
    run_at(root, "1", started=1.0, command=["python", "fit.py"])
    run_at(root, "2", started=9.0)
    run_at(root, "3", started=4.0, command=["torchrun", "fit.py"])
    assert recorded_command(root) == "python fit.py --rate 0.1"
    assert recorded_command(root, [root / "traindx-run" / "3"]) == "python fit.py --rate 0.1"


@pytest.mark.parametrize("record", [
    {"command": ["rm", "-rf", "fit.py"]},
    {"command": ["python", "-c", "print(1)", "fit.py"]},
    {"command": ["python", "fit.py", "x\n; rm y"]},
    {"command": ["python", "fit.py", "$(rm y)"]},
    {"command": ["python", "gone.py"]},
    {"command": ["python"]},
    {"command": "python fit.py"},
    {"command": [1, 2]},
    {"cwd": "/"},
    {"traindx": "other"},
])  # fmt: skip
def test_what_starts_no_training_of_this_folder_is_not_offered(root: Path, record: dict[str, Any]) -> None:
    run_at(root, "1", **record)
    assert recorded_command(root) is None


def test_a_broken_record_is_no_record(root: Path) -> None:
    (run_at(root, "1") / "run.json").write_text("{")
    assert recorded_command(root) is None
    assert recorded_command(root / "gone") is None


@pytest.mark.usefixtures("sure_figures")
def test_a_diagnosis_offers_it(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(root)
    fixture = Path(__file__).parent.parent / "tools/on_code/fixtures/c276/bad_head_forgotten.py"
    (root / "fit.py").write_text(fixture.read_text())
    (root / "train.py").write_text("import fit\n")
    run_at(root, "1")
    found = diagnose(["."], symptom="it is not learning")
    assert "traindx debug . --verify 'python fit.py --rate 0.1'" in found.next_checks
    (root / "traindx-run" / "1" / "run.json").unlink()
    assert "traindx debug . --verify 'python train.py'" in diagnose(["."], symptom="it is not learning").next_checks
