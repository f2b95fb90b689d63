"""Which files run together: what one script does excuses no other script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.code_audit import programs as programs_module
from traindx_tools.code_audit.programs import programs
from traindx_tools.on_code.source import SourceFile, parse_source

DDP = '''import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler
{imports}

def main(data, net):
    dist.init_process_group("nccl")
    net = DistributedDataParallel(net)
    sampler = DistributedSampler(data, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for epoch in range(10):
        {at_start}
        for x, y in loader:
            opt.zero_grad()
            loss = torch.nn.functional.cross_entropy(net(x), y)
            loss.backward()
            opt.step()


main(torch.load("data.pt"), torch.nn.Linear(4, 3))
'''
HELPER = "import torch\n\n\ndef seeded(n):\n    torch.manual_seed(n)\n"


def ddp(*, told: bool, imports: str = "") -> str:
    return DDP.format(imports=imports, at_start="sampler.set_epoch(epoch)" if told else "print(epoch)")


def parsed(texts: Mapping[str, str]) -> list[SourceFile]:
    found = [parse_source(path, text) for path, text in texts.items()]
    assert all(isinstance(f, SourceFile) for f in found)
    return [f for f in found if isinstance(f, SourceFile)]


def groups(texts: Mapping[str, str]) -> list[tuple[list[str], list[str]]]:
    """(files that are followed, files that are judged) of each program."""
    return [([f.path for f in p.files], sorted(p.reported)) for p in programs(parsed(texts))]


@pytest.fixture
def told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[Mapping[str, str]], list[str | None]]:
    """The files in which an epoch is never told to the sampler, according to an audit of a folder."""
    monkeypatch.chdir(tmp_path)

    def audited(texts: Mapping[str, str]) -> list[str | None]:
        for name, text in texts.items():
            (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
            (tmp_path / name).write_text(text)
        result = audit(["."])
        assert not result.notes
        return sorted({f.where.file for f in result.findings if "set_epoch" in f.statement}, key=str)

    return audited


def test_what_another_script_does_is_no_excuse(told_of: Callable[[Mapping[str, str]], list[str | None]]) -> None:
    assert told_of({"first.py": ddp(told=False), "second.py": ddp(told=True)}) == ["first.py"]


def test_nor_where_both_share_a_helper(told_of: Callable[[Mapping[str, str]], list[str | None]]) -> None:
    helped = "from helper import seeded"
    scripts = {"first.py": ddp(told=False, imports=helped), "second.py": ddp(told=True, imports=helped)}
    assert told_of({**scripts, "helper.py": HELPER}) == ["first.py"]


def test_what_an_imported_file_does_counts(told_of: Callable[[Mapping[str, str]], list[str | None]]) -> None:
    hook = "def begin(sampler, epoch):\n    sampler.set_epoch(epoch)\n"
    script = DDP.format(imports="from hooks import begin", at_start="begin(sampler, epoch)")
    assert told_of({"train.py": script, "hooks.py": hook, "other.py": ddp(told=True)}) == []


def test_scripts_without_a_link_are_programs_of_their_own() -> None:
    script = "import torch\ntorch.manual_seed(0)\n"
    assert groups({"a.py": script, "b.py": script}) == [(["a.py"], ["a.py"]), (["b.py"], ["b.py"])]


def test_a_shared_module_is_judged_with_all_who_use_it() -> None:
    texts = {"a.py": "import lib\nlib.f()\n", "b.py": "from lib import x\nprint(x)\n", "lib.py": "x = 1\n"}
    found = groups(texts)
    assert found == [(["a.py", "b.py", "lib.py"], ["lib.py"]), (["a.py", "lib.py"], ["a.py"]),
                     (["b.py", "lib.py"], ["b.py"])]


@pytest.mark.parametrize("link", [
    "import subprocess\nsubprocess.run(['python', 'b.py'])\n",
    "import importlib\nimportlib.import_module('b.inner')\n",
    "CONFIG = {'_target_': 'b.Net'}\nprint(CONFIG)\n",
    "get_ipython().run_line_magic('run', 'b.ipynb')\n",
])
def test_a_file_named_in_a_text_belongs_to_it(link: str) -> None:
    found = groups({"a.py": link, "b.py": "class Net: pass\nNet()\n"})
    assert found == [(["a.py", "b.py"], ["a.py"]), (["b.py"], ["b.py"])]


def test_files_of_one_package_belong_together() -> None:
    texts = {"p/__init__.py": "", "p/plugin.py": "x = 1\n", "p/other.py": "y = 2\n", "p/sub/__init__.py": "",
             "p/sub/deep.py": "z = 3\n"}
    assert groups(texts) == [(list(texts), sorted(texts))]


def test_a_script_inside_a_package_is_judged_with_what_it_runs() -> None:
    texts = {"p/__init__.py": "", "p/net.py": "x = 1\n", "p/unused.py": "y = 1\n",
             "p/train.py": "from p.net import x\nif __name__ == '__main__':\n    print(x)\n"}
    assert groups(texts)[1:] == [(["p/__init__.py", "p/net.py", "p/train.py"], ["p/train.py"])]


def test_imports_in_a_circle_are_one_program() -> None:
    texts = {"a.py": "import b\nb.f()\n", "b.py": "import a\na.f()\n"}
    assert groups(texts) == [(["a.py", "b.py"], ["a.py", "b.py"])]


def test_every_file_is_judged_once_and_none_is_lost() -> None:
    texts = {f"s{n}.py": f"import lib{n % 3}\nlib{n % 3}.f()\n" for n in range(20)}
    texts |= {f"lib{n}.py": "x = 1\n" for n in range(3)}
    reported = [path for _, paths in groups(texts) for path in paths]
    assert sorted(reported) == sorted(texts)


def test_what_is_followed_again_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    texts = {f"s{n}.py": "import lib\nlib.f()\n" for n in range(50)} | {"lib.py": "x = 1\n" * 99}
    monkeypatch.setattr(programs_module, "MOST_IN_ALL", 1_000)
    found = programs(parsed(texts))
    assert 500 < sum(p.lines for p in found[1:]) <= 1_000
    assert sum(len(p.reported) for p in found) == len(texts)
    monkeypatch.setattr(programs_module, "MOST_AGAIN", 50)
    assert len(programs(parsed(texts))) == 1


def test_a_file_that_only_defines_something_is_judged_with_its_folder() -> None:
    texts = {"helpers.py": "def f(x):\n    return x\n", "train.py": "print(1)\n", "eval.py": "print(2)\n",
             "other/lone.py": "def g(x):\n    return x\n"}
    assert groups(texts) == [(["helpers.py", "train.py", "eval.py"], ["helpers.py"]), (["train.py"], ["train.py"]),
                             (["eval.py"], ["eval.py"]), (["other/lone.py"], ["other/lone.py"])]


def test_nothing_and_one_file() -> None:
    assert programs([]) == []
    assert groups({"a.py": "x = 1\n"}) == [(["a.py"], ["a.py"])]
