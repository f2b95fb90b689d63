"""Names of places: the workspace's own, also for paths of another machine."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from traindx import gate
from traindx.diagnose import diagnose
from traindx.places import Places, common_root
from traindx.usual_lines import Anchor
from traindx_tools.finding import Location


@pytest.fixture
def places(tmp_path: Path) -> Places:
    for name in ("train.py", "models/net.py", "other/net.py"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("x = 1\n")
    (tmp_path / "train.py").write_text("x = 1\nif __name__ == '__main__':\n    x = 2\n")
    code = (tmp_path / "train.py", tmp_path / "models" / "net.py", tmp_path / "other" / "net.py")
    return Places(tmp_path, code, (Anchor("optimizer", "train.py", 1, "x = 1"),))


def test_a_file_of_the_workspace_is_named_from_it(places: Places) -> None:
    assert places.name(str(places.root / "models" / "net.py")) == "models/net.py"
    assert places.name("models/net.py") == "models/net.py"


def test_a_path_of_another_machine_is_found_again_by_its_tail(places: Places) -> None:
    assert places.name("/home/me/project/train.py") == "train.py"
    assert places.name("/home/me/project/other/net.py") == "other/net.py"


def test_a_name_that_fits_two_files_or_none_stays_as_it_is(places: Places) -> None:
    assert places.name("/home/me/net.py") == "/home/me/net.py"
    assert places.name("/home/me/loss.py") == "/home/me/loss.py"


def test_only_code_that_was_read_is_a_code_place(places: Places) -> None:
    assert places.code_place(Location(file="/x/train.py", line=2)) == ("train.py", 2)
    assert places.code_place(Location(file="log.txt", line=2)) is None
    assert places.code_place(Location(step=3)) is None


def test_the_training_command_is_guessed_only_where_one_script_can_be_run(places: Places) -> None:
    assert places.training_command == "python train.py"
    assert Places(places.root, places.code[1:]).training_command is None


def test_the_workspace_is_the_deepest_common_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "log.txt").write_text("")
    assert common_root([tmp_path / "a" / "log.txt", tmp_path / "a" / "b"]) == (tmp_path / "a").resolve()
    assert common_root([tmp_path / "a" / "b"]) == (tmp_path / "a" / "b").resolve()
    assert common_root(["-"]) == Path.cwd()


STATEMENTS = """optimizer = make(
    [first],
    lr=0.1,
)
for step in range(
    3,
):
    x = 1
done = True
"""


@pytest.mark.parametrize(("line", "last"), [(1, 4), (3, 4), (5, 7), (8, 8), (9, 9), (40, None)])
def test_a_change_of_a_line_is_one_of_its_statement(tmp_path: Path, line: int, last: int | None) -> None:
    (tmp_path / "fit.py").write_text(STATEMENTS)
    (tmp_path / "broken.py").write_text("x = (\n")
    places = Places(tmp_path, (tmp_path / "fit.py", tmp_path / "broken.py"))
    assert places.last_line("fit.py", line) == last
    assert places.last_line("broken.py", 1) is None
    assert places.last_line("gone.py", 1) is None


@pytest.mark.usefixtures("sure_figures")
def test_an_approval_of_a_change_by_hand_covers_the_whole_call(tmp_path: Path) -> None:
    fixture = Path(__file__).parent.parent / "tools/on_code/fixtures/c276/bad_sum_of_lists.py"
    one_list = "AdamW(\n    list(net.trunk.parameters())\n    + list(net.head.parameters()),\n    lr=1e-3,\n)"
    text, changed = re.subn(r"SGD\(list.*\)", one_list, fixture.read_text())
    assert changed == 1  # one list for both groups: no place for a third is certain
    (tmp_path / "train.py").write_text(text)
    report = diagnose([tmp_path / "train.py"], symptom="the loss does not improve")
    assert report.diagnosis is not None
    option = report.diagnosis.options[0]
    (told,) = option.instructions
    assert text.splitlines()[told.line - 1].startswith("optimizer = torch.optim.AdamW(")
    inserted = told.line + 3
    assert gate.covers(option, "train.py", inserted, inserted - 1)
    assert not gate.covers(option, "train.py", told.last_line + 2, told.last_line + 2)


def test_the_line_that_a_run_names_stands_before_one_of_the_usual_kind(tmp_path: Path) -> None:
    """The fixed code beside the old log: nothing is wrong in it any more, and `evaluate` calls a loss further down."""
    example = Path(__file__).parents[2] / "examples" / "numpy-lr"
    for name in ("train.py", "log.txt", "metrics.csv"):
        (tmp_path / name).write_text((example / name).read_text().replace("EPS = 1e-12", "EPS = 1e-6"))
    found = diagnose([tmp_path]).hypotheses
    assert (found[0].failure_mode, found[0].location) == ("loss.log-of-zero", "train.py:46")
    assert found[0].issue.count("train.py:") == 1
    usual = next(h for h in found if h.location == "train.py:53")
    assert "(usually at train.py:53)" in usual.issue


def test_where_an_error_only_surfaced_the_line_of_the_usual_kind_is_meant(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(
        "import torch\nloader = torch.utils.data.DataLoader(data, batch_size=512)\nnet = torch.nn.Linear(2, 1)\n"
        "for x in loader:\n    loss = net(x).sum()\n    loss.backward()\n")
    (tmp_path / "log.txt").write_text(
        "step 0 loss 0.5\nTraceback (most recent call last):\n  File \"train.py\", line 6, in <module>\n"
        "    loss.backward()\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB.\n")
    first = next(h for h in diagnose([tmp_path]).hypotheses if h.failure_mode.startswith("mem."))
    assert first.location != "train.py:6"
