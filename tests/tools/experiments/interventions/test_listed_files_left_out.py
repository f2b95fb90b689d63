"""A file that is left out is taken out of the lists that name it, so that the program keeps running."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from traindx_tools.experiments.change import parse_change
from traindx_tools.experiments.interventions import prepare
from traindx_tools.experiments.interventions.writing.listed import without_entries

GONE, KEPT = ("data/b.npz",), ("data/a.npz", "data/c.npz", "data/val.npz")


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
    assert without_entries(text, suffix, GONE, KEPT) == left


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
    assert without_entries(text, suffix, GONE, KEPT) is None


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
