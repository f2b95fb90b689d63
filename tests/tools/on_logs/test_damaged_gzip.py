"""A packed log that breaks off is read as far as it goes, and a packed file of which nothing comes is no empty one."""

from __future__ import annotations

import gzip
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import read_run, reading

TEXT = "".join(f"step {i} loss {2 * 0.999**i + i * 7919 % 101 / 1e4:.6f}\n" for i in range(4000)).encode()


def test_what_comes_before_the_damage_is_read_and_the_damage_is_said(tmp_path: Path) -> None:
    packed = gzip.compress(TEXT)
    (tmp_path / "half.log.gz").write_bytes(packed[: len(packed) // 2])
    run = read_run([tmp_path / "half.log.gz"])
    assert run.loss is not None
    assert 1000 < len(run.loss) < 3000
    assert "damaged gzip stream" in run.artifacts[0].note
    assert run.artifacts[0].in_part.startswith("damaged gzip stream")


def test_a_whole_one_says_nothing_of_damage(tmp_path: Path) -> None:
    (tmp_path / "whole.log.gz").write_bytes(gzip.compress(TEXT))
    run = read_run([tmp_path / "whole.log.gz"])
    assert run.loss is not None
    assert len(run.loss) == 4000
    assert "damaged" not in run.artifacts[0].note
    assert not run.artifacts[0].in_part


@pytest.mark.parametrize("data", [b"\x1f\x8b\x08garbage", b"\x1f\x8b\x08", gzip.compress(TEXT, mtime=0)[:12]])
def test_a_broken_one_is_not_called_empty(data: bytes, tmp_path: Path) -> None:
    (tmp_path / "bad.log.gz").write_bytes(data)
    with pytest.raises(UnreadableInput, match="damaged gzip stream") as refused:
        read_run([tmp_path / "bad.log.gz"])
    assert "empty file" not in str(refused.value)


def test_an_empty_log_that_was_packed_is_empty(tmp_path: Path) -> None:
    (tmp_path / "empty.log.gz").write_bytes(gzip.compress(b""))
    with pytest.raises(UnreadableInput, match="an empty file"):
        read_run([tmp_path / "empty.log.gz"])


@pytest.mark.parametrize(("left", "said"), [(0.3, True), (1.0, False), (1.5, False)])
def test_a_log_that_becomes_shorter_while_it_is_read_is_told(left: float, said: bool, tmp_path: Path,
                                                             monkeypatch: pytest.MonkeyPatch) -> None:
    log, read = tmp_path / "train.log", reading._with_errors
    log.write_bytes(TEXT)

    def cut(*given: Any) -> Any:
        log.write_bytes((TEXT * 2)[: int(left * len(TEXT))])
        return read(*given)

    monkeypatch.setattr(reading, "_with_errors", cut)
    (artifact,) = read_run([log]).artifacts
    assert ("became shorter while it was read" in artifact.in_part) is said
