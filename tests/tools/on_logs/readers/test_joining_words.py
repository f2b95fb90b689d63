"""Words that join others (in, of, at, per) name no value, whatever unit stands behind it."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run


def named(tmp_path: Path, line: str) -> set[str]:
    log = tmp_path / "train.log"
    log.write_text("".join(line.format(i=i, s=1.2 + i % 7, v=3 - i / 20, n=512_000 + 3 * i) + "\n"
                           for i in range(1, 20)))
    return {s.name for s in read_run([log]).series}


@pytest.mark.parametrize("line", [
    "Train {n} in {s:.1f} seconds loss {v:.3f}", "step {i} loss {v:.3f} within {s:.2f} ms",
    "step {i} loss {v:.3f} with {s:.2f} GB on {s:.1f} ms", "step {i} loss {v:.3f} for {s:.2f} min",
    "step {i} loss {v:.3f} of {s:.2f}k", "step {i} loss {v:.3f} per {s:.3f} s and {s:.1f} h",
])
def test_a_joining_word_names_nothing(tmp_path: Path, line: str) -> None:
    assert named(tmp_path, line) == {"loss"}


@pytest.mark.parametrize(("line", "name"), [
    ("step {i} loss {v:.3f} at {s:.1f} it/s", "throughput"), ("step {i} loss {v:.3f} took {s:.1f} s", "time/took"),
    ("step {i} loss {v:.3f} PER: {s:.2f}", "per"), ("step {i} loss {v:.3f} IoU of {s:.2f}", "iou"),
    ("step {i} loss {v:.3f} forward {s:.1f} ms", "time/forward"),
    ("step {i} loss {v:.3f} memory at {s:.1f} GB", "memory"),
])
def test_what_only_looks_like_one_is_a_name(tmp_path: Path, line: str, name: str) -> None:
    assert named(tmp_path, line) == {"loss", name}


def test_a_line_of_joining_words_alone_is_counted_and_harmless(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"step {i} loss {3 - i / 20}\nin {i} of at 2.5 s per\x00 {i}.{i}.{i} for nan s\n"
                           for i in range(9)))
    run = read_run([log])
    assert {s.name for s in run.series} == {"loss"}
    assert run.artifacts[0].unused
