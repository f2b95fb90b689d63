"""Settings as a run reads them: keys that never arrive, values that YAML makes another type of, and look-alikes."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest
import yaml  # noqa: F401 - the reader that a program would have imported

from traindx_tools.live.reading import read_folder
from traindx_tools.live.settings import Settings, environment_for
from traindx_tools.on_settings.named import named
from traindx_tools.on_settings.observe import observed
from traindx_tools.on_settings.rules import s101_never_arrives, s102_read_as_other_type, s104_lost_in_merging
from traindx_tools.on_settings.seen import SettingsSeen
from traindx_tools.on_settings.written import parsed
from traindx_tools.on_variables import composed as composed_of_now
from traindx_tools.on_variables.composed import Composed

BASE = "optim:\n  lr: 0.15\n  momentum: 0.9\ntrain:\n  epochs: 14\n"
CODE = """
import yaml
def main(cfg):
    o, t = cfg["optim"], cfg["train"]
    optimizer = SGD(lr=o["lr"], momentum=o["momentum"])
    for epoch in range(t["epochs"]):
        optimizer.step()
"""


def seen(code=CODE, **files):
    made = [parsed(f"{n.replace('__', '.')}", text) for n, text in files.items()]
    return SettingsSeen([f for f in made if f is not None], named([compile(code, "train.py", "exec")]))


def never(code=CODE, **files):
    return list(s101_never_arrives.check(seen(code, **files)))


def other(text):
    return list(s102_read_as_other_type.check(seen(config__yaml=text)))


def test_a_section_that_another_file_calls_otherwise_never_arrives():
    """A variable of this name asks for nothing."""
    (found,) = never(base__yaml=BASE, stable__yaml="# smaller\noptimizer:\n  lr: 0.01\n")
    assert found.measured["kind"] == "section"
    assert found.measured["asked"] == "optim"
    assert (found.where.file, found.where.line) == ("stable.yaml", 2)
    (change,) = found.patch
    assert (change.original, change.replacement) == ("optimizer:\n", "optim:\n")


def test_sections_that_each_are_asked_for_and_an_unknown_one_for_people_are_left_alone():
    assert not never(base__yaml=BASE, stable__yaml="optim:\n  lr: 0.01\n")
    assert not never(CODE + 'x = cfg["optimizer"]\n', base__yaml=BASE, stable__yaml="optimizer:\n  lr: 0.01\n")
    assert not never(base__yaml=BASE, stable__yaml="notes:\n  author: me\n")


PARSER = """
def main(parser):
    parser.add_argument("--learning-rate", type=float, default=5e-5)
    parser.add_argument("--batch-size", type=int)
    args = parser.parse_args()
    return args.learning_rate, args.batch_size
"""


def test_a_key_in_another_spelling_never_arrives():
    (found,) = never(PARSER, config__yaml="batch_size: 32\nlearning-rate: 2.0e-3\n")
    assert (found.measured["kind"], found.measured["asked"]) == ("spelling", "learning_rate")
    assert found.patch[0].replacement == "learning_rate: 2.0e-3\n"


def test_keys_that_all_go_to_a_command_line_are_left_alone():
    assert not never(PARSER, config__yaml="batch-size: 32\nlearning-rate: 2.0e-3\n")
    assert not never(PARSER, config__yaml="BATCH_SIZE: 32\nLEARNING_RATE: 2.0e-3\n")
    assert not never(PARSER, config__yaml="batch_size: 32\nlearning_rate: 2.0e-3\n")


def test_a_default_applies_where_the_key_has_another_name():
    code = 'def main(cfg):\n    return cfg["lr"], cfg.get("label_smoothing", 0.0)\n'
    (found,) = never(code, config__json='{"lr": 0.1, "smoothing": 0.1}')
    assert (found.measured["kind"], found.measured["asked"]) == ("default", "label_smoothing")
    assert not never(code, config__json='{"lr": 0.1, "label_smoothing": 0.1, "smoothing": 0.1}')
    assert not never(code, config__json='{"lr": 0.1, "comment": "first"}')


def test_parameters_of_a_function_take_a_whole_map():
    code = "def net(width, dropout=0.0):\n    return width\ndef main(cfg):\n    return net(**cfg['model'])\n"
    assert not never(code, config__yaml="model:\n  width: 8\n  dropout: 0.1\n")


def test_numbers_as_keys_and_names_that_python_makes_are_none():
    code = "def main(cfg):\n    return {k: v for k, v in cfg.items()}\n"
    assert not never(code, config__json='{"id2label": {"0": "a", "1": "b"}}')


def test_no_among_words_is_a_boolean():
    (found,) = other("languages: [da, no, sv]\n")
    assert found.measured["kind"] == "boolean-among-texts"
    assert "False" in found.statement
    assert found.patch[0].replacement == 'languages: [da, "no", sv]\n'
    (found,) = other("languages:\n  - da\n  - no\n  - sv\n")
    assert found.where.line == 3


@pytest.mark.parametrize("text", ["languages: [da, 'no', sv]\n", "augment: no\n", "flags: [yes, no]\n",
                                  "mixed: [a, 1, no, 2.5]\n", "words: [a, true, b]\n"])
def test_quoted_words_and_switches_are_left_alone(text):
    assert not other(text)


def test_numbers_of_other_bases_and_numbers_that_are_text():
    kinds = [f.measured["kind"] for f in other("start: 12:30\nmode: 010\nlr: 1e-3\nfine: 1.0e-3\nname: 'x1e-3'\n")]
    assert kinds == ["sixty", "octal", "number-is-text"]
    assert "base 60 (750)" in other("start: 12:30\n")[0].statement


def test_damaged_files_and_lists_at_the_root_say_nothing(tmp_path):
    (tmp_path / "a.yaml").write_text("a: [1, 2\n")
    (tmp_path / "b.json").write_text("[1, 2]")
    (tmp_path / "c.yaml").write_bytes(b"\xff\xfe\x00")
    assert not list(observed([str(p) for p in tmp_path.iterdir()], str(tmp_path)))


PROGRAM = """
import yaml
from pathlib import Path
from traindx_tools.live.session import current_session
cfg = yaml.safe_load(Path("config.yaml").read_text())
languages = [str(name) for name in cfg["languages"]]
session = current_session()
session.recorder.metrics(1, {"loss": 1.0})
"""


def test_a_process_tells_it_at_its_end(tmp_path: Path):
    """Python has taken the name of the script's file away by then."""
    (tmp_path / "config.yaml").write_text("languages: [da, no, sv]\ntrain:\n  lr: 1\n")
    (tmp_path / "train.py").write_text(PROGRAM)
    given = environment_for(Settings(str(tmp_path / "live")), dict(os.environ))
    subprocess.run([sys.executable, "train.py"], cwd=tmp_path, env=given, check=True)
    (found,) = read_folder(tmp_path / "live").seen_from(tmp_path)
    assert (found.rule, found.where.file) == ("S102", "config.yaml")
    assert found.patch[0].file == "config.yaml"


def test_a_file_of_many_keys_that_nobody_asks_for_is_data():
    words = "".join(f"word{i}: {i}\n" for i in range(300))
    assert not never(CODE + 'x = cfg.get("word-7", 1)\n', vocabulary__yaml=words)
    (found,) = never(CODE + 'x = cfg.get("word-7", 1)\n', few__yaml="word_7: 2\n")
    assert found.measured["kind"] == "spelling"


def test_files_of_tools_are_no_settings_of_a_run(tmp_path, monkeypatch):
    from traindx_tools.on_settings import observe

    code = compile(PARSER, "train.py", "exec")
    monkeypatch.setattr(observe, "codes_of", lambda sources: [code])
    for name, told in (("pyproject.json", 1), ("package.json", 0)):
        path = tmp_path / name
        path.write_text('{"learningRate": 0.1}\n')
        assert len(list(observe.observed([str(path)], str(tmp_path)))) == told


def test_a_class_of_a_module_is_no_key_in_another_spelling():
    code = 'import torch\ndef main(cfg):\n    return torch.optim.Adam(net, lr=cfg["lr"]), cfg.LR\n'
    assert not never(code, config__yaml="lr: 0.1\nadam:\n  note: was better\n")
    (found,) = never("def main(cfg):\n    return cfg.WARM_UP\n", config__yaml="warmup: 10\n")
    assert found.measured["asked"] == "WARM_UP"


def test_keys_with_leading_zeros_are_other_numbers():
    (found,) = other("units:\n" + "".join(f"  {i:03d}: {i}\n" for i in range(1, 15)))
    assert (found.rule, found.measured["kind"], found.measured["text"]) == ("S102", "keys", "010")
    assert "010 as the octal number 8, 5 keys so, and 008 and 1 more as texts" in found.statement
    assert found.where.line == 11
    (found,) = other("languages:\n  da: 1\n  no: 2\n  sv: 3\n")
    assert "key no without quotes under languages" in found.statement


@pytest.mark.parametrize("text", [
    "units: {1: a, 2: b, 10: c}\n", "units: {'010': a, '008': b}\n", "units: {001: a, 002: b, 007: c}\n",
    "on: 1\noff: 2\n", "a: {on: true, p: 0.5}\n", "years: {2010: 1, 2008: 2}\n"])
def test_keys_that_are_read_as_written_are_left_alone(text):
    assert not other(text)


MERGED = BASE + "  warmup: 100\n"
SWEEP = "optim:\n  momentum: 0.5\n"


def lost(held, code=CODE, base=MERGED, over=SWEEP):
    composed = [Composed(("train.py", "main", "cfg"), {p: frozenset(k) for p, k in held.items()})]
    made = [parsed("base.yaml", base), parsed("sweep.yaml", over)]
    names = named([compile(code, "train.py", "exec")])
    return list(s104_lost_in_merging.check(SettingsSeen([f for f in made if f], names, composed=composed)))


def test_a_section_that_took_the_place_of_another_file_s():
    (found,) = lost({(): {"optim", "train"}, ("optim",): {"momentum"}, ("train",): {"epochs"}})
    assert "lacks lr (0.15), which base.yaml sets" in found.statement
    assert (found.where.file, found.where.line, found.measured["kind"]) == ("sweep.yaml", 1, "missing")
    (found,) = lost({(): {"optim", "train"}, ("optim",): {"momentum"}, ("train",): {"epochs"}},
                    code='def main(cfg):\n    return cfg["optim"].get("lr", 1e-5)\n')
    assert found.measured["kind"] == "default"
    assert "with a default, which applies" in found.statement


def test_files_that_were_merged_section_by_section_or_not_at_all_are_left_alone():
    whole = {(): {"optim", "train"}, ("train",): {"epochs", "warmup"}}
    assert not lost({**whole, ("optim",): {"lr", "momentum"}})
    assert not lost({(): {"optim"}, ("optim",): {"momentum"}})  # nothing of base.yaml is in it
    replaced = {**whole, ("optim",): {"momentum", "kind"}}
    assert not lost(replaced, over="optim:\n  momentum: 0.5\n  kind: sgd\n")  # another kind, replaced on purpose
    assert not lost({**whole, ("optim",): {"momentum"}}, code='def main(cfg):\n    return cfg["optim"]["momentum"]\n')


def test_what_the_variables_hold_is_kept_by_its_keys():
    cfg = {"optim": {"lr": 1.0, "betas": [1, 2]}, "train": {"epochs": 3}}
    numbers = {1: {"a": 2}}
    composed_of_now.look()
    (held,) = [c for c in composed_of_now.kept() if c.where[2] == "cfg"]
    assert held.maps[("optim",)] == {"lr", "betas"}
    assert not [c for c in composed_of_now.kept() if c.where[2] == "numbers"]
    assert cfg
    assert numbers
