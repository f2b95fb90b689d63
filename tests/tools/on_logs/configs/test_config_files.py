"""Configuration files in every format give the same flat mapping; hostile ones are refused in a clear sentence."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from traindx_tools.errors import TraindxError, UnreadableInput
from traindx_tools.on_logs.configs import read_config

EXPECTED = {"model.dim": 48, "optim.lr": 1e-3, "optim.betas": [0.9, 0.95], "seed": 0, "compile": False, "resume": None}


@pytest.mark.parametrize(
    ("path", "text"),
    [
        ("config.yaml",
         "model:\n  dim: 48\noptim:\n  lr: 1e-3\n  betas: [0.9, 0.95]\nseed: 0\ncompile: false\nresume: null\n"),
        ("config.json",
         '{"model": {"dim": 48}, "optim": {"lr": 0.001, "betas": [0.9, 0.95]}, "seed": 0, "compile": false, '
                        '"resume": null}'),
        ("no_ending",
         '{"model": {"dim": 48}, "optim": {"lr": 0.001, "betas": [0.9, 0.95]}, "seed": 0, "compile": false, '
                      '"resume": null}'),
        ("wandb/config.yaml",
         "_wandb:\n  value: {cli_version: 0.1}\nwandb_version: 1\nmodel:\n  desc: null\n  value: {dim: 48}\n"
                              "optim:\n  value:\n    lr: 0.001\n    betas: [0.9, 0.95]\nseed:\n  value: 0\ncompile:\n"
                              "  value: false\nresume:\n  value: null\n"),
    ],
)
def test_nested_formats(path: str, text: str) -> None:
    assert read_config(path, text) == EXPECTED


def test_toml_has_no_null() -> None:
    text = "seed = 0\ncompile = false\n[model]\ndim = 48\n[optim]\nlr = 1e-3\nbetas = [0.9, 0.95]\n"
    assert read_config("pyproject.toml", text) == {k: v for k, v in EXPECTED.items() if v is not None}


def test_ini_and_gin() -> None:
    assert read_config("a.ini", "[optim]\nlr = 1e-3\n; a remark\nnesterov = True\n") == {"optim.lr": 1e-3,
                                                                                         "optim.nesterov": True}
    assert read_config("a.gin", "train.lr = 0.1\n# a remark\nAdam/scale.eps = 1e-8\n") == {"train.lr": 0.1,
                                                                                           "Adam.scale.eps": 1e-8}


def test_deepspeed_lists_of_mappings_are_indexed() -> None:
    found = read_config("ds.json", '{"optimizer": {"params": {"lr": "auto"}}, "stages": [{"n": 1}, {"n": 2}]}')
    assert found == {"optimizer.params.lr": "auto", "stages.0.n": 1, "stages.1.n": 2}


@pytest.mark.parametrize(
    ("path", "text", "says"),
    [
        ("a.yaml", "x: !!python/object/apply:os.system ['touch /tmp/owned']\n", "tag at line 1"),
        ("a.yaml", "x: !include other.yaml\n", "tag at line 1"),
        ("without_ending", "x: !!python/object/apply:os.system ['id']\n", "tag"),
        ("a.yaml", "- 1\n- 2\n", "got list"),
        ("a.yaml", "a: [1, 2\nb: }", "no valid YAML"),
        ("a.yaml", "[" * 100_000, "YAML"),
        ("a.json", "[" * 100_000, "nested too deeply"),
        ("a.json", '{"a": 1', "no valid JSON"),
        ("a.toml", "a = = 1", "no valid TOML"),
        ("a.conf", "nothing here\n", "no `key = value`"),
        ("a.yaml", "a: 1\n" * 300_000, "are read"),
    ],
)
def test_what_cannot_be_read_is_refused_in_a_sentence(path: str, text: str, says: str) -> None:
    with pytest.raises(UnreadableInput, match=says):
        read_config(path, text)


def _bomb(leaf: str, line: str) -> str:
    names = [chr(97 + i) for i in range(10)]
    return f"a: &a {leaf}\n" + "\n".join(line.format(new, ", ".join([f"*{old}"] * 9)) for old,
                                         new in pairwise(names))


@pytest.mark.parametrize(
    "text",
    [_bomb("[1, 1, 1]", "{0}: &{0} [{1}]"), _bomb("{{}}", "{0}: &{0} [{1}]"),
     _bomb("{" + ", ".join(f"k{i}: 1" for i in range(99)) + "}",
     "{0}: &{0}\n  <<: [{1}]")],
    ids=["values", "nothing", "merges"],
)
def test_alias_bombs_stay_small(text: str, within: Any) -> None:
    with within(5):
        try:
            found = read_config("a.yaml", text)
        except UnreadableInput:
            found = {}
        assert len(found) <= 20_000


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(["a.yaml", "a.json", "a.toml", "a.ini", "a.gin", "a"]), st.text(max_size=200))
def test_any_text_is_read_or_refused(path: str, text: str) -> None:
    try:
        found = read_config(path, text)
    except TraindxError:
        return
    assert all(isinstance(key, str) for key in found)
