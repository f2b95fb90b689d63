"""Run files of Weights & Biases: written by wandb 0.31 itself, and the broken ones that a reader meets."""

from __future__ import annotations

import json
import math
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import Run, Series, read_run

FIXTURE = Path(__file__).parents[3] / "fixtures" / "trackers" / "wandb"
FILE = next(FIXTURE.glob("*/*.wandb"))


def series(run: Run, original: str) -> Series:
    return next(s for s in run.series if s.original == original)


def note(run: Run, form: str = "wandb") -> str:
    return next(a.note for a in run.artifacts if a.format == form)


def only(tmp_path: Path, data: bytes) -> Path:
    path = tmp_path / "run-x.wandb"
    path.write_bytes(data)
    return path


def test_every_metric_has_its_values_steps_and_group() -> None:
    run = read_run(FIXTURE)
    loss, held_out, rate = series(run, "train/loss"), series(run, "val/loss"), series(run, "optim.lr")
    np.testing.assert_array_equal(loss.values, [2.0 / (i + 1) if i < 25 else math.nan for i in range(30)])
    np.testing.assert_array_equal(loss.step, range(30))
    assert (loss.name, loss.group) == ("loss", "train")
    np.testing.assert_array_equal(held_out.values, [1.5 / (i + 1) for i in (9, 19, 29)])
    assert (held_out.name, held_out.group) == ("loss", "validation")
    np.testing.assert_array_equal(held_out.epoch, [0, 1, 2])
    assert rate.name == "learning_rate"
    assert set(rate.values) == {0.1}
    assert run.config["lr"] == 0.1
    assert run.config["model.dim"] == 48


def test_the_machine_is_told_from_the_run() -> None:
    memory = series(read_run(FIXTURE), "system/proc.memory.rssMB")
    assert memory.name.startswith("system/")
    assert np.isnan(memory.step).all()
    assert (np.diff(memory.time) > 0).all()


def test_what_is_not_used_is_counted() -> None:
    assert "33 values that are no number (text, histograms, media): not used" in note(read_run(FIXTURE))


def test_the_console_is_read_for_errors_once(tmp_path: Path) -> None:
    assert [e.source.rpartition("/")[2] for e in read_run(FIXTURE).errors] == ["output.log"]
    assert len(read_run(only(tmp_path, FILE.read_bytes())).errors) == 1


def test_a_file_that_is_still_written_is_read_to_where_it_ends(tmp_path: Path) -> None:
    run = read_run(only(tmp_path, FILE.read_bytes()[:20_000]))
    loss = series(run, "train/loss")
    np.testing.assert_array_equal(loss.step, range(len(loss)))
    assert 5 < len(loss) < 30
    assert "it ends in the middle of a record" in note(run)


def test_a_wrong_checksum_costs_one_block_and_is_said(tmp_path: Path) -> None:
    data = bytearray(FILE.read_bytes())
    data[15_000] ^= 0xFF
    run = read_run(only(tmp_path, bytes(data)))
    assert 0 < len(series(run, "train/loss")) < 30
    assert "damaged records skipped" in note(run)


@pytest.mark.parametrize("at", range(0, 2_000, 97))
def test_no_cut_and_no_flipped_byte_stops_it(tmp_path: Path, at: int) -> None:
    data = bytearray(FILE.read_bytes())
    data[7 + at] ^= 0x55
    read_run(only(tmp_path, bytes(data)))
    read_run(only(tmp_path, bytes(data[:7 + at])))


def chunk(data: bytes, kind: int = 1, length: int | None = None) -> bytes:
    return struct.pack("<IHB", zlib.crc32(data, zlib.crc32(bytes([kind]))), len(data) if length is None else length,
                       kind) + data


@pytest.mark.parametrize("body", [
    chunk(b"\x12\xff\xff\xff\xff\x0f"), chunk(b"\x12\x04\x0a\x02\x0a\x7f"), chunk(b"x", length=65_535),
    chunk(b"", 3) * 9, chunk(b"a", 4), chunk(b"a", 2), b"\0" * 100, b"\xff" * 40_000,
    chunk(b"\x12\x0b\x0a\x09\x0a\x01k\x82\x01\x03{{{")])
def test_hostile_records_give_a_note(tmp_path: Path, body: bytes) -> None:
    run = read_run(only(tmp_path, b":W&B\xe1\xbe\0" + body))
    assert not run.series
    assert "it holds no metrics" in note(run)


def test_a_metric_that_counts_steps_places_the_others(tmp_path: Path) -> None:
    """As the Trainer of transformers defines it: `define_metric("*", step_metric="train/global_step")`."""
    def item(name: str, value: float) -> bytes:
        return field(1, field(2, name.encode()) + field(16, json.dumps(value).encode()))

    def field(number: int, value: bytes) -> bytes:
        key = number << 3 | 2
        head = bytes([key]) if key < 128 else bytes([key & 127 | 128, key >> 7])
        return head + bytes([len(value)]) + value

    records = [field(12, field(2, b"*") + field(4, b"train/global_step"))]
    records += [field(2, item("train/global_step", i * 50) + item("train/loss", 2 - i / 9) + item("_step", i))
                for i in range(8)]
    run = read_run(only(tmp_path, b":W&B\xe1\xbe\0" + b"".join(map(chunk, records))))
    np.testing.assert_array_equal(series(run, "train/loss").step, [i * 50 for i in range(8)])
    assert [s.original for s in run.series] == ["train/loss"]


def test_a_summary_is_no_configuration(tmp_path: Path) -> None:
    (tmp_path / "wandb-summary.json").write_text(
        '{"lr": 0.5, "train/loss": 0.1, "_runtime": 3, "_wandb": {"runtime": 3}}')
    (tmp_path / "run-x.wandb").write_bytes(FILE.read_bytes())
    run = read_run(tmp_path)
    assert run.config["lr"] == 0.1
    assert "the last values of 2 metrics: not used" in note(run, "wandb_summary")


def test_its_own_log_holds_no_metrics(tmp_path: Path) -> None:
    (tmp_path / "debug.log").write_text("2026-11-30 02:23:35,278 INFO    MainThread:9487 [wandb_setup.py:_flush():80] "
                                        "Configure stats pid to 9487\n" * 5)
    assert not read_run(tmp_path).series


def test_an_empty_file_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput):
        read_run(only(tmp_path, b""))
