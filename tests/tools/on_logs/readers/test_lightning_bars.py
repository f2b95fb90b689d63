"""What Lightning's bars show, as they were drawn in terminals of three widths and into a pipe, value by value.

The run has three epochs of twelve batches. Its values, as the program itself knew them:
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from traindx_tools.on_logs import Run, Series, read_run

BARS = Path(__file__).parents[3] / "fixtures" / "bars"
TRAIN = [1.6108, 1.9535, 0.9984, 1.4749, 0.4583, 0.9004, 0.5427, 0.4545, 0.3651, 0.2776, 0.4391, 0.2979,
         0.1363, 0.1235, 0.1301, 0.1425, 0.0393, 0.081, 0.0549, 0.0431, 0.0401, 0.0344, 0.0318, 0.0231,
         0.0145, 0.0103, 0.0195, 0.0165, 0.0039, 0.0085, 0.0065, 0.0052, 0.005, 0.0045, 0.0034, 0.0022]
LOSS, ACCURACY = {12: 0.1611, 24: 0.0173, 36: 0.0021}, {12: 0.862, 24: 0.983, 36: 0.998}


def of(run: Run, name: str, group: str) -> Series:
    (series,) = [s for s in run.series if (s.name, s.group) == (name, group)]
    return series


@pytest.mark.parametrize("drawn", ["rich_wide", "rich_wrapped", "rich_narrow", "tqdm", "tqdm_piped"])
def test_each_evaluation_is_read_once_and_each_batch_at_its_step(drawn: str) -> None:
    run = read_run([BARS / f"{drawn}.log"])
    for name, truth in (("loss", LOSS), ("accuracy", ACCURACY)):
        told = of(run, name, "validation")
        assert told.step.tolist() == list(truth)
        assert told.epoch.tolist() == [0, 1, 2]
        assert told.values == pytest.approx(list(truth.values()), abs=6e-4)
    loss = of(run, "loss", "train")
    assert loss.values == pytest.approx([TRAIN[int(s) - 1] for s in loss.step], abs=6e-3, rel=4e-3)
    assert (np.diff(loss.step) > 0).all()
    assert {s.name for s in run.series} <= {"loss", "accuracy", "throughput"}


def test_what_a_pipe_keeps_of_a_bar_stands_below_it() -> None:
    run = read_run([BARS / "rich_piped.log"])
    assert {(s.name, s.group): (s.values.tolist(), s.epoch.tolist()) for s in run.series} == {
        ("loss", "train"): ([0.002], [2]), ("loss", "validation"): ([0.002], [2]),
        ("accuracy", "validation"): ([0.998], [2])}
    assert all(np.isnan(s.step).all() for s in run.series)  # the bar counts one epoch, which is not the first


def test_lines_below_another_bar_are_not_its_own(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_text("".join(f"Epoch {e}: 100%|####| 20/20 [00:01<00:00, 19.00it/s, loss={2 - e / 4}]\n"
                           f"Evaluating: 100%|####| 7/7 [00:00<00:00, 30.1it/s]\n    val_loss: {2.5 - e / 4}\n"
                           for e in range(5)))
    run = read_run([log])
    held_out = of(run, "loss", "validation")
    assert held_out.values.tolist() == [2.5 - e / 4 for e in range(5)]
    assert 7 not in held_out.step.tolist()
    assert of(run, "loss", "train").epoch.tolist() == [0, 1, 2, 3, 4]


def test_what_is_glued_to_a_bar_is_none_of_its_values(tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    bar = "Epoch {e}: 100%|####| 20/20 [00:01<00:00, 19.00it/s, loss={v}]"
    log.write_text("".join(f"{bar.format(e=e, v=2 - e / 4)}`fit` goes on: `patience={e + 3}` left\n" for e in range(5)))
    assert {s.name for s in read_run([log]).series} == {"loss", "throughput"}
    log.write_text("".join(f"{bar.format(e=e, v=2 - e / 4)} gap={e + 3}\n" for e in range(5)))
    assert {s.name for s in read_run([log]).series} == {"loss", "throughput", "gap"}  # its own, behind a blank


@pytest.mark.parametrize("cut", [700, 2_500, 5_555])
@pytest.mark.parametrize("drawn", ["rich_wrapped", "rich_narrow", "tqdm"])
def test_a_cut_screen_gives_nothing_that_was_not_there(drawn: str, cut: int, tmp_path: Path) -> None:
    log = tmp_path / "train.log"
    log.write_bytes((BARS / f"{drawn}.log").read_bytes()[:-cut] + b"\x1b[2K\xff\xfe val_loss:")
    for s in read_run([log]).series:
        if s.name == "loss":
            assert all(any(abs(v - t) < 0.006 for t in (*TRAIN, *LOSS.values())) for v in s.values)
