"""Logs of unrelated programs in one folder are several runs; whatever one run leaves there is one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine

LOGS = Path(__file__).parents[2] / "fixtures" / "logs"


def words(path: Path, head: str = "", steps: range = range(0, 900, 10), line: str = "") -> None:
    """The log of a language model, by its steps."""
    line = line or "iter {i}: loss {v:.4f}, mfu {w:.2f}%"
    path.write_text(head + "".join(line.format(i=i, v=10 / (1 + i / 50) ** 0.3, w=31 + i % 3) + "\n" for i in steps))


def pictures(path: Path, head: str = "", epochs: int = 30, nan_from: int = 99, line: str = "") -> None:
    """The log of a classifier, by its epochs."""
    line = line or "Epoch {i} train_loss {v} top1 {w:.2f} val_loss {u:.4f}"
    path.write_text(head + "".join(line.format(
        i=i, v=f"{2.3 / i ** 0.3:.4f}" if i < nan_from else "nan", w=30 + i, u=2.3 / i ** 0.25) + "\n"
        for i in range(1, epochs + 1)))


def commands(folder: Path) -> None:
    words(folder / "a.log", "$ python train_gpt.py --lr 3e-4\n")
    pictures(folder / "b.log", "+ CUDA_VISIBLE_DEVICES=0 torchrun --nproc_per_node 2 vision/train_resnet.py --lr 0.1\n")


def one_script_with_other_options(folder: Path) -> None:
    words(folder / "a.log", "python -m lab.train --model gpt --seed 1\n")
    pictures(folder / "b.log", "python -m lab.train --model=resnet --seed 1\n")


def arguments(folder: Path) -> None:
    words(folder / "a.log", "Namespace(lr=0.0003, batch_size=12, device='cuda')\n")
    pictures(folder / "b.log", "Namespace(lr=0.1, batch_size=256, device='cuda')\n")


def hours(folder: Path) -> None:
    stamped(folder / "a.log", 9, "step {i} loss {v:.4f} mfu 31.5")
    stamped(folder / "b.log", 14, "epoch {i} train_loss {v:.4f} top1 40.25", every=3)


def stamped(path: Path, hour: int, line: str, every: int = 1, shift: int = 0) -> None:
    path.write_text("".join(
        f"2026-03-01 {hour + (i * every + shift) // 60:02d}:{(i * every + shift) % 60:02d}:00,000 INFO "
        + line.format(i=i, v=10 / (1 + i / 5) ** 0.3) + "\n" for i in range(60)))


def other_ends(folder: Path) -> None:
    words(folder / "a.log", steps=range(0, 300, 10))
    words(folder / "b.log", steps=range(7, 690, 13), line="update {i} mse {v:.4f} grad_norm {w:.3f}")


@pytest.mark.parametrize("make", [commands, one_script_with_other_options, arguments, hours, other_ends])
def test_logs_of_other_programs_are_judged_each_by_itself(make: Callable[[Path], None], folder: Path) -> None:
    make(folder)
    seen = examine([folder], root=folder)
    assert files(seen) == [["a.log"], ["b.log"]]
    (note,) = [n for n in seen.notes if "logs of several programs" in n]
    assert "a.log (" in note
    assert "b.log (" in note


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of a name that says nothing of the data ("test_...")."""
    found = tmp_path / "jobs"
    found.mkdir()
    return found


def files(seen: Examination) -> list[list[str]]:
    return sorted(sorted({Path(s.source).name for s in r.run.series}) for r in seen.runs)


def test_what_is_wrong_in_one_is_not_said_of_the_other(folder: Path) -> None:
    words(folder / "a.log", "$ python train_gpt.py\n")
    pictures(folder / "b.log", "$ python train_resnet.py\n", nan_from=12)
    seen = examine([folder], root=folder)
    said = {Path(r.one.file).name: r.said for r in seen.runs}
    assert said["a.log"] == "nothing wrong found"
    assert "nan" in said["b.log"].lower()


def test_what_has_the_name_of_one_log_belongs_to_it(folder: Path) -> None:
    commands(folder)
    (folder / "a.err").write_text('Traceback (most recent call last):\n  File "x.py", line 1, in <module>\n    y\n'
                                    "ValueError: boom\n")
    seen = examine([folder], root=folder)
    assert {Path(r.one.file).name: len(r.run.errors) for r in seen.runs} == {"a.log": 1, "b.log": 0}


def steps_and_epochs(folder: Path) -> None:
    words(folder / "train.log", "$ python train.py --lr 0.1\n", line="iter {i}: loss {v:.4f}, lr 0.1, mfu {w:.2f}%")
    pictures(folder / "epochs.log")


def one_command_in_both(folder: Path) -> None:
    words(folder / "stdout.log", "$ torchrun --nproc_per_node 2 train.py --lr 0.1\n")
    pictures(folder / "stderr.log", "+ python -u train.py --lr 0.1 --local_rank=0\n")


def one_set_of_arguments(folder: Path) -> None:
    words(folder / "a.log", "Namespace(lr=0.1, batch_size=256, rank=0, log_dir='a')\n")
    pictures(folder / "b.log", "Namespace(lr=0.1, batch_size=256, rank=1, log_dir='b')\n")


def bars_beside_lines(folder: Path) -> None:
    pictures(folder / "stdout.txt")
    bars = (f"Epoch {e}: 100%|#####| 50/50 [00:10<00:00, 5.0it/s, loss={2.3 / e:.3f}]\n" for e in range(1, 31))
    (folder / "stderr.txt").write_text("".join(bars))


def a_table_beside_a_log(folder: Path) -> None:
    words(folder / "train.log", "$ python train.py --lr 0.1\nNamespace(lr=0.1, epochs=30)\n")
    rows = "".join(f"{e},{2.3 / e:.4f},{40 + e}\n" for e in range(1, 31))
    (folder / "metrics.csv").write_text("epoch,train_loss,accuracy\n" + rows)


def a_counter_of_micro_batches(folder: Path) -> None:
    words(folder / "a.log", steps=range(0, 300, 10))
    words(folder / "b.log", steps=range(7, 1_200, 13), line="update {i} mse {v:.4f} grad_norm {w:.3f}")


def clocks_of_two_zones(folder: Path) -> None:
    stamped(folder / "a.log", 9, "step {i} loss {v:.4f} mfu 31.5")
    stamped(folder / "b.log", 17, "epoch {i} train_loss {v:.4f} top1 40.25", shift=1)


def resumed(folder: Path) -> None:
    words(folder / "a.log", "$ python train.py --epochs 10\n", range(0, 500, 10))
    words(folder / "b.log", "$ python train.py --epochs 20 --resume last.pt\n", range(500, 900, 10))


def ranks(folder: Path) -> None:
    for rank in range(2):
        line = f"[rank {rank}] iter {{i}}: loss {{v:.4f}}"
        words(folder / f"rank_{rank}.log", f"$ python train_{rank}.py\n", line=line)


def validation_of_its_own(folder: Path) -> None:
    words(folder / "train.log", "$ python train.py\n")
    pictures(folder / "val.log", "$ python evaluate.py\n", line="Epoch {i} loss {v} top1 {w:.2f}")


def broken(folder: Path) -> None:
    words(folder / "a.log", "$ python train_gpt.py\n")
    (folder / "b.log").write_bytes(b"$ python other.py\n" + bytes(range(128, 256)) * 40 + b"loss\nEpoch nan loss\n")


@pytest.mark.parametrize("make", [
    steps_and_epochs, one_command_in_both, one_set_of_arguments, bars_beside_lines, a_table_beside_a_log,
    a_counter_of_micro_batches, clocks_of_two_zones, resumed, ranks, validation_of_its_own, broken])
def test_what_one_run_leaves_is_one_run(make: Callable[[Path], None], folder: Path) -> None:
    make(folder)
    seen = examine([folder], root=folder)
    assert len(seen.runs) == 1
    assert not any("several" in n for n in seen.notes)


def test_event_files_beside_a_log_are_of_its_run(folder: Path) -> None:
    words(folder / "train.log", "$ python train.py\n")
    (folder / "events.out.tfevents.1700000000.host.1.0").write_bytes((LOGS / "events.tfevents").read_bytes())
    assert len(examine([folder], root=folder).runs) == 1
