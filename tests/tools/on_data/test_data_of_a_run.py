"""Within `examine` the data that a run's folder holds or its code names are read by themselves; its outputs are not."""

from __future__ import annotations

from pathlib import Path

import data_making as making
import numpy as np
import pytest
from data_making import Rows, series

from traindx_tools.errors import UnreadableInput
from traindx_tools.examine import examine
from traindx_tools.finding import Severity
from traindx_tools.on_data.named_paths import named_paths

LOG = "\n".join(f"step {i} loss {2.3 * 0.97**i:.4f}" for i in range(60))
CODE = """import numpy as np
import torch

model = torch.nn.Linear(12, 6)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for step in range(60):
    rows = np.load(f"data/part_{step % 6:03d}.npz")
    loss = torch.nn.functional.cross_entropy(model(torch.from_numpy(rows["x"])), torch.from_numpy(rows["y"]))
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    print(f"step {step} loss {loss.item():.4f}")
np.savez("data/out.npz", scores=model.weight.detach().numpy())
"""


def of_bytes(i: int, rows: Rows, rng: np.random.Generator) -> Rows:
    return {**rows, "x": rows["x"] * 255} if i == 3 else rows


def a_run(folder: Path, edit: making.Edit | None) -> None:
    (folder / "data").mkdir()
    series(folder / "data", "npz", edit)
    (folder / "train.py").write_text(CODE)
    (folder / "run.log").write_text(LOG)


def test_a_folder_is_enough(tmp_path: Path) -> None:
    a_run(tmp_path, of_bytes)
    seen = examine([tmp_path])
    found = [f for f in seen.findings if f.rule == "D104"]
    assert [Path(f.where.file or "").name for f in found] == ["part_003.npz"]
    assert seen.verdict.hypotheses[0].mode.id == "data.shard-scale"
    assert {a.format for a in seen.run.artifacts if a.path.endswith(".npz")} == {"npz"}


def test_the_code_beside_a_log_names_them(tmp_path: Path) -> None:
    a_run(tmp_path, of_bytes)
    found = [f for f in examine([tmp_path / "run.log"], root=tmp_path).findings if f.rule == "D104"]
    assert [f.where.file for f in found] == ["data/part_003.npz"]


def test_a_healthy_run_with_data_stays_healthy(tmp_path: Path) -> None:
    a_run(tmp_path, None)
    seen = examine([tmp_path])
    assert [f for f in seen.findings if f.rule.startswith("D") and f.severity is not Severity.INFO] == []
    assert seen.verdict.status == "healthy"


def test_what_the_run_wrote_is_no_data(tmp_path: Path) -> None:
    a_run(tmp_path, None)
    np.savez(tmp_path / "data" / "out.npz", scores=np.full((6, 12), np.nan))
    rows = "\n".join(f'{{"step": {i}, "loss": {"NaN" if i > 30 else 1.0 / (i + 1)}}}' for i in range(60))
    (tmp_path / "metrics.jsonl").write_text(rows)
    assert [f for f in examine([tmp_path]).findings if f.rule.startswith("D")] == []


def test_sizes_of_the_configuration_count(tmp_path: Path) -> None:
    ids = np.random.default_rng(0).integers(0, 900, (300, 32))
    ids[7, 3] = 1000
    np.savez(tmp_path / "train.npz", input_ids=ids)
    (tmp_path / "config.yaml").write_text("model:\n  vocab_size: 1000\n")
    (tmp_path / "run.log").write_text(LOG)
    found = [f for f in examine([tmp_path]).findings if f.rule == "D120"]
    assert found[0].measured["vocabulary"] == 1000


def test_paths_in_code(tmp_path: Path) -> None:
    (tmp_path / "data" / "deep").mkdir(parents=True)
    for name in ("data/a_1.npz", "data/b.csv", "data/deep/c.npy", "data/written.npz"):
        (tmp_path / name).write_text("x")
    (tmp_path.parent / "outside.npz").write_text("x")
    code = tmp_path / "train.py"
    code.write_text(
        'ROOT = "data/deep"\nfor i in range(3):\n    load(f"data/a_{i}.npz")\n'
        'frame = read("data/b.csv")\nother = read("../outside.npz")\nabsolute = read("/etc/passwd")\n'
        'np.savez("data/written.npz", x=1)\nwith open("data/written.npz", "w"): pass\n'
    )
    named = {str(p.relative_to(tmp_path)) for p in named_paths([code], tmp_path)}
    assert named == {"data/deep", "data/a_1.npz", "data/b.csv"}
    assert {p.name for p in named_paths([code], tmp_path, written=True)} == {"written.npz"}


def test_code_that_is_no_code_names_nothing(tmp_path: Path) -> None:
    code = tmp_path / "train.py"
    for text in ("def f(:\n", "(" * 5000, "\0"):
        code.write_text(text)
        assert list(named_paths([code], tmp_path)) == []


def test_data_alone_are_judged_and_damaged_ones_are_sent_to_their_command(tmp_path: Path) -> None:
    series(tmp_path, "npz", shards=2, rows=30)
    assert {a.format for a in examine([tmp_path]).run.artifacts} == {"npz"}
    for path in tmp_path.glob("*.npz"):
        path.write_bytes(b"PK\x03\x04junk")
    with pytest.raises(UnreadableInput, match="traindx data PATH"):
        examine([tmp_path])


@pytest.mark.parametrize(("pictures", "code", "read"), [(60, "", True), (60, CODE, False), (20, "", False)])
def test_a_folder_of_many_pictures_without_code_is_data(pictures: int, code: str, read: bool, tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    (tmp_path / "images").mkdir()
    rng = np.random.default_rng(0)
    for i in range(pictures):
        image.fromarray(rng.integers(0, 256, (24, 24, 3), np.uint8)).save(tmp_path / "images" / f"tile_{i:03d}.png")
    (tmp_path / "run.log").write_text(LOG)
    if code:
        (tmp_path / "train.py").write_text(code)
    said = [a for a in examine([tmp_path]).run.artifacts if Path(a.path).name == "images" and not a.note]
    assert bool(said) is read


@pytest.mark.parametrize(("folders", "named", "read"), [
    (("train/oak", "train/elm", "val/oak", "val/elm"), '"photos"', True),
    (("train/oak", "train/elm", "val/oak", "val/elm"), '"elsewhere"', False),  # not named: they may be plots
    (("",), '"photos"', False),  # one folder may be where plots go
])
def test_folders_of_pictures_below_one_that_the_code_names_by_a_word(folders: tuple[str, ...], named: str, read: bool,
                                                                      tmp_path: Path) -> None:
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(0)
    for folder in folders:
        (below := tmp_path / "photos" / folder).mkdir(parents=True)
        for i in range(60):
            image.fromarray(rng.integers(0, 256, (24, 24, 3), np.uint8)).save(below / f"tile_{i:03d}.png")
    (tmp_path / "train.log").write_text(LOG)
    (tmp_path / "train.py").write_text(f"import pathlib\nroot = pathlib.Path({named})\n{CODE}")
    assert any(a.format == "pictures" for a in examine([tmp_path]).run.artifacts) is read


def photos(folder: Path, sizes: dict[str, int], copied: int = 0) -> None:
    """Pictures of two classes for each split; `copied` ones of the test split are brighter copies of training ones."""
    image = pytest.importorskip("PIL.Image")
    rng = np.random.default_rng(1)
    made = {}
    for split, count in sizes.items():
        for label in ("cat", "dog"):
            (folder / split / label).mkdir(parents=True)
            for i in range(count):
                pixels = np.kron(rng.integers(0, 200, (6, 6, 3)), np.ones((8, 8, 1)))
                if split == "train":
                    made[label, i] = pixels
                elif split == "test" and i < copied:
                    pixels = made[label, i] * 1.1 + 5
                path = folder / split / label / f"{split}_{i:03d}.jpg"
                image.fromarray(pixels.astype(np.uint8)).save(path, quality=90)


@pytest.mark.parametrize("copied", [0, 8])
def test_folders_of_classes_are_one_set_and_copies_across_its_split_are_told(copied: int, tmp_path: Path) -> None:
    photos(tmp_path, {"train": 40, "val": 10, "test": 20}, copied)
    report = examine([tmp_path])
    assert [a.rows for a in report.run.artifacts if a.format == "pictures"] == [20]
    assert {f.rule for f in report.findings if f.severity is not Severity.INFO} == ({"D114"} if copied else set())


def test_plots_of_several_runs_and_folders_with_a_damaged_picture(tmp_path: Path) -> None:
    photos(tmp_path, {"run1": 3, "run2": 3})
    (tmp_path / "run.log").write_text(LOG)
    assert not [a for a in examine([tmp_path]).run.artifacts if a.format == "pictures"]
    photos(tmp_path / "data", {"train": 30, "test": 30})
    (tmp_path / "data" / "train" / "cat" / "train_000.jpg").write_bytes(b"\xff\xd8\xff")
    told = [f for f in examine([tmp_path]).findings if f.severity is not Severity.INFO]
    assert [f.rule for f in told if f.rule.startswith("D")] == ["D118"]
