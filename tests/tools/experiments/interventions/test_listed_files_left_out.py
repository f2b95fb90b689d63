"""A file that is left out is taken out of the lists that name it, so that the program keeps running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import prepare, prepare_all
from traindx_tools.experiments.interventions.writing.listed import Missing, without_entries

MISSING = Missing.of(("data/b.npz",), ("data/a.npz", "data/c.npz", "data/val.npz"))


@pytest.mark.parametrize(("suffix", "text", "left"), [
    (".yaml", "shards: [a.npz, b.npz, c.npz]\nval: b.npz\n", "shards: [a.npz, c.npz]\nval: b.npz\n"),
    (".yaml", "shards:\n  - data/a.npz  # one\n  - data/b.npz\nlr: 1\n", "shards:\n  - data/a.npz\nlr: 1\n"),
    (".yaml", "shards: [b, a]\n", "shards: [a]\n"),
    (".json", '{"shards": ["b.npz", "./data/c.npz"]}', '{"shards": ["./data/c.npz"]}'),
    (".toml", 'shards = [\n  "a.npz",\n  "b.npz",  # two\n]\n', 'shards = [\n  "a.npz",  # two\n]\n'),
    (".py", 'é = "ö"; S = ("a.npz", "b.npz", "c.npz")\n', 'é = "ö"; S = ("a.npz", "c.npz")\n'),
    (".txt", "data/a.npz\ndata/b.npz\ndata/c.npz\n", "data/a.npz\ndata/c.npz\n"),
])
def test_the_entry_of_a_list_goes_and_the_rest_stays(suffix: str, text: str, left: str) -> None:
    assert without_entries(text, suffix, MISSING) == left


@pytest.mark.parametrize(("suffix", "text"), [
    (".yaml", "shards: [b.npz]\n"),  # a list is not emptied
    (".yaml", "val: b.npz\n"),  # a name by itself
    (".yaml", "stages: [b, train]\n"),  # words of another list that look like one
    (".yaml", "shards: [a.npz, xb.npz]\n"),
    (".yaml", "shards: [a.npz, b.npz\n"),  # broken
    (".py", "S = ['a.npz', 'b.npz'\n"),
    (".toml", "shards = ['a.npz', 'b.npz'\n"),
    (".csv", "a.npz,b.npz\n"),
])
def test_anything_else_stays_as_it_is(suffix: str, text: str) -> None:
    assert without_entries(text, suffix, MISSING) is None


def test_two_files_of_one_list_are_left_out_together_and_other_changes_of_it_are_refused(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / f"{name}.npz").write_bytes(b"")
    (tmp_path / "config.json").write_text('{"shards": ["a.npz", "b.npz", "c.npz"]}')
    left = [parse_change(f"files-left-out:files={n}.npz") for n in "ab"]
    made = prepare_all(left, "python train.py", tmp_path).files
    assert made == {"a.npz": None, "b.npz": None, "config.json": b'{"shards": ["c.npz"]}'}
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "config.json").write_text("{}")
    other = parse_change("data-from:folder=other,files=config.json")
    with pytest.raises(BadUsage, match="which another one changes"):
        prepare_all([left[0], other], "python train.py", tmp_path)


def test_the_copy_has_neither_the_file_nor_its_name(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a", "b", "c"):
        (tmp_path / "data" / f"{name}.npz").write_bytes(b"")
    (tmp_path / "config.json").write_text(json.dumps({"shards": ["a.npz", "b.npz", "c.npz"], "seed": 3}))
    (tmp_path / "odd.yaml").write_bytes(b"\xff b.npz")
    (tmp_path / "train.py").write_text("print()\n")
    out = prepare(parse_change("files-left-out:files=data/b.npz"), "python train.py", tmp_path).files
    assert out.keys() == {"data/b.npz", "config.json"}
    assert out["data/b.npz"] is None
    assert json.loads(out["config.json"] or b"") == {"shards": ["a.npz", "c.npz"], "seed": 3}
    alone = prepare(parse_change("files-alone:files=data/b.npz"), "python train.py", tmp_path).files
    assert json.loads(alone["config.json"] or b"") == {"shards": ["b.npz"], "seed": 3}


@pytest.mark.parametrize("path", ["data/b.npz", "./data/b.npz", "data/../data/b.npz", "{folder}/data/b.npz"])
def test_a_file_is_left_out_by_any_spelling_of_its_path(tmp_path: Path, path: str) -> None:
    (tmp_path / "data").mkdir()
    for name in ("a.npz", "b.npz"):
        (tmp_path / "data" / name).write_bytes(b"1")
    change = parse_change(f"files-left-out:files={path.format(folder=tmp_path)}")
    assert prepare(change, "python train.py", tmp_path).files == {"data/b.npz": None}


@pytest.mark.parametrize("path", ["../b.npz", "./b.npz", "{folder}/../b.npz"])
def test_a_path_of_no_file_of_the_workspace_is_refused(tmp_path: Path, path: str) -> None:
    (tmp_path / "inside" / "data").mkdir(parents=True)
    (tmp_path / "inside" / "data" / "b.npz").write_bytes(b"1")
    (tmp_path / "b.npz").write_bytes(b"1")
    change = parse_change(f"files-left-out:files={path.format(folder=tmp_path / 'inside')}")
    with pytest.raises(BadUsage, match="no file below"):
        prepare(change, "python train.py", tmp_path / "inside")
