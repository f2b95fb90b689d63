"""Files of a job that name their rank only by where their siblings stand."""

from __future__ import annotations

from pathlib import Path

from traindx_tools.on_logs.artifacts import discover
from traindx_tools.on_ranks.logs import ManyRanks, examine_ranks

from .job_texts import steps, watchdog

OOM = ["Traceback (most recent call last):", '  File "train.py", line 88, in <module>', "    loss.backward()",
       "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.31 GiB."]
LOST = ["RuntimeError: [/pytorch/third_party/gloo/gloo/transport/tcp/pair.cc:534] Connection closed by peer [10.0.0.1]"]


def written(folder: Path, ends: dict[int, list[str]], usual: list[str] | None = None, *, first: int = 0,
            named: str = "worker-{:04d}.log", top: str = "") -> Path:
    """Eight files whose lines say no rank but at a watchdog's report."""
    for rank in range(8):
        end = ends.get(rank, usual if usual is not None else watchdog(rank, 42))
        head = [top.format(rank)] if top else []
        (folder / named.format(rank + first)).write_text("\n".join([*head, *steps(rank, 0, 20), *end]))
    return folder


def seen(folder: Path, *, asked: bool = False) -> ManyRanks | None:
    return examine_ranks(discover([folder]).sources, workers=1, asked=asked)


def test_the_file_without_a_prefix_is_the_rank_that_its_siblings_leave(tmp_path: Path) -> None:
    for first in (0, 5):
        folder = tmp_path / str(first)
        folder.mkdir()
        many = seen(written(folder, {3: OOM}, first=first))
        assert many is not None
        assert len(many.job.last.ranks) == 8
        assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R201", (3,))


def test_numbers_that_are_no_ranks_give_none(tmp_path: Path) -> None:
    for rank, number in enumerate((4, 1, 7, 9, 2)):  # in no order: these numbers say nothing of ranks
        (tmp_path / f"worker-{number}.log").write_text("\n".join([*steps(rank, 0, 20), *watchdog(rank, 42)]))
    (tmp_path / "worker-5.log").write_text("\n".join([*steps(5, 0, 20), *OOM]))
    many = seen(tmp_path)
    assert many is not None
    assert sorted(many.job.last.ranks) == [0, 1, 2, 3, 4]


def test_what_processes_say_at_their_end_makes_a_job_of_files(tmp_path: Path) -> None:
    many = seen(written(tmp_path, {5: ["Killed"]}, LOST))
    assert many is not None
    assert len(many.job.last.ranks) == 8
    assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R201", (5,))


def test_a_worker_that_says_which_of_how_many_it_is(tmp_path: Path) -> None:
    many = seen(written(tmp_path, {2: ["step 20 loss nan"]}, [], top="[{}/8] starting"))
    assert many is not None
    assert len(many.job.last.ranks) == 8


def test_runs_of_a_sweep_are_no_ranks_unless_somebody_says_so(tmp_path: Path) -> None:
    folder = written(tmp_path, {}, [], named="run-{}.log", top="trial {}/8")
    assert seen(folder) is None
    many = seen(folder, asked=True)
    assert many is not None
    assert len(many.job.last.ranks) == 8


def test_a_damaged_end_says_nothing(tmp_path: Path) -> None:
    folder = written(tmp_path, {}, [])
    (folder / "worker-0001.log").write_bytes(b"\0\xff" * 4000 + b"[rank1]: /gloo/transport/")
    assert seen(folder) is None
