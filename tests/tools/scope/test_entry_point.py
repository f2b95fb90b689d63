"""The entry point is found by the strongest witness; what it uses belongs to the run, the rest lies beside it."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from traindx_tools.errors import BadUsage
from traindx_tools.examine import examine
from traindx_tools.scope import Asked, Scope

LOOP = """import torch
model = torch.nn.Linear(2, 1)
opt = torch.optim.SGD(model.parameters(), lr=0.1)
for i in range(100):
    loss = model(torch.randn(4, 2)).pow(2).mean()
    opt.zero_grad(); loss.backward(); opt.step()
    {say}
"""
OTHER = LOOP.format(say='print(f"it {i}: objective {loss.item():.3f}")')


def project(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        path = folder / (name if "." in name else name.replace("__", "/").replace("_dot_", "."))
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def scope(folder: Path, *paths: str, asked: Asked | None = None) -> Scope:
    given = [folder / p for p in paths] or [folder]
    return examine(given, root=folder, asked=asked or Asked()).scope


def names(files: tuple[Path, ...]) -> list[str]:
    return sorted(f.name for f in files)


def log(form: str) -> str:
    return "".join(form.format(i=i, x=2.0 * 0.97**i) + "\n" for i in range(40))


@pytest.mark.parametrize(("say", "form"), [
    ('print(f"step {i} loss {loss.item():.4f}")', "step {i} loss {x:.4f}"),
    ('print("step %d loss %.4f" % (i, loss.item()))', "step {i} loss {x:.4f}"),
    ('print("step {} loss {:.4f}".format(i, loss.item()))', "step {i} loss {x:.4f}"),
    ('print("step", i, "loss", loss.item())', "step {i} loss {x}"),
    ('log.info("step %d loss %.4f", i, loss.item())', "2024-05-01 10:00:00,123 INFO root: step {i} loss {x:.4f}"),
    ('print(json.dumps({"step": i, "train_nll": loss.item()}))', '{{"step": {i}, "train_nll": {x}}}'),
    ('run.log({"step": i, "train_nll": loss.item()})', '{{"step": {i}, "train_nll": {x}}}'),
])
def test_the_script_whose_prints_are_the_lines(say: str, form: str, tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=LOOP.format(say=say), b_dot_py=OTHER, out_dot_txt=log(form))
    found = scope(tmp_path)
    assert names(found.entry) == ["a.py"]
    assert names(found.beside) == ["b.py"]
    assert "out.txt" in found.how


def test_the_prints_may_stand_in_a_file_that_the_script_imports(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py="from tools.say import say\nfor i in range(9):\n    say(i, 0.5)\n", b_dot_py=OTHER,
            tools__say_dot_py='def say(i, x):\n    print(f"step {i} loss {x:.4f}")\n',
            out_dot_txt=log("step {i} loss {x:.4f}"))
    found = scope(tmp_path)
    assert names(found.judged) == ["a.py", "say.py"]
    assert names(found.beside) == ["b.py"]


def test_where_both_can_have_written_it_both_are_judged(tmp_path: Path) -> None:
    text = LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")')
    project(tmp_path, a_dot_py=text, b_dot_py=text.replace("lr=0.1", "lr=0.2"),
            out_dot_txt=log("step {i} loss {x:.4f}"))
    found = scope(tmp_path)
    assert names(found.judged) == ["a.py", "b.py"]
    assert not found.beside


def test_the_name_of_the_log_decides_between_equals(tmp_path: Path) -> None:
    text = LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")')
    project(tmp_path, a_dot_py=text, b_dot_py=text, a_dot_log=log("step {i} loss {x:.4f}"))
    assert names(scope(tmp_path).entry) == ["a.py"]


@pytest.mark.parametrize("head", [
    "$ python b.py --lr 1", "+ torchrun --nproc_per_node 2 b.py", "Command: python /home/u/p/b.py",
    "sys.argv: ['b.py', '--lr', '1']", "b.py: error: unrecognized arguments: --x", "b.py:7: UserWarning: lr",
])
def test_what_the_log_says_of_itself_is_stronger_than_prints(head: str, tmp_path: Path) -> None:
    text = LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")')
    project(tmp_path, a_dot_py=text, b_dot_py=OTHER, out_dot_txt=head + "\n" + log("step {i} loss {x:.4f}"))
    assert names(scope(tmp_path).entry) == ["b.py"]


@pytest.mark.parametrize("head", ["To evaluate: see python b.py", "wrote the same as b.py does", "loading b.python"])
def test_a_remark_on_another_script_is_no_command(head: str, tmp_path: Path) -> None:
    text = LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")')
    project(tmp_path, a_dot_py=text, b_dot_py=OTHER, out_dot_txt=head + "\n" + log("step {i} loss {x:.4f}"))
    assert names(scope(tmp_path).entry) == ["a.py"]


def test_the_outermost_frame_of_a_traceback_is_the_script(tmp_path: Path) -> None:
    project(tmp_path, train_dot_py="import net\nnet.go()\n", b_dot_py=OTHER,
            net_dot_py="def go():\n    raise ValueError('no')\n",
            out_dot_txt='Traceback (most recent call last):\n  File "/x/train.py", line 2, in <module>\n    net.go()\n'
                        '  File "/x/net.py", line 2, in go\n    raise ValueError(\'no\')\nValueError: no\n')
    found = scope(tmp_path)
    assert names(found.entry) == ["train.py"]
    assert names(found.judged) == ["net.py", "train.py"]


def test_a_frame_whose_quoted_line_is_not_in_the_file_means_another_one(tmp_path: Path) -> None:
    project(tmp_path, b_dot_py=OTHER, c_dot_py=OTHER.replace("objective", "target"),
            out_dot_txt='Traceback (most recent call last):\n  File "/x/b.py", line 2, in <module>\n    net.go(7)\n'
                        "ValueError: no\n")
    assert not scope(tmp_path).entry


def test_a_command_is_stronger_than_the_log(tmp_path: Path) -> None:
    text = LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")')
    project(tmp_path, a_dot_py=text, b_dot_py=OTHER, out_dot_txt=log("step {i} loss {x:.4f}"))
    found = scope(tmp_path, asked=Asked(commands=("python b.py",)))
    assert names(found.entry) == ["b.py"]
    assert "python b.py" in found.how


def test_entry_is_the_strongest(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, b_dot_py=OTHER, c_dot_py=OTHER, out_dot_txt=log("step {i} loss {x:.4f}"))
    found = scope(tmp_path, asked=Asked(entry=(str(tmp_path / "a.py"), "b.py"), commands=("python c.py",)))
    assert names(found.judged) == ["a.py", "b.py"]
    assert names(found.beside) == ["c.py"]


@pytest.mark.parametrize(("entry", "said"), [
    ("nowhere.py", "does not exist"), ("out.txt", "is no Python file"), ("sub", "is a folder"), ("", "folder")])
def test_a_wrong_entry_is_refused(entry: str, said: str, tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, out_dot_txt=log("step {i} loss {x:.4f}"), sub__x_dot_py="")
    with pytest.raises(BadUsage, match=said):
        scope(tmp_path, asked=Asked(entry=(entry,)))


def test_all_judges_everything(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, b_dot_py=OTHER, a_dot_log=log("it {i}: objective {x:.3f}"))
    found = scope(tmp_path, asked=Asked(everything=True))
    assert names(found.judged) == ["a.py", "b.py"]
    assert not found.beside


def test_named_files_belong_to_the_run(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, helper_dot_py="X = 1\n", b_dot_py=OTHER,
            out_dot_log=log("it {i}: objective {x:.3f}"))
    found = scope(tmp_path, "out.log", "a.py", "helper.py")
    assert names(found.judged) == ["a.py", "helper.py"]
    assert names(found.beside) == ["b.py"]


def test_imports_are_followed(tmp_path: Path) -> None:
    start = 'import importlib\nfrom pkg import a\nimportlib.import_module("plug.one")\nprint("go on")\n'
    project(tmp_path, **{"pkg/__init__.py": ""}, train_dot_py=start, pkg__b_dot_py="x = 1\n",
            pkg__a_dot_py="from .b import x\nfrom . import c\n",
            pkg__c_dot_py="import runpy\nrunpy.run_path('worker.py')\n", pkg__unused_dot_py="", plug__one_dot_py="",
            plug__two_dot_py="", worker_dot_py="", old_dot_py=OTHER, train_dot_log="go on\n")
    found = scope(tmp_path, asked=Asked(commands=("python train.py",)))
    assert names(found.judged) == ["__init__.py", "a.py", "b.py", "c.py", "one.py", "train.py", "worker.py"]
    assert names(found.beside) == ["old.py", "two.py", "unused.py"]


def test_the_modules_of_a_computed_name_belong_to_the_run(tmp_path: Path) -> None:
    start = 'import importlib, sys\nm = importlib.import_module(f"models.{sys.argv[1]}")\nprint("go on")\n'
    project(tmp_path, **{"models/__init__.py": ""}, train_dot_py=start, models__net_dot_py="",
            models__vit_dot_py="", old_dot_py=OTHER)
    found = scope(tmp_path, asked=Asked(commands=("python train.py net",)))
    assert {"net.py", "vit.py"} <= set(names(found.judged))
    assert names(found.beside) == ["old.py"]


@pytest.mark.parametrize("mention", ['"""Like old.py, but fixed."""', "# see old.py", 'print("next: old.py")'])
def test_a_remark_on_a_file_does_not_use_it(mention: str, tmp_path: Path) -> None:
    project(tmp_path, train_dot_py=f"{mention}\nprint('go')\n", old_dot_py=OTHER)
    assert names(scope(tmp_path, asked=Asked(commands=("python train.py",))).beside) == ["old.py"]


def test_configuration_that_the_run_does_not_name_lies_beside_it(tmp_path: Path) -> None:
    project(tmp_path, train_dot_py='import yaml\nconf = yaml.safe_load(open("conf.yaml"))\nprint("x")\n',
            conf_dot_yaml="lr: 0.001\n", old_dot_yaml="lr: 100\n", train_dot_log=log("step {i} loss {x:.4f}"))
    seen = examine([tmp_path], root=tmp_path)
    assert names(seen.scope.configs_beside) == ["old.yaml"]
    assert seen.run.config["lr"] == 0.001


def test_configuration_of_the_command_wins(tmp_path: Path) -> None:
    project(tmp_path, train_dot_py='import sys\nprint("default.yaml")\n', a_dot_yaml="lr: 0.5\n", b_dot_yaml="lr: 7\n",
            train_dot_log=log("step {i} loss {x:.4f}"))
    seen = examine([tmp_path], root=tmp_path, asked=Asked(commands=("python train.py --config a.yaml",)))
    assert names(seen.scope.configs_beside) == ["b.yaml"]
    assert seen.run.config["lr"] == 0.5


def test_without_a_witness_everything_is_judged(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, b_dot_py=OTHER)
    found = scope(tmp_path)
    assert names(found.judged) == ["a.py", "b.py"]
    assert not found.entry
    assert found.to_json(str)["how"] == "the entry point is not known"


def test_a_log_without_code(tmp_path: Path) -> None:
    project(tmp_path, out_dot_log=log("step {i} loss {x:.4f}"))
    assert scope(tmp_path).to_json(str) == {"entry": [], "how": "no code was given", "judged": [], "beside": []}


@pytest.mark.parametrize("text", ["def (:", "\0\0", "x" * 100_000, "#" + "é" * 50])
def test_a_file_that_cannot_be_read_does_no_harm(text: str, tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, b_dot_py=text, out_dot_txt=log("it {i}: objective {x:.3f}"))
    assert "a.py" in names(scope(tmp_path).judged)


def test_a_line_that_is_put_together_of_parts(tmp_path: Path) -> None:
    say = 'm = f"step {i}"; m += f" loss {loss.item():.4f}"; print(m)'
    project(tmp_path, a_dot_py=LOOP.format(say=say), b_dot_py=OTHER, out_dot_txt=log("step {i} loss {x:.4f}"))
    assert names(scope(tmp_path).entry) == ["a.py"]


def test_words_that_any_library_writes_tell_nothing(tmp_path: Path) -> None:
    form = "{{'loss': {x:.4f}, 'grad_norm': 1.0, 'learning_rate': 0.1, 'epoch': {i}}}"
    project(tmp_path, fit_dot_py="from transformers import Trainer\nTrainer().train()\n",
            evaluate_dot_py='print("loss of the last epoch", 1, "learning_rate", 2)\n', out_dot_txt=log(form))
    assert "fit.py" in names(scope(tmp_path).judged)


def test_the_log_of_another_script_lies_beside_the_run(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=LOOP.format(say='print(f"step {i} loss {loss.item():.4f}")'), old__b_dot_py=OTHER,
            out_dot_txt=log("step {i} loss {x:.4f}"), old__out_dot_txt=log("it {i}: objective {x:.3f}"))
    for age, path in ((2_000, "out.txt"), (1_000, "old/out.txt")):
        os.utime(tmp_path / path, (age, age))
    seen = examine([tmp_path], root=tmp_path)
    assert names(seen.scope.judged) == ["a.py"]
    assert [p.relative_to(tmp_path).as_posix() for p in seen.scope.logs_beside] == ["old/out.txt"]
    assert {s.source for s in seen.run.series} == {str(tmp_path / "out.txt")}
    both = scope(tmp_path, "out.txt", "old/out.txt", asked=Asked(code=(tmp_path / "a.py", tmp_path / "old" / "b.py")))
    assert names(both.judged) == ["a.py", "b.py"]


def test_the_only_script_beside_the_log_where_nothing_else_tells(tmp_path: Path) -> None:
    project(tmp_path, a_dot_py=OTHER, old__b_dot_py=OTHER, old__c_dot_py=OTHER, out_dot_txt="step 1 loss 0.5\n" * 9)
    found = scope(tmp_path)
    assert names(found.entry) == ["a.py"]
    assert names(found.beside) == ["b.py", "c.py"]
