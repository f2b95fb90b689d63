"""Input that is broken, huge or means harm is refused or bounded, and said to be."""

from __future__ import annotations

import gzip
import io
import os
import pickle
import tracemalloc
import zipfile
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.errors import UnreadableInput
from traindx_tools.on_logs import artifacts, read_run, table_of
from traindx_tools.on_logs.readers import json_records

LOG = "step 1 loss 0.5\nstep 2 loss 0.4\n"


class _Bomb:
    def __reduce__(self) -> tuple[object, tuple[str]]:
        return (exec, ("raise SystemExit('unpickled')",))


def test_pickle_archive_and_binary_are_named_and_not_opened(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG)
    (tmp_path / "a.log").write_bytes(pickle.dumps(_Bomb()))
    with zipfile.ZipFile(tmp_path / "b.txt", "w") as archive:
        archive.writestr("log.txt", LOG)
    (tmp_path / "c.txt").write_bytes(bytes(range(256)) * 40)
    run = read_run([tmp_path])
    notes = {Path(a.path).name: a for a in run.artifacts}
    assert notes["a.log"].format == "pickle"
    assert notes["b.txt"].format == "archive"
    assert notes["c.txt"].note.startswith("refused")
    assert len(run.series) == 1


def test_only_refused_files_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "x").write_bytes(pickle.dumps({1: 2}))
    with pytest.raises(UnreadableInput, match="a pickle: loading it could run code"):
        read_run([tmp_path / "x"])


def test_missing_path_names_what_is_beside_it(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(LOG)
    with pytest.raises(UnreadableInput, match=r"train\.log"):
        read_run([tmp_path / "trian.log"])


@pytest.mark.parametrize("path", ["nowhere/x.log", "nowhere-*.log"])
def test_missing_paths(path: str) -> None:
    with pytest.raises(UnreadableInput):
        read_run([path])


def test_empty_folder_and_empty_file(tmp_path: Path) -> None:
    with pytest.raises(UnreadableInput, match="holds no files"):
        read_run([tmp_path])
    (tmp_path / "log").write_text("")
    with pytest.raises(UnreadableInput, match="an empty file"):
        read_run([tmp_path])


def test_link_out_of_a_folder_is_not_followed_and_said(tmp_path: Path) -> None:
    outside = tmp_path / "secret.log"
    outside.write_text("step 1 loss 9.0\n")
    folder = tmp_path / "run"
    folder.mkdir()
    (folder / "log").write_text(LOG)
    (folder / "link.log").symlink_to(outside)
    (folder / "up").symlink_to(tmp_path)
    run = read_run([folder])
    assert len(run.series) == 1
    assert {Path(a.path).name for a in run.artifacts if a.format == "link"} == {"link.log", "up"}


def test_folder_glob_several_and_stdin(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    (tmp_path / "b.log").write_text(LOG.replace("0.5", "0.7"))
    assert len(read_run([tmp_path]).series) == 2
    assert len(read_run([str(tmp_path / "*.log")]).series) == 2
    run = read_run([tmp_path / "a.log", "-", tmp_path / "a.log"], stdin=LOG.encode())
    assert [s.source for s in run.series] == [str(tmp_path / "a.log"), "-"]


def test_a_file_a_rank_numbers_the_series(tmp_path: Path) -> None:
    for rank in (0, 1):
        (tmp_path / f"log_rank{rank}.txt").write_text(LOG)
    assert [s.rank for s in read_run([tmp_path]).series] == [0, 1]
    assert [s.rank for s in read_run([tmp_path / "log_rank1.txt"]).series] == [None]


def test_url(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    with fsspec.open("memory://run-for-a-test/log.txt", "w") as out:
        out.write(LOG)
    assert read_run(["memory://run-for-a-test"]).series[0].values.tolist() == [0.5, 0.4]
    with pytest.raises(UnreadableInput):
        read_run(["memory://not-there/x"])
    with pytest.raises(UnreadableInput, match="no URL"):
        read_run(["nosuchprotocol://x"])


def test_gzip_is_read_and_a_bomb_ends_at_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(LOG.encode()))
    assert read_run([tmp_path / "log.gz"]).series[0].values.tolist() == [0.5, 0.4]
    monkeypatch.setattr(artifacts, "MAX_UNPACKED", 100_000)
    (tmp_path / "bomb.gz").write_bytes(gzip.compress(LOG.encode() * 1_000_000))
    run = read_run([tmp_path / "bomb.gz"])
    assert len(run.series[0]) < 10_000
    assert "first 100,000 bytes" in run.artifacts[0].note


@pytest.mark.skipif(not Path("/proc/self/pagemap").exists(), reason="a file without end that the system makes up")
def test_a_file_that_is_made_up_by_the_system_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(artifacts, "MAX_MADE", 200_000)
    with artifacts.Source("pagemap", local=Path("/proc/self/pagemap")).open() as stream:
        assert len(stream.read()) <= 200_000


@pytest.mark.slow
def test_a_pattern_in_a_circle_of_links_ends_and_reads_each_file_once(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG)
    for name in ("one", "two"):
        (tmp_path / name).symlink_to(".")
    found = artifacts.discover([str(tmp_path / "**" / "*.txt")])
    assert [s.name for s in found.sources] == [str(tmp_path / "log.txt")]
    assert "matches" in found.left_out[0].note


def test_damaged_gzip_gives_what_is_before_the_damage(tmp_path: Path) -> None:
    (tmp_path / "log.gz").write_bytes(gzip.compress(LOG.encode() * 1000)[:-20])
    read_run([tmp_path / "log.gz", "-"], stdin=LOG.encode())


def test_a_line_of_100_megabytes_is_cut_and_said(within: Any) -> None:
    data = b"step 1 loss 0.5\n" + b"loss 0.5 " * 11_000_000 + b"\nstep 2 loss 0.4\n"
    with within(20):
        run = read_run(["-"], stdin=data)
    assert "1 lines longer than 64 KiB" in run.artifacts[0].note
    assert run.loss is not None
    assert run.loss.step[[0, -1]].tolist() == [1, 2]
    assert run.loss.line[-1] == 3


@pytest.mark.parametrize("line", [
    " " * 30_000 + "x" + " " * 30_000 + "5", "| a | " + " " * 60_000 + "5", "loaded," * 9_000 + "5",
    "step: 1 loss: 1.0 " * 3_500, "1," * 30_000, "((((" * 15_000 + "5", "\x1b[" * 30_000 + "5", "a=" * 30_000 + "5",
    "45%|" * 15_000, "'loss': " * 8_000 + "1", "1:" * 30_000, "- " * 30_000 + "1", "{" * 60_000 + "1",
    "epoch" * 12_000 + "1",
    "saving " * 9_000 + "1", "\x08a" * 30_000 + "1", "1/" * 30_000, "Warning" * 9_000 + "1", "nan " * 15_000,
], ids=range(19))
def test_no_line_takes_long(line: str, within: Any) -> None:
    with within(5):
        read_run(["-"], stdin=f"{line}\n".encode() * 3 + LOG.encode())


def test_deeply_nested_json_is_no_crash() -> None:
    nested = [b"[" * 200_000, b'{"a":' * 50_000]
    runs = [read_run(["-"], stdin=data + b"\n" + LOG.encode()) for data in nested]
    assert all(r.loss is not None for r in runs)


def test_a_json_document_of_more_values_than_fit_is_read_in_part_and_said(
        tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_records, "MAX_CONTAINERS", 50)
    (tmp_path / "log.json").write_text("[\n" + ",\n".join(f'{{"step": {s}, "loss": 0.5}}' for s in range(100)) + "\n]")
    run = read_run([tmp_path / "log.json"])
    assert 10 <= len(run.series[0].values) < 60
    assert "only its first" in run.artifacts[0].note


def test_columns_of_a_json_document_become_records_one_at_a_time() -> None:
    columns = {"loss": [0.5] * 100_000, "val_loss": [0.6] * 10}
    tracemalloc.start()
    records = json_records.records_in(columns)
    counted = sum(len(r) for r in records)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert counted == 100_010
    assert records[:1][0] == {"loss": 0.5, "val_loss": 0.6}
    assert peak < 2**20  # 100,000 dicts would take 23 MiB


@pytest.mark.slow
def test_too_many_names_are_left_out_and_said() -> None:
    lines = io.StringIO()
    for i in range(5500):
        name = "".join(chr(97 + int(d)) for d in str(i))
        lines.write(f"step {i} q{name}=0.5 loss=1.0\n")
    run = read_run(["-"], stdin=lines.getvalue().encode())
    assert "too many different names" in run.artifacts[0].note
    assert run.loss is not None
    assert len(run.loss) == 5500


def test_code_and_configuration_in_a_folder_are_named_not_run(tmp_path: Path) -> None:
    (tmp_path / "log.txt").write_text(LOG)
    (tmp_path / "train.py").write_text("raise SystemExit(1)")
    (tmp_path / "config.yaml").write_text("optim:\n  lr: 0.1\n")
    run = read_run([tmp_path])
    assert {Path(a.path).name: a.format for a in run.artifacts} == {
        "log.txt": "free_text", "train.py": "python", "config.yaml": "yaml"}
    assert run.config["optim.lr"] == 0.1


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_wide_encodings_are_read_with_and_without_a_mark(encoding: str) -> None:
    run = read_run(["-"], stdin=(LOG * 20).encode(encoding))
    assert [s.name for s in run.series] == ["loss"]


def test_small_integers_of_two_bytes_are_no_text() -> None:
    tokens = b"".join(i.to_bytes(2, "little") for i in range(40_000))
    with pytest.raises(UnreadableInput, match="binary data"):
        read_run(["-"], stdin=tokens)


def test_a_hole_of_zeros_in_a_log_is_passed_over() -> None:
    run = read_run(["-"], stdin=(LOG * 20).encode() + bytes(100_000))
    assert run.loss is not None
    assert len(run.loss) == 40


def test_a_number_beyond_counting_is_no_step() -> None:
    lines = "".join(f'{{"step": 1e308, "loss": {i}.5}}\n' for i in range(9))
    run = read_run(["-"], stdin=lines.encode())
    assert run.loss is not None
    assert run.loss.unit == "line"


def test_a_pipe_among_what_a_pattern_matches_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    os.mkfifo(tmp_path / "b.log")
    run = read_run([str(tmp_path / "*.log")])
    assert [Path(a.path).name for a in run.artifacts if a.note] == ["b.log"]
    with pytest.raises(UnreadableInput, match="a pipe"):
        read_run([tmp_path / "b.log"])


def test_a_file_url_is_the_file(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text(LOG)
    assert read_run([f"file://{tmp_path}/a.log"]).series[0].source == str(tmp_path / "a.log")


def test_a_table_of_thousands_of_ranks_is_bounded_and_holds_no_commands_to_a_terminal(tmp_path: Path,
                                                                                      within: Any) -> None:
    (tmp_path / "m.csv").write_text("step,lo\x1b[2Jss\n" + "".join(f"{i},1\n" for i in range(9)))
    assert "\x1b" not in table_of(read_run([tmp_path])).render()
    log = "".join(f"[rank{i % 3000}] step {i} loss 1.0\n" for i in range(6000))
    with within(10):
        text = table_of(read_run(["-"], stdin=log.encode())).render()
    assert "2800 more metrics" in text


@pytest.mark.parametrize("blank", ["\x85", "\u2028"])
def test_a_name_of_blanks_alone_announces_nothing(blank: str) -> None:
    run = read_run(["-"], stdin=f"{blank}: train 0.5 val 0.6\n".encode() * 6)
    assert run is not None
