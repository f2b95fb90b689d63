"""Files of launchers and clusters, told apart by rank; damaged ones cost themselves only."""

from __future__ import annotations

import gzip
import os
import sys
import threading
import types
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.errors import MissingExtra, UnreadableInput
from traindx_tools.on_logs.artifacts import Source, discover
from traindx_tools.on_ranks.logs import ManyRanks, examine_ranks, listing, mapping
from traindx_tools.on_ranks.logs.listing import told
from traindx_tools.on_ranks.logs.reading import read_file
from traindx_tools.on_ranks.logs.told import MOST_KEPT

from .job_texts import banner, job, steps, watchdog


def lines(rank: int, odd: int = 2) -> list[str]:
    end = ["INFO export: writing the graph"] if rank == odd else watchdog(rank, 42)
    return [*banner(rank), *steps(rank, 0, 20), *end]


def seen(folder: Path) -> ManyRanks:
    many = examine_ranks(discover([folder]).sources, workers=1)
    assert many is not None
    return many


def forms(folder: Path) -> dict[str, Path]:
    """One job as different launchers and tools leave it."""
    out = {name: folder / name for name in ("slurm", "srun", "tee", "kubectl", "torchrun")}
    for path in out.values():
        path.mkdir()
    (out["srun"] / "all.log").write_text("".join(f"{r}: {line}\n" for i in range(60) for r in range(8)
                                                 for line in lines(r)[i:i + 1]))
    for r in range(8):
        (out["slurm"] / f"job-771_{r}.out").write_text("\n".join(lines(r)))
        home = out["torchrun"] / "attempt_0" / str(r)
        home.mkdir(parents=True)
        split = [x for x in lines(r) if x.startswith(("[rank", "terminate", "  what"))]
        (home / "stderr.log").write_text("\n".join(split))
        (home / "stdout.log").write_text("\n".join(x for x in lines(r) if x not in split))
    for node in range(2):
        text = [(r, line) for r in range(4 * node, 4 * node + 4) for line in lines(r)]
        (out["tee"] / f"worker-{node}.log").write_text("".join(f"[default{r % 4}]:{line}\n" for r, line in text))
        (out["kubectl"] / f"pod{node}.log").write_text(
            "".join(f"[pod/trainer-worker-{node}/pytorch] [rank{r}]: {line}\n" for r, line in text))
    return out


@pytest.mark.parametrize("form", ["slurm", "srun", "tee", "kubectl", "torchrun"])
def test_the_same_rank_whatever_wrote_the_files(form: str, tmp_path: Path) -> None:
    many = seen(forms(tmp_path)[form])
    assert len(many.job.last.ranks) == 8
    assert (many.findings[0].rule, many.findings[0].measured["ranks"]) == ("R202", (2,))


def test_one_rank_alone_and_a_plain_log_are_none(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text("\n".join(steps(0, 0, 50)))
    (tmp_path / "notes.txt").write_text("rank the ideas: 1: first\n2: second\n")
    assert examine_ranks(discover([tmp_path]).sources, workers=1) is None


def test_folds_of_a_cross_validation_are_no_ranks(tmp_path: Path) -> None:
    for fold in range(5):
        (tmp_path / f"fold_{fold}.log").write_text("\n".join(steps(0, 0, 30)))
    assert examine_ranks(discover([tmp_path]).sources, workers=1) is None


def test_a_truncated_gzip_and_zeros_cost_that_file_only(tmp_path: Path) -> None:
    job(tmp_path, {2: ["INFO export: writing the graph"]})
    packed = gzip.compress("\n".join(lines(5)).encode())
    (tmp_path / "rank_5.log").unlink()
    (tmp_path / "rank_5.log.gz").write_bytes(packed[: len(packed) // 2])
    (tmp_path / "rank_6.log").write_bytes(os.urandom(4000))
    many = seen(tmp_path)
    assert many.findings[0].measured["ranks"] == (2,)
    assert any("rank_6.log: binary data" in n for n in many.job.notes)


def test_a_long_log_keeps_few_values(tmp_path: Path) -> None:
    path = tmp_path / "rank_0.log"
    path.write_text("\n".join(f"step {t} loss {1 + 1 / (t + 1):.4f}" for t in range(20_000)))
    (stream,) = read_file(Source(str(path), local=path)).streams
    series = stream.now.series["loss"]
    assert series.count == 20_000
    assert len(series.steps) <= MOST_KEPT
    assert all(s % series.stride == 0 for s in series.steps)


def test_the_report_is_the_same_from_processes_and_from_one(tmp_path: Path) -> None:
    job(tmp_path, {2: ["INFO export: writing the graph"]})
    alone = seen(tmp_path)
    pooled = examine_ranks(discover([tmp_path]).sources, workers=2)
    assert pooled is not None
    assert list(told(pooled)) == list(told(alone))
    assert pooled.to_json() == alone.to_json()


def test_a_killed_worker_costs_its_file_only() -> None:
    items = [f"{i} * 10" if i != 3 else "__import__('os')._exit(9)" for i in range(12)]
    results = list(mapping.over(eval, items, lambda item, why: -1, workers=2))
    assert results == [-1 if i == 3 else i * 10 for i in range(12)]


def test_a_process_with_threads_reads_as_well(tmp_path: Path) -> None:
    job(tmp_path, {2: ["INFO export: writing the graph"]})
    going = threading.Event()
    thread = threading.Thread(target=going.wait)
    thread.start()
    try:
        many = examine_ranks(discover([tmp_path]).sources, workers=2)
    finally:
        going.set()
        thread.join()
    assert many is not None
    assert many.findings[0].measured["ranks"] == (2,)


def test_numbered_lines_of_grep_are_no_ranks(tmp_path: Path) -> None:
    (tmp_path / "found.txt").write_text("".join(f"{i}: step {i} loss 2.0\n" for i in range(1, 90)))
    assert examine_ranks(discover([tmp_path]).sources, workers=1) is None


class Cluster(types.ModuleType):
    """What is used of `ray`, in this process: a task runs when its result is asked for."""

    class exceptions:
        class RayError(Exception):
            pass

    def __init__(self, reachable: bool = True) -> None:
        super().__init__("ray")
        self.reachable, self.going = reachable, False

    def is_initialized(self) -> bool:
        return self.going

    def init(self, address: str | None, **_: object) -> None:
        if not self.reachable:
            raise ConnectionError(f"nothing listens at {address}")
        self.going = True

    def shutdown(self) -> None:
        self.going = False

    def cluster_resources(self) -> dict[str, float]:
        return {"CPU": 2.0}

    def remote(self, **_: object) -> Callable[[Any], Any]:
        return lambda function: types.SimpleNamespace(remote=lambda item: (function, item))

    def get(self, task: tuple[Callable[[Any], Any], Any]) -> Any:
        try:
            return task[0](task[1])
        except ZeroDivisionError as died:
            raise self.exceptions.RayError from died


def test_a_cluster_gives_the_same_report_and_is_let_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cluster = Cluster()
    monkeypatch.setitem(sys.modules, "ray", cluster)
    job(tmp_path, {2: ["INFO export: writing the graph"]})
    many = examine_ranks(discover([tmp_path]).sources, cluster="ray://host:10001")
    assert many is not None
    assert many.to_json() == seen(tmp_path).to_json()
    assert not cluster.going


def test_a_task_that_dies_on_a_cluster_costs_its_file_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Cluster())
    results = list(mapping.over(eval, ["1", "1 / 0", *["2"] * 20], lambda item, why: -1, cluster="auto"))
    assert results == [1, -1, *[2] * 20]


def test_a_cluster_that_is_not_there_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", Cluster(reachable=False))
    with pytest.raises(UnreadableInput, match="leave --cluster out to use this machine"):
        list(mapping.over(eval, ["1"], lambda item, why: -1, cluster="ray://nowhere:1"))


def test_ray_gives_the_same_report(tmp_path: Path) -> None:
    pytest.importorskip("ray")
    job(tmp_path, {2: ["INFO export: writing the graph"]})
    many = examine_ranks(discover([tmp_path]).sources, cluster="local")
    assert many is not None
    assert many.to_json() == seen(tmp_path).to_json()


def test_a_cluster_without_ray_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtra, match=r"pip install 'ray>="):
        list(mapping.over(eval, ["1"], lambda item, why: -1, cluster="local"))


def test_the_merged_log_names_ranks_once_a_line(tmp_path: Path) -> None:
    many = job(tmp_path, {2: ["INFO export: writing the graph"]})
    assert many is not None
    text = "\n".join(told(many, every=True))
    assert "ranks 0-1, 3-7: waited in ALLREDUCE" in text
    assert "rank 2: export: writing the graph" in text.replace("INFO ", "")
    assert text.count("loader: fetching batch") == 1


@pytest.mark.parametrize("end", [0, 31, 120])
def test_what_the_launcher_says_at_the_end_takes_no_rank_away(end: int, tmp_path: Path) -> None:
    told = "".join(f"{r}: {line}\n" for i in range(12) for r in range(4) for line in lines(r)[i:i + 1])
    trace = "Traceback (most recent call last):\n" + '  File "train.py", line 18, in <module>\n' * end if end else ""
    (tmp_path / "slurm-1.out").write_text(told + trace)
    assert len(seen(tmp_path).job.last.ranks) == 4


def test_a_table_in_a_log_is_of_no_ranks(tmp_path: Path) -> None:
    table = "".join(f"{i}: class {i}\n" for i in range(10))
    (tmp_path / "train.log").write_text(table + "\n".join(steps(0, 0, 50)) + "\n")
    assert examine_ranks(discover([tmp_path]).sources, workers=1) is None


@pytest.mark.parametrize(("texts", "told"), [
    ({"host node-0 of 8", "host node-12 of 8", "host node-7 of 8"}, "host node-0..12 of 8"),
    ({"took 1.2 s"}, "took 1.2 s"), ({"a 1", "b 2"}, "a 1"), ({"x 1 y 2", "x 1"}, "x 1"), ({"no number"}, "no number"),
])
def test_lines_that_differ_in_numbers_are_told_with_their_range(texts: set[str], told: str) -> None:
    assert listing._one_text(min(texts), texts) == told
