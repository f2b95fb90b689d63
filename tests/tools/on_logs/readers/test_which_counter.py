"""Which of several counters is the step, and whose line it is where a mark alone says so."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx_tools.on_logs.reading import read_run
from traindx_tools.on_logs.run import Run


def _loss(i: int) -> str:
    return f"{2 / (1 + i / 10):.4f}"


def _read(tmp_path: Path, name: str, text: str) -> Run:
    (tmp_path / name).write_text(text)
    return read_run([str(tmp_path / name)])


@pytest.mark.parametrize("columns", ["iter,step", "step,iter", "batch,global_step", "step,iteration", "iter,update"])
@pytest.mark.parametrize("form", ["csv", "jsonl"])
def test_the_one_that_counts_on_is_the_step(columns: str, form: str, tmp_path: Path) -> None:
    """Batches of an epoch start over; whichever column is named first."""
    first, second = columns.split(",")
    rows = [(i // 20, i % 20, i) for i in range(60)]
    text = f"epoch,{columns},loss\n" + "".join(f"{e},{b},{s},{_loss(s)}\n" for e, b, s in rows)
    if form == "jsonl":
        text = "".join(f'{{"epoch": {e}, "{first}": {b}, "{second}": {s}, "loss": {_loss(s)}}}\n' for e, b, s in rows)
    (loss,) = _read(tmp_path, f"a.{form}", text).series
    assert loss.step.tolist() == list(range(60))


def test_where_all_rise_the_surest_word_is_the_step(tmp_path: Path) -> None:
    text = "micro_step,optimizer_step,loss\n" + "".join(f"{i},{i // 4},{_loss(i)}\n" for i in range(60))
    (loss,) = _read(tmp_path, "a.csv", text).series
    assert loss.step.tolist() == [i // 4 for i in range(60)]


def test_a_counter_that_starts_over_alone_counts_on(tmp_path: Path) -> None:
    text = "epoch,iter,loss\n" + "".join(f"{i // 20},{i % 20},{_loss(i)}\n" for i in range(60)) + "3,cut"
    (loss,) = _read(tmp_path, "a.csv", text).series
    assert loss.step.tolist() == list(range(60))


@pytest.mark.parametrize(("written", "steps"), [
    (lambda i: f"[{i + 1}k] loss {_loss(i)}", [1_000.0, 60_000.0]),
    (lambda i: f"[{(i + 1) / 10:.1f}K] loss {_loss(i)}", [100.0, 6_000.0]),
    (lambda i: f"[{i + 1}] loss {_loss(i)}", [1.0, 60.0]),
    (lambda i: f"{i + 1}k tokens in all, loss {_loss(i)}", None),
    (lambda i: f"[{i + 1}kB] loss {_loss(i)}", None)])
def test_a_number_in_brackets_counts_in_thousands_too(written: Callable[[int], str], steps: list[float] | None,
                                                       tmp_path: Path) -> None:
    (loss,) = (s for s in _read(tmp_path, "a.log", "".join(written(i) + "\n" for i in range(60))).series
               if s.name == "loss")
    assert steps is None or [loss.step[0], loss.step[-1]] == steps
    assert (steps is None) == bool((loss.step != loss.step).all())


def test_each_gpu_has_a_series(tmp_path: Path) -> None:
    text = "".join(f"[GPU{r}] Epoch {i} | loss {2 / (1 + i) + r:.4f}\n" for i in range(30) for r in range(3))
    told = _read(tmp_path, "a.log", text).series
    assert [(s.rank, len(s), s.values[0]) for s in told] == [(0, 30, 2.0), (1, 30, 3.0), (2, 30, 4.0)]


@pytest.mark.parametrize("mark", ["[{}] ", "{} | ", "INFO:{}: ", "2026-01-01 00:00:01,000 INFO [{}] "])
def test_each_writer_has_a_series(mark: str, tmp_path: Path) -> None:
    """A teacher and its student tell the same steps and other values."""
    text = "".join(mark.format(who) + f"step {i} loss {2 / (1 + i) + more:.4f}\n"
                   for i in range(40) for who, more in (("teacher", 0), ("student", 1)))
    told = _read(tmp_path, "a.log", text).series
    assert sorted((len(s), s.values[0]) for s in told) == [(40, 2.0), (40, 3.0)]
    assert all((s.step == range(40)).all() for s in told)
    assert {s.counter.rpartition(", ")[2] for s in told} & {"teacher", "student"}


@pytest.mark.parametrize("later", [lambda i: (i, i), lambda i: (i + 40, i + 40)])
def test_writers_that_say_the_same_or_go_on_share_one(later: Callable[[int], tuple[int, int]], tmp_path: Path) -> None:
    """A second logger that repeats what the first said, and one that goes on where it ended."""
    first = [f"[main] step {i} loss {_loss(i)}\n" for i in range(40)]
    second = [f"[other] step {s} loss {_loss(n)}\n" for s, n in map(later, range(40))]
    mixed = [line for pair in zip(first, second, strict=True) for line in pair]
    told = _read(tmp_path, "a.log", "".join(mixed if later(0) == (0, 0) else first + second)).series
    assert len(told) == 1
    assert (told[0].step[1:] > told[0].step[:-1]).all()


@pytest.mark.parametrize("form", ["csv", "jsonl"])
@pytest.mark.parametrize("first", ["train/n_updates", "time/total_timesteps"])
def test_a_counter_that_some_records_have_not_gives_way_to_one_that_all_have(first: str, form: str,
                                                                             tmp_path: Path) -> None:
    """The JSON of stable-baselines3: its first record has no count of updates, which stands first in the others."""
    names = [first, *({"train/n_updates", "time/total_timesteps"} - {first})]
    rows = [{"train/n_updates": 10 * i, "time/total_timesteps": 256 * (i + 1)} for i in range(40)]
    text = ",".join([*names, "train/loss"]) + "\n" + "".join(
        ",".join(str(r[n]) if i or n != "train/n_updates" else "" for n in names) + f",{_loss(i)}\n"
        for i, r in enumerate(rows))
    if form == "jsonl":
        text = "".join("{" + ", ".join(f'"{n}": {r[n]}' for n in names if i or n != "train/n_updates")
                       + f', "train/loss": {_loss(i)}}}\n' for i, r in enumerate(rows))
    (loss,) = _read(tmp_path, f"a.{form}", text).series
    assert loss.step.tolist() == [256 * (i + 1) for i in range(40)]


def test_counters_of_different_kinds_of_records_stay_their_own(tmp_path: Path) -> None:
    text = "".join(f'{{"iter": {i}, "loss": {_loss(i)}}}\n{{"step": {i}, "reward": {i / 2}}}\n' for i in range(30))
    assert {s.name: s.step.tolist() for s in _read(tmp_path, "a.jsonl", text).series} == {
        "loss": list(range(30)), "reward": list(range(30))}
