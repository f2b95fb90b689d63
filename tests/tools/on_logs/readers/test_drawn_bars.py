"""Bars drawn with signs: the classic Keras bar in all its states, and what other trainings draw."""

from __future__ import annotations

from itertools import chain

import pytest

from traindx_tools.on_logs import Run, read_run

BACK = "\x08" * 90


def read(text: str) -> Run:
    return read_run(["-"], stdin=text.encode())


def found(run: Run) -> dict[tuple[str, str], list[float]]:
    return {(s.group, s.name): s.values.tolist() for s in run.series}


def epochs(run: Run, group: str, name: str) -> list[float]:
    return next(s.epoch.tolist() for s in run.series if (s.group, s.name) == (group, name))


def bar(done: int, total: int, rest: str) -> str:
    """A classic Keras bar: 30 signs wide, ">" at its head until it is full."""
    full = 30 * done // total
    drawn = "=" * 30 if done == total else "=" * max(full - 1, 0) + ">" * (full > 0) + "." * (30 - full)
    return f"{done}/{total} [{drawn}] - {rest}"


EPOCHS = [(2.1, 0.31, 1.9, 0.35), (1.5, 0.4, 1.45, 0.42), (1.2, 0.55, 1.3, 0.5)]


def classic(redraw: str, last: str = "12s 8ms/step - ") -> str:
    """A Keras 2 log of three epochs; each bar is drawn four times and ends with the metrics of the validation."""
    lines = []
    for at, (loss, accuracy, val_loss, val_accuracy) in enumerate(EPOCHS, 1):
        lines.append(f"Epoch {at}/10\n")
        lines += [redraw + bar(n, 1563, f"ETA: {eta} - loss: {loss + 0.1:.4f} - accuracy: {accuracy:.4f}")
                  for n, eta in ((1, "5:02"), (781, "6s"), (1562, "0s"))]
        lines.append(redraw + bar(1563, 1563, f"{last}loss: {loss:.4f} - accuracy: {accuracy:.4f} - val_loss: "
                                              f"{val_loss:.4f} - val_accuracy: {val_accuracy:.4f}") + "\n")
    return "".join(lines)


@pytest.mark.parametrize("redraw", ["\r", BACK, BACK + "\r", "\n"], ids=["return", "back", "both", "lines"])
def test_each_epoch_of_a_classic_keras_bar_gives_its_last_drawing(redraw: str) -> None:
    run = read(classic(redraw))
    values = found(run)
    assert values["train", "loss"] == [2.1, 1.5, 1.2]
    assert values["train", "accuracy"] == [0.31, 0.4, 0.55]
    assert values["validation", "loss"] == [1.9, 1.45, 1.3]
    assert values["validation", "accuracy"] == [0.35, 0.42, 0.5]
    assert values["train", "step_time"] == [0.008] * 3
    assert epochs(run, "train", "loss") == epochs(run, "validation", "loss") == [1, 2, 3]
    assert not any("eta" in name for _, name in values)
    assert (run.planned_steps, run.planned_unit) == (10, "epoch")
    assert run.artifacts[0].format == "keras"


def test_a_bar_without_times_is_read() -> None:
    assert found(read(classic("\r", last="")))["validation", "accuracy"] == [0.35, 0.42, 0.5]


def test_a_bar_of_unknown_length_is_read() -> None:
    text = "Epoch 1/2\n" + "".join(f"\r    {n}/Unknown - {n}s 1s/step - loss: 0.{9 - n}" for n in (1, 2, 3)) + (
        "\n3/3 [==============================] - 4s 1s/step - loss: 0.6000 - val_loss: 0.7000\n"
        "Epoch 2/2\n3/3 [==============================] - 4s 1s/step - loss: 0.5000 - val_loss: 0.6500\n")
    assert found(read(text))["validation", "loss"] == [0.7, 0.65]
    assert found(read(text))["train", "loss"][-2:] == [0.6, 0.5]


def test_one_line_alone_is_read() -> None:
    line = "1563/1563 [==============================] - 12s 8ms/step - loss: 1.5 - accuracy: 0.4\n"
    values = {("train", "step_time"): [0.008], ("train", "loss"): [1.5], ("train", "accuracy"): [0.4]}
    assert found(read(line)) == values


def test_a_bar_that_ends_with_its_count_is_read() -> None:
    text = "Epoch: 0\n" + "\n".join(
        f" [{'=' * n}>{'.' * (8 - n)}]  Step: 73ms | Tot: 1{n}s | Loss: {2 - n / 10:.3f} | Acc: 40.{n}% (3320/8000) "
        f"{n * 100}/800 " for n in range(1, 6)) + "\n"
    values = found(read(text))
    assert values["train", "loss"] == [1.9, 1.8, 1.7, 1.6, 1.5]
    assert values["train", "step_time"] == [0.073] * 5
    assert next(s.step.tolist() for s in read(text).series if s.name == "loss") == [100, 200, 300, 400, 500]


@pytest.mark.parametrize("line", [
    "assert a == 3, loss 2.0", "if step == 10: loss 0.5", "python train.py --loss 0.3 --lr=1e-3",
    "16/80 [======>......", "[=====>....] 40%", "12/20 [=====>....] - ETA: 0s",
])
def test_what_only_looks_like_a_bar_gives_nothing(line: str) -> None:
    assert not read(line + "\n").series


def lightning(scores: list[tuple[float, float]], every: int = 25) -> str:
    """Lightning's bar: behind it stand the scores of the last evaluation until the next one."""
    lines, shown = [], ""
    for epoch, (loss, accuracy) in enumerate(scores):
        for n in range(every, 126, every):
            lines.append(f"Epoch {epoch}: {n * 100 // 125:3}%|###  | {n}/125 [00:01<00:00, 110.21it/s, v_num=0, "
                         f"train_loss={2 / (n + 125 * epoch):.4f}{shown}]\n")
        shown = f", val_loss={loss:.4f}, val_acc={accuracy:.4f}"
        lines.append(lines[-1].partition(", val_loss")[0].rstrip("]\n") + shown + "]\n")
    return "".join(lines)


def test_scores_that_stay_behind_a_bar_are_counted_once_an_epoch() -> None:
    values = found(read(lightning([(3.9, 0.0), (6.1, 0.0), (7.4, 0.0)])))
    assert values["validation", "loss"] == [3.9, 6.1, 7.4]
    assert values["validation", "accuracy"] == [0.0, 0.0, 0.0]
    assert len(values["train", "loss"]) == 15


def test_a_score_that_moves_within_an_epoch_is_kept() -> None:
    text = "".join(f"Epoch 0:  {n}%|###  | {n}/100 [00:01<00:00, 9.9it/s, loss={1 / n:.4f}, val_loss={2 / n:.4f}]\n"
                   for n in range(10, 101, 10))
    assert len(found(read(text))["validation", "loss"]) == 10


def screen(losses: list[list[float]], percent: bool) -> str:
    """Bars of rich: one an epoch, all of them drawn anew where one moves."""
    def one(epoch: int, done: int, loss: float) -> str:
        share = f" {100 * done // 4:3}%" if percent else ""
        drawn = f"\x1b[91m{'━' * (10 * done)}\x1b[90m╺{'━' * (40 - 10 * done)}\x1b[0m"
        return f"epoch {epoch} {drawn}{share} {done}/4 loss={loss}"

    text = ""
    for epoch, row in enumerate(losses, 1):
        above = [one(e + 1, 4, losses[e][-1]) for e in range(epoch - 1)]
        for done, loss in enumerate(row, 1):
            text += "\r\x1b[2K" + "\x1b[1A\x1b[2K" * (epoch - 1) + "\n".join([*above, one(epoch, done, loss)])
        text += "\n" if epoch < len(losses) else ""
    return text


@pytest.mark.parametrize("percent", [False, True])
def test_full_bars_above_the_one_that_moves_are_no_records_again(percent: bool) -> None:
    losses = [[2.5, 2.1, 1.8, 1.6], [1.5, 1.4, 1.3, 1.2], [1.1, 1.0, 0.9, 0.8]]
    run = read(screen(losses, percent))
    loss, = run.series
    assert loss.values.tolist() == list(chain(*losses))
    assert loss.step.tolist() == list(range(1, 13))


def test_a_run_that_is_started_again_and_ends_alike_is_a_run() -> None:
    losses = [[2.5, 2.1, 1.8, 1.6], [1.5, 1.4, 1.3, 1.2]]
    loss, = read(screen(losses, percent=True) + "\n" + screen(losses, percent=True)).series
    assert loss.values.tolist() == list(chain(*losses, *losses))


def test_equal_ends_of_epochs_and_a_bar_that_is_cut_are_kept() -> None:
    losses = [[0.5, 0.5, 0.5, 0.5]] * 3
    text = screen(losses, percent=True)
    assert read(text).series[0].values.tolist() == [0.5] * 12
    assert len(read(text[: -len(" 100% 4/4 loss=0.5")]).series[0].values) == 11


@pytest.mark.parametrize(("first", "kept"), [("0.0", [2.5, 2.1]), ("2.7", [2.7, 2.5, 2.1]), ("nan", [2.5, 2.1])])
def test_zeros_before_the_first_batch_are_no_values(first: str, kept: list[float]) -> None:
    shown = ((0, "?", first), (1, "1.0", "2.5"), (2, "1.0", "2.1"))
    text = "".join(f"\r {50 * n}%|{'#' * 5 * n}| {n}/2 [00:0{n}<?, {rate}it/s, loss={loss}]" for n, rate, loss in shown)
    loss, = (s for s in read(text).series if s.name == "loss")
    assert [v for v in loss.values.tolist() if v == v] == kept
    assert (first == "nan") == (len(loss.values) == 3 and loss.values[0] != loss.values[0])
