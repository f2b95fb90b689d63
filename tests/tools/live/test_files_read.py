"""Which data files a program opens, and what the data of a run are with that."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parents[1] / "on_data" / "support"))

import data_making as making

from traindx_tools.examine import examine
from traindx_tools.live.files_read import FileRead, FilesRead, read_from, watch_files
from traindx_tools.live.reading import LiveFile, LiveRun
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.on_settings.written import read as read_settings

CODE = """import numpy as np, torch, pathlib
here = pathlib.Path("data")
parts = [np.load(p) for p in sorted(here.iterdir())[:5]]
model = torch.nn.Linear(parts[0]["x"][0].size, 50)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
for step, rows in enumerate(parts):
    x = torch.from_numpy(rows["x"]).float().flatten(1)
    loss = torch.nn.functional.cross_entropy(model(x), torch.from_numpy(rows["y"]).long())
    loss.backward()
    optimizer.step()
"""


def test_files_that_are_opened_by_any_reader_are_noted_with_the_line(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    files = watch_files()
    monkeypatch.setattr(files, "_read", {})  # other tests of this process may have filled it
    np.save(tmp_path / "rows.npy", np.arange(12))
    (tmp_path / "table.csv").write_text("a,b\n1,2\n")
    (tmp_path / "written.jsonl").write_text("{}\n")
    (tmp_path / "code.py").write_text("")
    other = tmp_path / "other.npy"
    np.save(other, np.arange(3))
    os.rename(other, tmp_path / "moved.npy")
    for _ in range(2):
        np.load(tmp_path / "moved.npy")  # the line that is told
    np.load(tmp_path / "moved.npy", mmap_mode="r")
    (tmp_path / "code.py").read_text()
    (tmp_path / "written.jsonl").read_text()
    told = {Path(r["path"]).name: r for r in files.told() if r["path"].startswith(str(tmp_path))}
    assert list(told) == ["moved.npy"]
    line = Path(__file__).read_text().splitlines()[told["moved.npy"]["line"] - 1]
    assert line.endswith("# the line that is told")
    assert told["moved.npy"]["file"] == __file__


def test_odd_events_and_odd_records_are_survived() -> None:
    files = FilesRead()
    for path, mode, flags in ((3, "r", 0), (None, None, None), (b"\xff.npy", None, 0), ("x.npy", 7, "flags")):
        files.opened(path, mode, flags)
    assert len(files.told()) <= 2
    assert read_from([{"path": 3}, "text", {"path": ""}, {"path": "a.npy", "line": "x"}]) == (FileRead("a.npy"),)


def test_files_of_a_copy_are_those_of_the_folder(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    np.save(tmp_path / "data" / "a.npy", np.arange(3))
    seen = LiveFile(Path("rank00000.jsonl"), cwd="/gone/copy", read=(
        FileRead("/gone/copy/data/a.npy", "/gone/copy/train.py", 3), FileRead("/gone/copy/data/b.npy")))
    assert LiveRun((seen,)).data_files(tmp_path) == (FileRead(str(tmp_path / "data/a.npy"), "/gone/copy/train.py", 3),)


def spoilt(i: int, rows: making.Rows, rng: np.random.Generator) -> making.Rows:
    return {**rows, "x": rows["x"] * 255} if i == 3 else rows


@pytest.mark.slow
def test_findings_of_files_say_who_read_them_and_which_were_not_read(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    import subprocess

    folder = tmp_path / "run"
    (folder / "data").mkdir(parents=True)
    making.series(folder / "data", "npz", spoilt)
    (folder / "train.py").write_text(CODE)
    settings = environment_for(Settings(str(folder / "traindx-run" / "1")), os.environ)
    done = subprocess.run([sys.executable, "train.py"], cwd=folder, env=settings, timeout=120, check=False,
                          capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    seen = examine([folder], root=folder)
    scale = next(f for f in seen.findings if f.rule == "D104")
    assert scale.measured["read_by"] == "train.py:3"
    left = next(f for f in seen.findings if f.rule == "D121")
    kept = len(list((folder / "data").iterdir())) - 5
    assert (left.measured["files"], left.severity.value) == (kept, "info")
    records = [json.loads(line) for p in folder.rglob("rank*.jsonl") for line in p.read_text().splitlines()]
    assert len(next(r for r in records if r["kind"] == "files")["read"]) == 5


def test_configuration_of_an_earlier_session_or_read_by_these_instruments_is_none_of_the_program(tmp_path, monkeypatch):
    seen, (own, ours) = watch_files(), (tmp_path / "own.json", tmp_path / "ours.json")
    monkeypatch.setattr(seen, "_read", dict.fromkeys(map(str, range(10_000)), ("", 0)))  # data hides no setting
    for path in (own, ours):
        (tmp_path / "new").write_text("{}")
        (tmp_path / "new").rename(path)  # a file that this process writes is none of its settings
    seen.settings_anew()
    assert own.read_text() == "{}"
    assert read_settings(str(ours)) is not None
    assert seen.settings == [str(own)]
    seen.settings_anew()
    assert seen.settings == []
