"""A process that says its collective met another one did not fail first; the rank that had gone on is named."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.on_logs import read_run
from traindx_tools.on_logs.artifacts import Source
from traindx_tools.on_logs.tracebacks.mismatched import speaks_of_mismatch
from traindx_tools.on_ranks.logs.examine import ManyRanks, examine_ranks

SIZES = ("  what():  [enforce fail at /w/gloo/transport/tcp/pair.cc:456] op.preamble.length <= op.nbytes. 8 vs 4. "
         "Received data size doesn't match expected size. Is there a distributed collective mismatch in your code?")
NATIVE = "terminate called after throwing an instance of 'gloo::EnforceNotMet'"
OTHER = "  what():  [enforce fail at /w/gloo/transport/tcp/pair.cc:77] rv != -1. Address already in use"


def written(folder: Path, said: str, odd: str = "epoch 0 done, reducing", *, ranks: int = 4) -> Path:
    lines = [f"[rank{r}] epoch 0 step {s} loss {3 - s / 9:.4f}" for s in range(0, 25, 5) for r in range(ranks)]
    lines += [f"[rank2] {odd}"] if odd else []
    lines += [NATIVE, said] if said else []
    for r in (1, 3):
        lines += [f"[rank{r}]: Traceback (most recent call last):",
                  f'[rank{r}]:   File "train.py", line 7, in <module>', f"[rank{r}]:     loss.backward()",
                  f"[rank{r}]: RuntimeError: [pair.cc:537] Read error [127.0.0.1]:19: Connection reset by peer"]
    lines += ["E1201 22:28:43.8 157 torch/elastic/api.py:1002] failed (exitcode: -6) local_rank: 2 (pid: 15789) of "
              "binary: python", "  rank      : 2 (local_rank: 2)", "  exitcode  : -6 (pid: 15789)  (SIGABRT)"]
    (folder / "all.log").write_text("\n".join(lines) + "\n")
    return folder / "all.log"


def of(log: Path) -> ManyRanks:
    many = examine_ranks([Source(str(log), log)])
    assert many is not None
    return many


def test_the_rank_that_left_the_loop_and_not_the_one_that_ended(tmp_path: Path) -> None:
    found = of(written(tmp_path, SIZES)).findings[0]
    assert (found.rule, found.measured["kind"], found.measured["ranks"]) == ("R203", "left-loop", (2,))
    assert "8 vs 4" in found.statement
    assert not any(word in found.statement for word in ("timeout", "None"))


def test_a_rank_that_went_on_to_something_else(tmp_path: Path) -> None:
    found = of(written(tmp_path, SIZES, "counting the words")).findings[0]
    assert (found.rule, found.measured["kind"], found.measured["ranks"]) == ("R202", "met-another", (2,))


def test_ranks_that_all_said_the_same_last_are_not_told_apart(tmp_path: Path) -> None:
    assert [f.rule for f in of(written(tmp_path, SIZES, "")).findings] == []


def test_a_native_error_of_another_kind_is_still_the_first_to_fail(tmp_path: Path) -> None:
    found = of(written(tmp_path, OTHER)).findings[0]
    assert (found.rule, found.measured["rank"]) == ("R201", 2)


def test_a_message_that_is_cut_short_names_nobody_wrongly(tmp_path: Path) -> None:
    assert [f.rule for f in of(written(tmp_path, "")).findings] == ["R201"]


def test_the_error_is_one_of_collectives(tmp_path: Path) -> None:
    errors = read_run([str(written(tmp_path, SIZES))]).errors
    assert errors[0].type == "gloo::EnforceNotMet"
    assert speaks_of_mismatch(errors[0].message)


@pytest.mark.parametrize(("text", "so"), [
    ("RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: ...", True),
    ("NCCL WARN Mismatched collective detected, please check your collective calls at and around rank 3", True),
    ("MPI_ERR_TRUNCATE: message truncated", True),
    ("RuntimeError: Error(s) in loading state_dict for Net: size mismatch for head.weight", False),
    ("mismatch between the collected labels and the images", False),
    ("", False),
])  # fmt: skip
def test_wordings(text: str, *, so: bool) -> None:
    assert speaks_of_mismatch(text) is so
