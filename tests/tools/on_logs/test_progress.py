"""How far the reading of a large log is, told to who asks and to nobody else."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import progress
from traindx_tools.on_logs.reading import read_run

TEXT = "".join(f"step {i} loss {3 - i / 40_000:.4f}\n" for i in range(100_000))
TABLE = "step,loss\n" + "".join(f"{i},{3 - i / 40_000:.4f}\n" for i in range(100_000))
JSON = "".join(f'{{"step": {i}, "loss": {3 - i / 40_000:.4f}}}\n' for i in range(60_000))


@pytest.mark.parametrize(("name", "text"), [("train.log", TEXT), ("train.csv", TABLE), ("train.jsonl", JSON)])
def test_a_large_file_is_told_to_its_end(name: str, text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(progress, "LARGE", 2**20)
    path = tmp_path / name
    path.write_text(text)
    seen: list[tuple[str, int, int]] = []
    with progress.told(lambda *far: seen.append(far)):
        read_run([path])
    assert {s[0] for s in seen} == {str(path)}
    assert [s[1] for s in seen] == sorted(s[1] for s in seen)
    assert seen[-1][1] == seen[-1][2] == path.stat().st_size
    count = len(seen)
    read_run([path])
    assert len(seen) == count  # nobody is told behind its end


def test_small_and_broken_files_say_nothing(tmp_path: Path) -> None:
    (tmp_path / "small.log").write_text(TEXT[:10_000])
    (tmp_path / "broken.log").write_bytes(b"\xff\xfe" * 1000)
    seen: list[tuple[str, int, int]] = []
    with progress.told(lambda *far: seen.append(far)):
        read_run([tmp_path])
    assert not seen


def test_words() -> None:
    assert progress.in_words("a.log", 610_000_000, 1_000_000_000) == "reading a.log: ######---- 61 % of 1.0 GB"
    assert progress.in_words("a.log", 0, 50_000_000) == "reading a.log: ---------- 0 % of 50 MB"
    assert progress.in_words("a.log", 5, 5) == "judging a.log"
