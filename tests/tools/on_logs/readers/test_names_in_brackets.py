"""Names in brackets of their own, sentences, folders of a path, devices of torch_xla: what a number is named by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, read_run


def read(tmp_path: Path, lines: list[str]) -> Run:
    log = tmp_path / "train.log"
    log.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return read_run([log])


def metrics(run: Run) -> dict[str, list[float]]:
    return {s.name: list(s.values) for s in run.series}


def test_names_and_counters_in_brackets_are_those_of_what_follows(tmp_path: Path) -> None:
    run = read(tmp_path, [f"| [R0] | E{e} iter[ 14/ 15] | [Loss] {9.5 - e} | [lr] 0.001 | [step] {15 * e + 14} |"
                          for e in range(6)])
    (loss,) = [s for s in run.series if s.name == "loss"]
    assert list(loss.values) == [9.5 - e for e in range(6)]
    assert list(loss.step) == [15 * e + 14 for e in range(6)]  # not the place within the epoch, which stands still
    assert metrics(run)["learning_rate"] == [0.001] * 6


@pytest.mark.parametrize("word", ["train", "INFO", "rank0", "conv"])
def test_other_words_in_brackets_name_nothing(tmp_path: Path, word: str) -> None:
    run = read(tmp_path, [f"[{word}] {i} loss {2 - i / 10:.2f}" for i in range(8)])
    assert metrics(run) == {"loss": pytest.approx([2 - i / 10 for i in range(8)])}


def test_a_sentence_ends_a_name(tmp_path: Path) -> None:
    run = read(tmp_path, [f"[Epoch 1][Iteration {i}] Throughput is {500 + i}.25 records/second. "
                          f"Loss is {2 - i / 10:.2f}." for i in range(8)])
    assert metrics(run)["loss"] == pytest.approx([2 - i / 10 for i in range(8)])
    assert not any("second" in name for name in metrics(run))


@pytest.mark.parametrize(("written", "group"), [("Val. Loss", "validation"), ("Valid. Loss", "validation"),
                                                ("Train. Loss", "train"), ("Avg. Loss", "train")])
def test_a_word_cut_short_ends_no_sentence(tmp_path: Path, written: str, group: str) -> None:
    run = read(tmp_path, [f"Epoch {i} {written} {2 - i / 10:.2f}" for i in range(8)])
    assert [s.group for s in run.series if s.name.split("/")[0] == "loss"] == [group]


def test_a_folder_of_a_path_is_no_metric(tmp_path: Path) -> None:
    run = read(tmp_path, [f"step {i} | loss {2 - i / 10:.2f} | exp ./exp/0125/car" for i in range(8)])
    assert set(metrics(run)) == {"loss"}


@pytest.mark.parametrize("device", ["xla:0/{r}", "xla:{r}"])
def test_devices_of_torch_xla_are_ranks(tmp_path: Path, device: str) -> None:
    run = read(tmp_path, [f"| Training Device={device.format(r=r)} Step={20 * i} Loss={2 - i / 10 + r / 100:.2f}"
                          for i in range(8) for r in range(4)])
    losses = {s.rank: s for s in run.series if s.name == "loss"}
    assert sorted(losses) == [0, 1, 2, 3]
    for rank, loss in losses.items():
        assert np.allclose(loss.values, [2 - i / 10 + rank / 100 for i in range(8)])


@pytest.mark.parametrize(("line", "found"), [("[loss] ", 0), ("[[loss]]]] [ ] [", 0), ("[" * 5000 + "loss] 1", 1),
                                             ("xla:/ xla:999999999999999999999/1 x", 1)])
def test_broken_brackets_are_no_error(tmp_path: Path, line: str, found: int) -> None:
    assert len(read(tmp_path, [line] * 6).series) == found
