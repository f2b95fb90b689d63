"""The facts of a program are recorded, replaced by later ones, bounded by the summary, and read again."""

from __future__ import annotations

import json
from pathlib import Path

from traindx_tools.live.reading import read_folder
from traindx_tools.live.recording import FileRecorder


def test_the_last_facts_are_those_that_are_read(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path, rank=lambda: 0)
    recorder.facts("timeline: 1 forward")
    recorder.facts("timeline: 9 forward\nmodel Net: trained")
    recorder.facts("")
    recorder.end("ok")
    assert read_folder(tmp_path).facts == "timeline: 9 forward\nmodel Net: trained"
    summary = json.loads((tmp_path / "rank00000.summary.json").read_text())
    assert summary["facts"] == ["timeline: 9 forward", "model Net: trained"]


def test_a_run_without_facts_has_none(tmp_path: Path) -> None:
    recorder = FileRecorder(tmp_path, rank=lambda: 0)
    recorder.mark("other", text=3)
    recorder.end("ok")
    assert read_folder(tmp_path).facts == ""
    assert read_folder(tmp_path / "none").facts == ""


def test_the_lowest_rank_speaks(tmp_path: Path) -> None:
    for rank in (2, 1):
        recorder = FileRecorder(tmp_path, rank=lambda rank=rank: rank)
        recorder.facts(f"of rank {rank}")
        recorder.end("ok")
    (tmp_path / "rank00000.jsonl").write_text('{"traindx": "live", "kind": "start", "rank": 0}\n{"kind": "facts"}\n')
    assert read_folder(tmp_path).facts == "of rank 1"
