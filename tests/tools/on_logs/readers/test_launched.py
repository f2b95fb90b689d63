"""Launchers' prefixes give the rank, and say nothing else: no pod's number becomes a metric, no fold's epoch a rank."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from traindx_tools.on_logs import Run, read_run
from traindx_tools.on_logs.tracebacks.parse import read_errors


def written(line: str, ranks: Sequence[int] = (0, 1, 2, 3), steps: int = 30) -> str:
    """Lines of several ranks in turn. `h` and `c`: the host of two processes, and the process on it."""
    return "".join(line.format(r=r, h=r // 2, c=r % 2, i=i * 10, v=f"{3 - i / 100 + r:.3f}") + "\n"
                   for i in range(1, steps) for r in ranks)


def read(text: str) -> Run:
    return read_run(["-"], stdin=text.encode())


FORMS = {
    "srun --label": "{r}: step {i} loss {v}", "srun, wide": "  {r}: 2026-11-27 10:00:00 INFO step {i} loss {v}",
    "torchrun --tee": "[default{r}]:step {i} loss {v}", "torch": "[rank{r}]: step {i} loss {v}",
    "mpirun": "[1,{r}]<stdout>:step {i} loss {v}", "kubectl": "[pod/train-worker-{r}/trainer] step {i} loss {v}",
    "kubectl, blank": "[pod/x-{r} container] 2026-11-27T21:17:14.123Z step {i} loss {v}",
    "stern": "train-worker-{r} trainer step {i} loss {v}",
    "docker compose": "app-trainer-{r}  | step {i} loss {v}",
    "ray": "(RayTrainWorker pid=22{r}1) step {i} loss {v}",
    "ray, hosts": "(RayTrainWorker pid={r}9, ip=10.0.0.{h}) 2026-11-27 10:00:00 INFO step {i} loss {v}",
    "kubectl and torchrun": "[pod/train-worker-{h}/t] [default{c}]:step {i} loss {v}",
    "kubectl and torch": "[pod/train-{h}/t] [rank{r}]: step {i} loss {v}",
}


@pytest.mark.parametrize("line", FORMS.values(), ids=FORMS.keys())
def test_the_prefix_gives_the_rank(line: str) -> None:
    run = read(written(line))
    assert [(s.name, s.rank) for s in run.series] == [("loss", r) for r in range(4)]
    for series in run.series:
        assert series.step.tolist() == [10.0 * i for i in range(1, 30)]
        assert series.values[0] == pytest.approx(2.99 + (series.rank or 0))


def test_kinds_of_pods_follow_each_other() -> None:
    text = "".join(f"[pod/a-{kind}/t] step {i} loss {v + i / 100:.2f}\n" for i in range(20)
                   for kind, v in (("worker-0", 2), ("master-0", 1), ("worker-1", 3)))
    assert {s.rank: float(s.values[0]) for s in read(text).series} == {0: 1.0, 1: 2.0, 2: 3.0}


def test_pods_without_a_number_have_no_rank_and_give_no_metric() -> None:
    text = "".join(f"[pod/train-7d9f8-x2x1z/t] step {i} loss {3 - i / 100:.2f}\n" for i in range(20))
    assert [(s.name, s.rank) for s in read(text).series] == [("loss", None)]


@pytest.mark.parametrize("line", ["{r}: loss {v}", "{r}: train {v} val 0.5", "{r}: {v}"])
def test_numbers_of_epochs_that_begin_anew_for_each_fold_are_no_ranks(line: str) -> None:
    run = read("".join(line.format(r=r, v=f"{0.7 - r / 20:.3f}") + "\n" for _ in range(5) for r in range(8)))
    assert all(s.rank is None for s in run.series)


@pytest.mark.parametrize("line", ["ResNet-50 | step {i} loss {v}", "fold-{f} | step {i} loss {v}"])
def test_a_model_and_folds_before_a_bar_are_no_ranks(line: str) -> None:
    run = read("".join(line.format(f=f, i=i, v=f"{3 - i / 100:.3f}") + "\n" for f in range(3) for i in range(20)))
    assert all(s.rank is None for s in run.series)


def test_a_driver_of_ray_and_a_worker_alone_have_no_rank() -> None:
    run = read("".join(f"(TorchTrainer pid=11) started {i}\n(RayTrainWorker pid=12) step {i} loss {3 - i / 100:.2f}\n"
                       for i in range(20)))
    assert [(s.name, s.rank) for s in run.series] == [("loss", None)]


def test_a_worker_of_ray_that_comes_later_is_the_next_rank() -> None:
    text = written("(W pid=22{r}1) step {i} loss {v}", (0, 1)) + written("(W pid=22{r}1) step {i} loss {v}", (2,), 300)
    assert {s.rank: len(s.values) for s in read(text).series} == {0: 29, 1: 29, 2: 299}


@pytest.mark.parametrize("line", ["(W pid=) step {i} loss {v}", "(W pid=99999999999 step {i} loss {v}",
                                  "( pid=12) step {i} loss {v}"])
def test_broken_tags_of_ray_give_no_rank(line: str) -> None:
    assert all(s.rank is None for s in read(written(line)).series)


def test_lines_of_other_writers_between_them_are_read_as_before() -> None:
    text = "srun: job 17 queued\n" + written("{r}: step {i} loss {v}") + "step 400 val_loss 0.5\n"
    assert {(s.name, s.group, s.rank) for s in read(text).series} == {
        *(("loss", "train", r) for r in range(4)), ("loss", "validation", None)}


def test_a_traceback_behind_a_pods_prefix_is_one() -> None:
    lines = ["Traceback (most recent call last):", '  File "/app/train.py", line 3, in <module>', "    main()",
             "ValueError: no"]
    mixed = [(i, f"[pod/w-{i % 2}/t] {lines[i // 2]}") for i in range(8)]
    events = read_errors(mixed, "a.log")
    assert {e.type for e in events} == {"ValueError"}
    assert events[0].frames[0].line == 3
