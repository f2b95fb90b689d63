"""Runs by name: the files here first, then the tracker's library, which is faked: nothing reaches a network."""

from __future__ import annotations

import json
import math
import shutil
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

from traindx.cli import main
from traindx.group import traindx
from traindx_tools.errors import BadUsage, MissingExtra, UnreadableInput
from traindx_tools.on_logs import read_run
from traindx_tools.sources import named, noting_of, resolved

FIXTURES = Path(__file__).parents[2] / "fixtures" / "trackers"
RUN = next((FIXTURES / "mlruns").glob("*/*/meta.yaml")).parent.name


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty folder, no library and no setting of a tracker."""
    monkeypatch.chdir(tmp_path)
    for name in ("WANDB_DIR", "MLFLOW_TRACKING_URI"):
        monkeypatch.delenv(name, raising=False)
    for name in ("wandb", "mlflow"):
        monkeypatch.setitem(sys.modules, name, None)


class WandbRun:
    """What `wandb.Api().run()` gives, as far as it is used."""

    def __init__(self) -> None:
        self.config = {"lr": 0.1, "_wandb": {}}
        self.notes: str | None = "mine"
        self.tags = ["baseline"]
        self.saved: list[tuple[str | None, list[str]]] = []

    def scan_history(self) -> Any:
        yield from ({"_step": i, "_runtime": 3, "_timestamp": 100.0 + i,
                     "train/loss": 1 / (i + 1) if i < 25 else math.nan} for i in range(30))

    def files(self, names: list[str]) -> list[Any]:
        def download(root: str, replace: bool) -> None:
            (Path(root) / "output.log").write_text("RuntimeError: last words\n")
        return [SimpleNamespace(name="output.log", download=download)]

    def update(self) -> None:
        self.saved.append((self.notes, list(self.tags)))


@pytest.fixture
def wandb_run(monkeypatch: pytest.MonkeyPatch) -> WandbRun:
    run, asked = WandbRun(), ModuleType("wandb")

    def of(path: str) -> WandbRun:
        if path != "me/demo/x1":
            raise ValueError(f"could not find run\n{path}")
        return run
    asked.Api = lambda: SimpleNamespace(run=of)  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "wandb", asked)
    return run


@pytest.fixture
def mlflow_tags(monkeypatch: pytest.MonkeyPatch) -> dict[str, str]:
    tags = {"mlflow.note.content": "mine"}
    metric = SimpleNamespace
    history = {"train/loss": [metric(timestamp=1000 + i, value=1 / (i + 1), step=i) for i in range(5)],
               "../../evil": [metric(timestamp=1, value=1.0, step=0)]}
    told = SimpleNamespace(info=SimpleNamespace(start_time=1000),
                           data=SimpleNamespace(metrics=dict.fromkeys(history), params={"lr": "0.1"}, tags=tags))
    client = SimpleNamespace(get_run=lambda run: told, get_metric_history=lambda run, name: history[name],
                             set_tag=lambda run, key, value: tags.update({key: value}))
    asked = ModuleType("mlflow")
    asked.MlflowClient = lambda: client  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "mlflow", asked)
    return tags


def test_the_files_below_the_current_folder_are_taken_first(tmp_path: Path, wandb_run: WandbRun) -> None:
    shutil.copytree(FIXTURES / "wandb", tmp_path / "work" / "wandb")
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    assert resolved("wandb:me/demo/abc12345") == ("work/wandb/offline-run-20261130_120000-abc12345",)
    run, = resolved(f"mlflow:{RUN}")
    assert Path(run).name == RUN
    assert resolved(run) == (run,)


def test_a_run_of_mlflow_is_found_by_its_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(FIXTURES / "mlruns", tmp_path / "mlruns")
    run, = resolved("mlflow:first")
    assert "run_name: first\n" in (Path(run) / "meta.yaml").read_text()
    (Path(run) / "meta.yaml").write_text("run_name: [")
    with pytest.raises(MissingExtra):
        resolved("mlflow:first")
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{FIXTURES / 'mlflow.db'}")
    assert resolved("mlflow:second") == (f"{FIXTURES / 'mlflow.db'}:e0b3a2cbf1bf41d99712b56e556b7b62",)


def test_settings_of_the_trackers_say_where_their_files_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WANDB_DIR", str(FIXTURES))
    monkeypatch.setenv("MLFLOW_TRACKING_URI", f"sqlite:///{FIXTURES / 'mlflow.db'}")
    assert resolved("wandb:abc12345")[0].endswith("abc12345")
    by_name = {a.path.rpartition(":")[2] for a in read_run(FIXTURES / "mlflow.db").artifacts if a.format == "mlflow"}
    one = read_run(f"mlflow:{min(by_name)}")
    assert len([a for a in one.artifacts if a.format == "mlflow"]) == 1
    monkeypatch.setenv("MLFLOW_TRACKING_URI", (FIXTURES / "mlruns").as_uri())
    assert len(next(s for s in read_run(f"mlflow:{RUN}").series if s.group == "train")) == 30


def test_a_run_that_is_not_here_is_fetched_and_read_like_files(wandb_run: WandbRun) -> None:
    run = read_run("wandb:me/demo/x1")
    loss = next(s for s in run.series if s.original == "train/loss")
    np.testing.assert_array_equal(loss.values, [1 / (i + 1) if i < 25 else math.nan for i in range(30)])
    np.testing.assert_array_equal(loss.step, range(30))
    assert run.config["lr"] == 0.1
    assert "last words" in run.errors[0].message
    assert wandb_run.saved == []


def test_a_run_of_mlflow_is_fetched_and_no_name_leads_out(mlflow_tags: dict[str, str]) -> None:
    run = read_run("mlflow:r1")
    assert [s.original for s in run.series] == ["train/loss"]
    assert list(run.series[0].step) == [0, 1, 2, 3, 4]
    assert run.config["lr"] == 0.1
    assert mlflow_tags == {"mlflow.note.content": "mine"}


def exit_code(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["traindx", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_without_the_library_the_command_that_installs_it_is_named(
        capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'wandb>=[\d.]+'"):
        resolved("wandb:me/demo/x1")
    assert exit_code(monkeypatch, "diagnose", "mlflow:r1") == 2
    told = capsys.readouterr().err
    assert "pip install 'mlflow-skinny>=" in told
    assert "looked in mlruns (not there), mlflow.db (not there) of " in told
    assert "MLFLOW_TRACKING_URI names another place" in told


def test_a_folder_that_is_called_wandb_is_no_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", ModuleType("wandb"))
    with pytest.raises(MissingExtra):
        resolved("wandb:me/demo/x1")


def test_what_the_library_raises_is_one_line(wandb_run: WandbRun) -> None:
    with pytest.raises(UnreadableInput, match=r"wandb:me/demo/other could not be reached: ValueError: could not find"):
        resolved("wandb:me/demo/other")
    with pytest.raises(UnreadableInput, match="Nor were files of it found here: looked in wandb and"):
        resolved("wandb:me/demo/other")
    with pytest.raises(BadUsage, match="wandb:ENTITY/PROJECT/x1"):
        resolved("wandb:x1")


@pytest.mark.parametrize("name", ["wandb:", "wandb:a/b", "wandb:../../etc/passwd", "wandb:a/../b", "mlflow:a/b",
                                  "mlflow:..", "tensorboard:", "mlflow:*"])
def test_what_is_no_name_is_an_error(name: str) -> None:
    with pytest.raises(BadUsage):
        named(name)


def test_paths_stay_paths(tmp_path: Path) -> None:
    (tmp_path / "wandb:x").write_text("step 1 loss 2\n")
    assert resolved(["wandb:x", "run.log", "s3://wandb:x", "-"]) == ("wandb:x", "run.log", "s3://wandb:x", "-")
    assert resolved(f"tensorboard:{FIXTURES / 'tensorboard'}") == (str(FIXTURES / "tensorboard"),)
    with pytest.raises(UnreadableInput, match="there is no folder"):
        resolved("tensorboard:nowhere")


def test_log_and_plot_take_names(tmp_path: Path, wandb_run: WandbRun) -> None:
    told = CliRunner().invoke(traindx, ["log", "wandb:me/demo/x1", "--format", "csv"])
    assert told.output.count("train/loss") == 30
    assert CliRunner().invoke(traindx, ["plot", "wandb:me/demo/x1"]).exit_code == 0
    assert (tmp_path / "traindx-plot.png").is_file()


def test_nothing_is_written_back_unless_asked(wandb_run: WandbRun) -> None:
    CliRunner().invoke(traindx, ["diagnose", "wandb:me/demo/x1"])
    assert wandb_run.saved == []


def test_the_note_stands_behind_what_was_there(wandb_run: WandbRun) -> None:
    told = CliRunner().invoke(traindx, ["diagnose", "wandb:me/demo/x1", "--note", "--json"])
    (notes, tags), = wandb_run.saved
    assert notes is not None
    assert notes.startswith("mine\n\ntraindx: ")
    assert "nan from step 25" in notes
    assert tags[:2] == ["baseline", "traindx"]
    assert json.loads(told.stdout)
    CliRunner().invoke(traindx, ["diagnose", "wandb:me/demo/x1", "--note"])
    assert wandb_run.saved[1] == wandb_run.saved[0]


def test_the_note_of_mlflow_keeps_what_the_person_wrote(mlflow_tags: dict[str, str]) -> None:
    noting_of(["mlflow:r1"]).write("lr.too-high", "text")
    assert mlflow_tags == {"mlflow.note.content": "mine\n\ntext", "traindx.verdict": "lr.too-high"}
    noting_of(["mlflow:r1"]).write("lr.too-high", "x" * 9_000)
    assert mlflow_tags["mlflow.note.content"].startswith("mine\n\ntext\n\nxxx")
    assert len(mlflow_tags["mlflow.note.content"]) <= 5_000


def test_a_note_needs_one_run_to_go_to(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    assert exit_code(monkeypatch, "diagnose", "run.log", "--note") == 2
    assert "--note writes to one run" in capsys.readouterr().err


def test_a_tracker_that_refuses_the_note_does_not_cost_the_diagnosis(wandb_run: WandbRun) -> None:
    def refuse() -> None:
        raise PermissionError("read-only key")
    wandb_run.update = refuse  # type: ignore[method-assign]
    told = CliRunner().invoke(traindx, ["diagnose", "wandb:me/demo/x1", "--note"])
    assert "no note was written" in told.stderr
    assert "nan" in told.stdout


def test_a_folder_without_event_files_is_none_of_tensorboard(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "a.conf").write_text("loss = 1\n")
    with pytest.raises(UnreadableInput, match="holds an event file"):
        resolved("tensorboard:logs")
    monkeypatch.setattr(sys, "argv", ["traindx", "log", "tensorboard:logs"])
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == 2


def test_refused_links_are_told_in_one_line_with_their_count(tmp_path: Path) -> None:
    outside = tmp_path / "outside.txt"
    outside.write_text("x\n")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "log.csv").write_text("step,loss\n1,2.0\n2,1.0\n")
    for i in range(30):
        (tmp_path / "logs" / f"link{i}").symlink_to(outside)
    ran = CliRunner().invoke(traindx, ["log", "logs"])
    told = [line for line in ran.stderr.splitlines() if "refused" in line]
    assert len(told) == 1
    assert "and 29 more" in told[0]


def test_a_folder_behind_the_name_of_a_tracker_is_told_what_to_type(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "mlruns").mkdir()
    monkeypatch.chdir(tmp_path)
    with pytest.raises(BadUsage, match=r"\./mlruns is a path that is here: give it without `mlflow:`"):
        resolved("mlflow:./mlruns")


def test_packages_that_a_tracker_lists_are_no_lines_of_a_log_that_was_not_read(tmp_path: Path) -> None:
    """wandb keeps `files/requirements.txt` beside each run: versions are numbers, and no metrics."""
    listed = "".join(f"package-{i}=={i}.{i + 1}.0\n" for i in range(40)) + "torch @ https://x.y/torch-2.1.whl\na[b]~=3.1\n"
    (tmp_path / "requirements.txt").write_text(listed)
    (tmp_path / "log.txt").write_text("".join(f"step {i} loss {2.0 - i / 40:.3f}\n" for i in range(30)))
    assert not any(a.lost for a in read_run(tmp_path).artifacts)
    (tmp_path / "bare.log").write_text("".join(f"{i} | {2 - i / 40:.3f} | 0.1\n" for i in range(30)))
    assert [a.path for a in read_run(tmp_path).artifacts if a.lost] == [str(tmp_path / "bare.log")]


def test_a_note_says_that_writing_needs_the_library_and_not_that_files_are_missing(
        monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "wandb", None)
    with pytest.raises(MissingExtra, match="writing a note to its tracker needs the package 'wandb'"):
        noting_of(["wandb:a/b/c"])
