"""What a good run had, kept in numbers; and what is otherwise in a bad one."""

from __future__ import annotations

import json
import struct
from pathlib import Path

import numpy as np
import pytest

from traindx import cli
from traindx_tools.errors import UnreadableInput
from traindx_tools.fingerprint import compare, load, take


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Four shards, a configuration with a secret, a checkpoint."""
    rng = np.random.default_rng(0)
    folder = tmp_path / "run"
    (folder / "data").mkdir(parents=True)
    for i in range(4):
        np.savez(folder / "data" / f"part_{i}.npz", x=rng.normal(size=(200, 3)), y=rng.integers(0, 4, 200))
    (folder / "config.yaml").write_text("lr: 0.001\nmodel:\n  width: 32\napi_key: hush-hush\n")
    weights(folder / "model.safetensors", 1.0)
    return folder


def weights(path: Path, scale: float) -> None:
    raw = (np.random.default_rng(1).normal(size=(8, 8)) * scale).astype("<f4").tobytes()
    head = json.dumps({"w": {"dtype": "F32", "shape": [8, 8], "data_offsets": [0, len(raw)]}}).encode()
    path.write_bytes(struct.pack("<Q", len(head)) + head + raw)


def differences(run: Path, kept: Path) -> list[tuple[str, str]]:
    return [(d.kind, f"{d.place}: {d.said}") for d in compare(load(kept), take([run]))]


@pytest.fixture
def kept(run: Path, tmp_path: Path) -> Path:
    out = tmp_path / "good.json"
    assert cli.run(["fingerprint", str(run), "--out", str(out)]) == 0
    return out


def test_the_same_run_differs_in_nothing(run: Path, kept: Path) -> None:
    assert differences(run, kept) == []
    assert cli.run(["fingerprint", str(run), "--against", str(kept)]) == 0


def test_a_moved_folder_is_the_same_run(run: Path, kept: Path, tmp_path: Path) -> None:
    moved = run.rename(tmp_path / "elsewhere")
    assert differences(moved, kept) == []


def test_a_shard_of_another_scale_is_named_first(run: Path, kept: Path) -> None:
    with np.load(run / "data" / "part_2.npz") as held:
        np.savez(run / "data" / "part_2.npz", x=held["x"] * 255.0, y=held["y"])
    kind, first = differences(run, kept)[0]
    assert kind == "data"
    assert first.startswith("data/part_2.npz:x: standard deviation")
    assert "times 255" in first


def test_labels_of_another_mix(run: Path, kept: Path) -> None:
    with np.load(run / "data" / "part_1.npz") as held:
        np.savez(run / "data" / "part_1.npz", x=held["x"], y=(held["y"] + 1))
    found = differences(run, kept)
    assert any("values that were not there: 4" in said for _, said in found)
    assert any("of the values moved to other classes" in said for _, said in found)


def test_settings_weights_files_and_versions(run: Path, kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (run / "config.yaml").write_text("lr: 0.1\nmodel:\n  width: 32\n")
    weights(run / "model.safetensors", 3.0)
    (run / "data" / "part_3.npz").unlink()
    (run / "vocab.txt").write_text("a\nb\n")
    monkeypatch.setattr("traindx_tools.fingerprint.taking.metadata.version", lambda _: "99.0")
    found = dict(reversed([(f"{k} {s.split(':')[0]}", s) for k, s in differences(run, kept)]))
    assert "0.001 -> 0.1" in found["setting config.yaml"]
    assert "times 3" in found["weights model.safetensors"]
    assert "is not there any more" in found["file data/part_3.npz"]
    assert "is new" in found["file vocab.txt"]
    assert "-> 99.0" in found["version numpy"]


def test_rows_in_another_order_are_other_bytes_with_statistics_that_agree(run: Path, kept: Path) -> None:
    with np.load(run / "data" / "part_0.npz") as held:
        order = np.random.default_rng(3).permutation(200)
        np.savez(run / "data" / "part_0.npz", x=held["x"][order], y=held["y"][order])
    assert [(k, "statistics that agree" in s) for k, s in differences(run, kept)] == [("file", True)]


def test_no_secret_and_no_row_is_kept(run: Path, kept: Path) -> None:
    text = kept.read_text()
    assert "hush" not in text
    with np.load(run / "data" / "part_0.npz") as held:
        assert not any(repr(float(v)) in text for v in held["x"].reshape(-1)[5:50])


def test_what_is_not_finite_survives_the_file(run: Path, tmp_path: Path) -> None:
    weights(run / "model.safetensors", float("nan"))
    out = tmp_path / "nan.json"
    assert cli.run(["fingerprint", str(run), "--out", str(out)]) == 0
    assert differences(run, out) == []
    json.loads(out.read_text(), parse_constant=lambda c: pytest.fail(f"{c} is no JSON"))


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"traindx": "fingerprint", "version": 1}', '{"traindx": 3}'])
def test_another_file_is_no_fingerprint(tmp_path: Path, text: str) -> None:
    path = tmp_path / "x.json"
    path.write_text(text)
    with pytest.raises(UnreadableInput, match="is no fingerprint"):
        load(path)


def test_a_later_version_says_so(tmp_path: Path) -> None:
    path = tmp_path / "x.json"
    path.write_text('{"traindx": "fingerprint", "version": 9}')
    with pytest.raises(UnreadableInput, match="take it anew"):
        load(path)


def test_bad_usage_is_told_in_one_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.run(["fingerprint"]) == 2
    assert cli.run(["fingerprint", str(tmp_path / "nowhere")]) == 2
    assert "no such file or folder" in capsys.readouterr().err


def test_a_file_that_cannot_be_read_holds_no_data(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.npz").write_bytes(b"no archive at all" * 20)
    assert take([tmp_path]).data == {}
    cli.run(["fingerprint", str(tmp_path)])
    assert "1 files, 0 with data" in capsys.readouterr().out
    np.savez(tmp_path / "x.npz", x=np.zeros((4, 2)))
    assert set(take([tmp_path]).data) == {"x.npz"}
