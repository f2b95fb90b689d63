"""Logs that are packed with zstandard are read like others; damage costs what stands behind it, a bomb ends."""

from __future__ import annotations

import importlib
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import artifacts, read_run

pyarrow = pytest.importorskip("pyarrow")
LINES = "".join(f"step {i} loss {2 - i / 100_000:.5f} lr 1e-{i % 7}\n" for i in range(50_000))


def packed(text: str) -> bytes:
    data: bytes = pyarrow.compress(text.encode(), codec="zstd", asbytes=True)
    return data


def test_a_packed_log_is_read_whatever_it_is_called(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_bytes(packed(LINES))
    run = read_run(tmp_path)
    assert len(run.series[0]) == 50_000
    assert run.series[0].values[-1] == pytest.approx(2 - 49_999 / 100_000)


def test_a_packed_table_is_a_table(tmp_path: Path) -> None:
    (tmp_path / "metrics.csv.zst").write_bytes(packed("step,loss\n" + "".join(f"{i},{i / 2}\n" for i in range(9))))
    assert read_run(tmp_path).series[0].values.tolist() == [i / 2 for i in range(9)]


def test_a_cut_stream_gives_what_stands_before_the_cut(tmp_path: Path) -> None:
    data = packed(LINES)
    (tmp_path / "train.log.zst").write_bytes(data[:len(data) // 2])
    assert 1_000 < len(read_run(tmp_path).series[0]) < 50_000


def test_a_stream_that_is_none_is_refused_in_words(tmp_path: Path) -> None:
    (tmp_path / "train.log.zst").write_bytes(b"\x28\xb5\x2f\xfd" + b"nothing of the kind" * 9)
    with pytest.raises(UnreadableInput, match="zstandard"):
        read_run(tmp_path)


def test_a_bomb_ends_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_UNPACKED", 100_000)
    (tmp_path / "train.log.zst").write_bytes(packed(LINES))
    run = read_run(tmp_path)
    assert len(run.series[0]) < 5_000
    assert "only the first 100,000 bytes of what was packed were read" in run.artifacts[0].note


def test_without_a_library_it_is_said_how_to_read_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "train.log.zst").write_bytes(packed(LINES))

    def missing(name: str) -> Any:
        raise ImportError(name)

    monkeypatch.setattr(importlib, "import_module", missing)
    with pytest.raises(UnreadableInput, match=r"pip install 'traindx\[data\]' reads it|pip install"):
        read_run(tmp_path)
