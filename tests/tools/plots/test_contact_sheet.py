"""The contact sheet: which samples are shown, and that each kind of data can be drawn."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from matplotlib.image import imread

from traindx.cli import run
from traindx.diagnose import diagnose
from traindx_tools.errors import UnreadableInput
from traindx_tools.on_data import examine
from traindx_tools.plots.contact_sheet import ACROSS, _extent, contact_sheet, samples, samples_of


def pictures(folder: Path, odd: int | None) -> None:
    """Six shards of bright and dark pictures; the labels of the odd one are shifted."""
    rng = np.random.default_rng(0)
    for i in range(6):
        y = rng.integers(0, 4, 200)
        x = (rng.normal(size=(200, 8, 8)) * 10 + y[:, None, None] * 40).clip(0, 255).astype(np.uint8)
        np.savez(folder / f"part_{i}.npz", x=x, y=(y + 1) % 4 if i == odd else y)


def test_rows_of_the_odd_shard_stand_first_beside_those_of_its_siblings(tmp_path: Path) -> None:
    pictures(tmp_path, odd=2)
    report = examine([tmp_path])
    chosen = samples(report.sets[0], report.wrong)
    assert [Path(s.shard.name).name for s in chosen[:ACROSS]] == ["part_2.npz"] * ACROSS
    assert all(s.why is not None and s.why.rule == "D108" for s in chosen[:ACROSS])
    assert {Path(s.shard.name).name for s in chosen[ACROSS:]} == {f"part_{i}.npz" for i in (0, 1, 3, 4, 5)}


def test_rows_that_a_finding_names_are_the_ones_shown(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(300, 16)).astype(np.float32)
    x[123] = 1e6
    np.savez(tmp_path / "train.npz", x=x, y=rng.integers(0, 3, 300))
    report = examine([tmp_path])
    named = [s for s in samples(report.sets[0], report.wrong) if s.why is not None]
    assert [s.row for s in named] == [123]


def test_healthy_data_show_samples_of_every_file(tmp_path: Path) -> None:
    pictures(tmp_path, odd=None)
    report = examine([tmp_path])
    chosen = samples(report.sets[0], report.wrong)
    assert all(s.why is None for s in chosen)
    assert len({s.shard.name for s in chosen}) == 6


def _texts(folder: Path) -> None:
    rows = [{"text": f"the {i}th sentence of many", "label": i % 2} for i in range(60)]
    (folder / "train.jsonl").write_text("\n".join(map(json.dumps, rows)))


def _table(folder: Path) -> None:
    (folder / "train.csv").write_text("a,b,y\n" + "".join(f"{i * 0.5},{-i},{i % 2}\n" for i in range(60)))


def _channels(folder: Path) -> None:
    x = np.random.default_rng(0).random((60, 3, 9, 7)).astype(np.float32)
    x[3, 0, 0, 0] = np.nan
    np.savez(folder / "train.npz", x=x, y=np.arange(60) % 2)


def _constant(folder: Path) -> None:
    np.savez(folder / "train.npz", x=np.zeros((60, 8, 8), np.float32), y=np.arange(60) % 2)


@pytest.mark.slow
@pytest.mark.parametrize("make", [_texts, _table, _channels, _constant])
def test_every_kind_of_data_is_drawn(tmp_path: Path, make: object) -> None:
    assert callable(make)
    make(tmp_path)
    out = contact_sheet(examine([tmp_path]), tmp_path / "sheet.png")
    picture = imread(out)
    assert picture.shape[1] == 1500
    assert len(np.unique(picture[:, :, :3].reshape(-1, 3), axis=0)) > 20


def test_one_scale_of_grey_for_all(tmp_path: Path) -> None:
    """The dark picture is darker than the bright one on the sheet: each scaled for itself would look alike."""
    x = np.concatenate([np.full((30, 8, 8), 10.0), np.full((30, 8, 8), 200.0)]).astype(np.float32)
    x += np.random.default_rng(0).normal(size=x.shape).astype(np.float32)
    np.savez(tmp_path / "train.npz", x=x, y=np.repeat([0, 1], 30))
    picture = imread(contact_sheet(examine([tmp_path]), tmp_path / "sheet.png"))[:, :, 0]
    inner = picture[int(picture.shape[0] * 0.3):]
    assert (inner < 0.2).mean() > 0.1
    assert ((inner > 0.8) & (inner < 0.999)).mean() > 0.1


def test_nothing_to_show_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "notes.txt").write_text("no data\n")
    with pytest.raises(UnreadableInput, match="no sample to show"):
        contact_sheet(examine([tmp_path]), tmp_path / "sheet.png")
    assert samples_of([], tmp_path / "sheet.png") is None


def test_the_command_and_the_report_draw_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / "run" / "data"
    data.mkdir(parents=True)
    pictures(data, odd=2)
    assert run(["data", str(data), "--sheet", str(tmp_path / "sheet.png")]) == 1
    assert imread(tmp_path / "sheet.png").shape[1] == 1500
    (data.parent / "train.log").write_text("".join(f"step {i} loss {2 - i * 0.01:.3f}\n" for i in range(60)))
    files = diagnose([data.parent]).write(tmp_path / "out")
    assert files["samples"].endswith("samples.png")


def test_signals_share_one_vertical_axis() -> None:
    small, large = np.linspace(0, 1, 50), np.linspace(0, 16, 50)
    low, high = _extent([small, large])
    assert low < 0
    assert 15 < high < 18, "a file of another scale is seen as one"
    assert _extent([small, np.array([np.nan, 1e6])])[1] < 1e6, "a single value does not flatten all others"
    assert _extent([]) == (0.0, 1.0)
