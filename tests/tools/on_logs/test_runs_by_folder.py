"""Logs of different programs, each in its folder, are judged each by itself; what one run leaves is one run."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from traindx_tools.examine import Examination, examine

CRASH = 'Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n    y\nValueError: boom\n'


def steps(path: Path, values: range, line: str = "step {i} loss {v:.4f}") -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    path.write_text("".join(line.format(i=i, v=2.3 * 0.97**i + 0.1) + "\n" for i in values))
    return path


def epochs(path: Path, nan_from: int = 7) -> Path:
    path.parent.mkdir(exist_ok=True, parents=True)
    values = [f"{2 / (i + 1):.4f}" if i < nan_from else "nan" for i in range(12)]
    path.write_text("".join(f"epoch {i}: train_loss={v} lr=0.05\n" for i, v in enumerate(values)))
    return path


def night(folder: Path) -> Path:
    steps(folder / "a" / "job.log", range(0, 300, 10))
    epochs(folder / "b" / "job.log")
    steps(folder / "c" / "job.log", range(7, 900, 13), "iter {i}: mse {v:.4f} lr 0.001")
    return folder


def runs(seen: Examination) -> list[tuple[str, list[str]]]:
    return sorted((Path(r.one.file).parent.name, sorted({s.source.split("/")[-2] for s in r.run.series}))
                  for r in seen.runs)  # fmt: skip


def test_each_run_is_judged_by_what_lies_in_its_folder(tmp_path: Path) -> None:
    seen = examine([night(tmp_path)], root=tmp_path)
    assert runs(seen) == [("a", ["a"]), ("b", ["b"]), ("c", ["c"])]
    said = {Path(r.one.file).parent.name: r.said for r in seen.runs}
    assert "nan" in said["b"]
    assert said["a"] == said["c"] == "nothing wrong found"
    assert any("each in a folder of its own" in n for n in seen.notes)


def test_no_number_of_one_run_is_compared_with_one_of_another(tmp_path: Path) -> None:
    night(tmp_path)
    (tmp_path / "a" / "config.json").write_text('{"lr": 0.01}')
    seen = examine([tmp_path], root=tmp_path)
    config = {Path(r.one.file).parent.name: dict(r.run.config) for r in seen.runs}
    assert config["a"].get("lr") == 0.01 or "lr" not in config["a"]
    assert not any("0.01 in the configuration" in f.statement for r in seen.runs for f in r.findings)


def test_files_that_are_named_one_by_one(tmp_path: Path) -> None:
    night(tmp_path)
    seen = examine([tmp_path / "b" / "job.log", tmp_path / "a" / "job.log"], root=tmp_path)
    assert [name for name, _ in runs(seen)] == ["a", "b"]


def test_a_run_that_crashed_before_its_first_record_is_one_of_its_own(tmp_path: Path) -> None:
    night(tmp_path)
    (tmp_path / "d").mkdir()
    (tmp_path / "d" / "job.log").write_text(CRASH)
    seen = examine([tmp_path], root=tmp_path)
    assert {Path(r.one.file).parent.name: len(r.run.errors) for r in seen.runs} == {"a": 0, "b": 0, "c": 0, "d": 1}


def test_folders_with_a_program_each_need_no_common_name(tmp_path: Path) -> None:
    epochs(tmp_path / "x" / "log.txt")
    steps(tmp_path / "y" / "train.log", range(100))
    assert len(examine([tmp_path], root=tmp_path).runs) == 1
    for folder in ("x", "y"):
        (tmp_path / folder / "train.py").write_text("print(1)\n")
    assert len(examine([tmp_path], root=tmp_path).runs) == 2


def test_restarts_within_a_folder_are_runs_as_well(tmp_path: Path) -> None:
    night(tmp_path)
    log = tmp_path / "a" / "job.log"
    log.write_text("Starting training\n" + log.read_text() + "Starting training\n" + log.read_text())
    alone = len(examine([log], root=tmp_path).runs)
    seen = examine([tmp_path], root=tmp_path)
    assert [r.one.number for r in seen.runs] == list(range(1, alone + 3))
    assert {r.one.of for r in seen.runs} == {alone + 2}


def goes_on(folder: Path) -> None:
    steps(folder / "part1" / "job.log", range(100))
    steps(folder / "part2" / "job.log", range(100, 200))


def copied(folder: Path) -> None:
    steps(folder / "here" / "job.log", range(100))
    steps(folder / "there" / "job.log", range(100))


def validated(folder: Path) -> None:
    steps(folder / "train" / "log.txt", range(0, 2000, 10))
    steps(folder / "val" / "log.txt", range(0, 2000, 300))


def nested(folder: Path) -> None:
    steps(folder / "job.log", range(100))
    epochs(folder / "out" / "job.log", nan_from=99)


def other_names(folder: Path) -> None:
    steps(folder / "console" / "out.txt", range(100))
    epochs(folder / "logs" / "train.log", nan_from=99)


@pytest.mark.parametrize("make", [goes_on, copied, validated, nested, other_names])
def test_what_one_run_leaves_in_several_folders_is_one_run(make: Callable[[Path], None], tmp_path: Path) -> None:
    make(tmp_path)
    assert len(examine([tmp_path], root=tmp_path).runs) == 1


def test_a_job_of_ranks_is_one_of_the_runs_and_its_findings_are_its_own(tmp_path: Path) -> None:
    night(tmp_path)
    (tmp_path / "ddp").mkdir()
    lines = [f"[rank{r}] epoch 0 step {s} loss {3 - s / 90:.4f}" for s in range(0, 60, 5) for r in range(4)]
    lines += ["[rank2]: Traceback (most recent call last):", '[rank2]:   File "train.py", line 7, in <module>',
              "[rank2]:     y", "[rank2]: ValueError: boom"]
    (tmp_path / "ddp" / "all.log").write_text("\n".join(lines) + "\n")
    seen = examine([tmp_path], root=tmp_path)
    told = {Path(r.one.file).parent.name: {f.rule for f in r.findings if f.rule.startswith("R")} for r in seen.runs}
    assert told == {"a": set(), "b": set(), "c": set(), "ddp": {"R201"}}


def test_files_without_records_are_no_runs(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "job.log").write_text("" if name == "a" else "step x loss\n" * 3)
    steps(tmp_path / "c" / "job.log", range(100))
    assert len(examine([tmp_path], root=tmp_path).runs) == 1


def test_a_file_for_each_rank_is_one_job_beside_other_runs(tmp_path: Path) -> None:
    night(tmp_path)
    for rank in range(3):
        steps(tmp_path / f"rank_{rank}" / f"rank_{rank}.log", range(100), f"[rank {rank}] step {{i}} loss {{v:.4f}}")
    seen = examine([tmp_path], root=tmp_path)
    assert len(seen.runs) == 4
    assert ("rank_0", ["rank_0", "rank_1", "rank_2"]) in runs(seen)


def test_the_code_in_the_folder_of_another_run_is_not_this_ones(tmp_path: Path) -> None:
    night(tmp_path)
    loop = ("import torch\nnet = torch.nn.Linear(4, 1)\nopt = torch.optim.SGD(net.parameters(), lr=0.1)\n"
            "for i in range(90):\n    loss = {}\n    opt.zero_grad()\n    loss.backward()\n    opt.step()\n"
            "    print(f'step {{i}} loss {{loss.item():.4f}}')\n")
    (tmp_path / "b" / "train.py").write_text(loop.format("net(torch.randn(8, 4)).log().mean()"))
    (tmp_path / "a" / "train.py").write_text(loop.format("net(torch.randn(8, 4)).square().mean()"))
    seen = examine([tmp_path], root=tmp_path)
    assert {Path(r.one.file).parent.name: any(f.rule == "C107" for f in r.findings) for r in seen.runs} == {
        "a": False, "b": True, "c": False}
