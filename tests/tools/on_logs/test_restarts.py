"""Several runs in one file: told apart, each judged as if its lines were a file of their own."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from traindx_tools.errors import BadUsage
from traindx_tools.examine import Examination, examine
from traindx_tools.finding import Finding
from traindx_tools.on_logs.each_run import each_run
from traindx_tools.on_logs.reading import read_parts
from traindx_tools.on_logs.restarts import Segment, segments
from traindx_tools.on_logs.run import Run, Series
from traindx_tools.scope.runs import choose

BANNER = "$ python train.py --lr 0.1\nNamespace(lr=0.1, epochs=20)\nloading the data\n"


def epochs(count: int = 20, rate: float = 0.9, scale: float = 2.3) -> str:
    return "".join(f"epoch {i} loss {scale * rate**i + 0.01 * (i * 7919 % 5):.4f} lr {0.1 * (1 - i / count):.5f}\n"
                   for i in range(count))


def steps(start: int, end: int, origin: int = 0, word: str = "step") -> str:
    return "".join(f"{word} {i} loss {0.3 + 2.0 * 0.99 ** (i - origin):.4f}\n" for i in range(start, end, 10))


HEALTHY = BANNER + epochs()
NAN = BANNER + epochs(12) + "".join(f"epoch {i} loss nan lr 0.04\n" for i in range(12, 20))
RESTARTED_RATE = BANNER + epochs(12) + "".join(f"epoch {i} loss 0.9 lr {0.1 - i / 1000:.5f}\n" for i in range(12, 20))
TRACEBACK = 'Traceback (most recent call last):\n  File "train.py", line 30, in <module>\n    main()\n'
MEMORY = (BANNER + epochs(6) + TRACEBACK + "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. "
          "GPU 0 has a total capacity of 23 GiB\n")
FLAT = BANNER + "".join(f"epoch {i} loss 0.6931 lr 0.1\n" for i in range(20))
RISING = BANNER + "".join(f"epoch {i} loss {1.5 * 1.4**i:.4f} lr 10.0\n" for i in range(20))
NEVER_BEGAN = BANNER + ('Traceback (most recent call last):\n  File "train.py", line 2, in <module>\n    import thing\n'
                        "ModuleNotFoundError: No module named 'thing'\n")
TEXTS = (HEALTHY, NAN, RESTARTED_RATE, MEMORY, FLAT, RISING, NEVER_BEGAN)


def seen(folder: Path, text: str, symptom: str = "") -> Examination:
    (folder / "train.log").write_text(text)
    return examine([folder / "train.log"], root=folder, symptom=symptom)


def told(findings: Sequence[Finding], lines_before: int = 0) -> set[tuple[str, str, int]]:
    return {(f.rule, f.statement, (f.where.line or 0) - (lines_before if f.where.file == "train.log" else 0))
            for f in findings}


@pytest.mark.slow
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.sampled_from(TEXTS), min_size=2, max_size=4).filter(lambda t: set(t) != {NEVER_BEGAN}))
def test_a_file_with_several_runs_gives_the_findings_of_each_alone(tmp_path: Path, texts: list[str]) -> None:
    together = seen(tmp_path, "".join(texts))
    assert len(together.runs) == len(texts)
    before = 0
    for run, text in zip(together.runs, texts, strict=True):
        alone = seen(tmp_path, text)
        assert told(run.findings, before) == told(alone.findings)
        assert run.verdict.status == alone.verdict.status
        assert run.one.start == before + 1
        before += text.count("\n")


@pytest.mark.parametrize(("text", "starts"), [
    (epochs() + epochs(), [1, 21]),
    (epochs() + "finished\n" + epochs(), [1, 22]),
    (steps(0, 500) + steps(0, 500), [1, 51]),
    ("seed 1\nbuilding\n" + steps(0, 300) + "done\nseed 2\nbuilding\n" + steps(0, 300), [1, 34]),
    ("[a] " + epochs().replace("\n", "\n[a] ")[:-4] + "[b] " + epochs().replace("\n", "\n[b] ")[:-4], [1, 21]),
    ("fold 1\n" + epochs(3) + "fold 2\n" + epochs(3), [1, 5]),
])
def test_a_run_that_starts_over_is_another_run(text: str, starts: list[int], tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(text)
    assert [r.start for r in each_run(read_parts([tmp_path / "run.log"]))] == starts


@pytest.mark.parametrize("text", [
    epochs(), steps(0, 900),
    "".join(f"batch {i % 10 * 10} loss {2.3 * 0.98**i:.4f}\n" for i in range(60)),  # batches of an epoch, none printed
    "".join(f"epoch {i // 10} batch {i % 10 * 10} loss {2.3 * 0.98**i:.4f}\n" for i in range(60)),
    "".join(f"epoch {e} loss {2.0 * 0.9**e:.3f}\n" for e in (0, 1, 0, 1, 2, 1, 2, 3, 2, 3, 4, 3, 4)),  # two ranks
    steps(0, 500) + "Resuming from checkpoint step 400\n" + steps(410, 900),
    steps(0, 500) + steps(400, 900),
    epochs(8) + "entering stage 2: all layers\n" + epochs(8),
    epochs(6) + "Resumed from checkpoint last.pt\n" + epochs(6),
    "", "\n\n\n", "no numbers here\n" * 50, "\0" * 100, "step 1 loss 2\n",
])
def test_one_run_stays_one(text: str, tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(text)
    (tmp_path / "other.log").write_text("step 1 loss 1\n")
    assert len(each_run(read_parts([tmp_path]))) == 1


def test_a_resume_is_marked(tmp_path: Path) -> None:
    (tmp_path / "run.log").write_text(steps(0, 500) + "Resuming from checkpoint step 400\n" + steps(410, 900))
    (one,) = each_run(read_parts([tmp_path / "run.log"]))
    assert set(one.resumes) >= {51}


@pytest.mark.parametrize("text", ["step,loss\n{0}step,loss\n{0}", "step,loss\n{0}{0}"])
def test_tables_are_cut_under_their_header(text: str, tmp_path: Path) -> None:
    rows = "".join(f"{i},{2.0 * 0.95**i + 0.1:.4f}\n" for i in range(60))
    (tmp_path / "metrics.csv").write_text(text.format(rows))
    first, last = examine([tmp_path / "metrics.csv"], root=tmp_path).runs
    assert [len(r.run.loss or ()) for r in (first, last)] == [60, 60]
    assert last.run.loss is not None
    assert int(last.run.loss.line[0]) == text.format(rows).count("\n") - 59


def test_json_lines_are_cut(tmp_path: Path) -> None:
    rows = "".join(f'{{"step": {i}, "loss": {2.0 * 0.95**i + 0.1:.4f}}}\n' for i in range(60))
    assert [len(r.run.loss or ()) for r in seen(tmp_path, rows + rows).runs] == [60, 60]


def test_the_verdict_is_for_the_last_run(tmp_path: Path) -> None:
    assert seen(tmp_path, NAN + HEALTHY).verdict.status == "healthy"
    assert seen(tmp_path, HEALTHY + NAN).verdict.status != "healthy"


def test_a_rate_that_starts_over_with_a_new_run_is_no_fault(tmp_path: Path) -> None:
    together = seen(tmp_path, epochs() + epochs())
    assert not [f for r in together.runs for f in r.findings if f.rule == "L302"]


def test_a_symptom_takes_the_last_run_that_shows_something(tmp_path: Path) -> None:
    assert seen(tmp_path, NAN + HEALTHY, "the loss became nan").which == 1


def test_a_table_that_is_written_anew_belongs_to_the_last_run(tmp_path: Path) -> None:
    (tmp_path / "train.log").write_text(HEALTHY + HEALTHY)
    (tmp_path / "metrics.csv").write_text("epoch,val_loss\n" + "".join(f"{i},{2.5 * 0.9**i:.4f}\n" for i in range(20)))
    first, last = examine([tmp_path], root=tmp_path).runs
    assert first.run.val_loss is None
    assert last.run.val_loss is not None


@pytest.mark.slow
@pytest.mark.parametrize("period", [2, 5])
def test_a_counter_that_resets_all_the_time_is_read_in_linear_time(tmp_path: Path, period: int) -> None:
    """Quadratic, 100,000 lines took minutes; the bound is ten times what they take."""
    path = tmp_path / "train.log"
    path.write_text("".join(f"step {i % period} loss {1 + i * 7919 % 13 / 100:.2f}\n" for i in range(100_000)))
    reading = read_parts([path])
    began = time.process_time()
    assert len(each_run(reading)) == 1
    assert time.process_time() - began < 20


RUNS = {"epochs": lambda r, i: f"epoch {i} loss {2 * 0.9**i + (r * 7919 % 11) / 200:.3f}\n",
        "steps": lambda r, i: f"step {i} loss {2.3 * 0.8**i + ((r * 10 + i) * 7919 % 11) / 200:.4f}\n"}


@pytest.mark.parametrize("counted", RUNS)
def test_thousands_of_short_runs_in_one_file_are_counted_and_soon(tmp_path: Path, counted: str) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(RUNS[counted](r, i) for r in range(5_000) for i in range(10)))
    reading = read_parts([path])
    began = time.process_time()
    runs = each_run(reading)
    assert time.process_time() - began < 20
    assert [(r.number, r.of) for r in (runs[0], runs[-1])] == [(4_801, 5_000), (5_000, 5_000)]
    assert (runs[-1].start, runs[-1].end) == (49_991, None)


def test_the_last_of_many_runs_is_judged_and_no_earlier_one_can_be_asked_for(tmp_path: Path) -> None:
    text = "".join(RUNS["steps"](r, i) for r in range(300) for i in range(10))
    together = seen(tmp_path, text)
    assert not together.findings  # no saw
    assert together.runs[-1].one.of == 300
    with pytest.raises(BadUsage, match=r"300 runs .*only the last 200 are judged\); --which takes 101 to 300"):
        choose(together.runs, 7, "")


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
def test_batches_of_an_epoch_that_is_not_printed_are_no_runs(tmp_path: Path, noise: float) -> None:
    """The counter starts over 400 times while the loss goes on falling."""
    generator = np.random.default_rng(0)
    lines = (f"step {i} loss {(0.2 + 2 * 0.999 ** (10 * e + i)) * (1 + noise * generator.normal()):.4f}\n"
             for e in range(400) for i in range(10))
    path = tmp_path / "train.log"
    path.write_text("".join(lines))
    assert len(each_run(read_parts([path]))) == 1


def test_runs_without_a_finite_loss_are_counted_by_their_epochs(tmp_path: Path) -> None:
    path = tmp_path / "train.log"
    path.write_text("".join(f"epoch {i} loss nan\n" for _ in range(300) for i in range(5)))
    assert each_run(read_parts([path]))[-1].of == 300


def test_very_many_columns_are_told_apart_from_runs_in_bounded_time(within):
    table = Run(series=tuple(Series(f"metric_{i}", f"metric_{i}", "train", "log.csv", np.arange(3.0), np.arange(3.0),
                                    np.full(3, np.nan), np.full(3, np.nan), np.arange(1, 4)) for i in range(8000)))
    with within(4):
        assert segments(table, lambda: ()) == (Segment(1, None),)


def test_only_what_is_asked_for_is_kept_of_the_lines() -> None:
    """As with all lines: a gap of very many lines, commands, errors and the last line."""
    from traindx_tools.on_logs.restarts import MOST_GAP, _asked_for, form_of

    lines = [(1, "python train.py --lr 0.1"), (2, "model of 5 layers"),
             *((n, f"step {n} loss 0.5") for n in range(3, 2_000)),
             *((n, f"copying file {n}") for n in range(2_000, 2_000 + 2 * MOST_GAP)),
             (9_000, "python train.py --lr 0.2"), (9_001, "model of 7 layers"),
             (9_002, "Traceback (most recent call last):"),
             *((n, f"step {n - 9_000} loss 0.5") for n in range(9_003, 9_500))]
    at = np.array([n for n, t in lines if t.startswith("step")])
    track = Series("loss", "loss", "train", "a.log", np.full(len(at), 0.5), at % 9_000, np.full(len(at), np.nan),
                   np.full(len(at), np.nan), at)
    fall = int(np.searchsorted(at, 9_000))
    kept, counts = _asked_for(lines, track, [fall])
    assert counts[form_of(lines[0][1])] == counts[form_of(lines[1][1])] == 2
    told = dict(kept)
    assert {1, 2, 2_000, 1_999 + MOST_GAP, 9_000, 9_002, 9_499} <= set(told)
    assert 1_000 not in told
    assert 2_000 + MOST_GAP not in told
