"""Hooks, states, averages and splits (C225 to C228) over several files, and in broken input."""

from __future__ import annotations

from pathlib import Path

import pytest

from traindx_tools.code_audit import audit
from traindx_tools.finding import Bearing, Finding, Severity

FIXTURES = Path(__file__).parent / "fixtures"
RULES = ("c225", "c226", "c227", "c228")
STEP = """
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for x in stream:
        loss = net(x).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
"""


def found(folder: Path, rule: str, **files: str) -> list[Finding]:
    for name, text in files.items():
        (folder / f"{name}.py").write_text(text)
    return [f for f in audit([folder]).findings if f.rule == rule]


def test_a_hook_of_another_file(tmp_path: Path) -> None:
    (finding,) = found(
        tmp_path,
        "C225",
        watch="def keep(kept):\n    def hook(m, i, o):\n        kept.append(o)\n    return hook\n",
        train="import torch\nfrom watch import keep\n\n\ndef train(net, stream):\n    outputs = []\n"
        "    net.body.register_forward_hook(keep(outputs))" + STEP,
    )
    assert finding.where.file is not None
    assert finding.where.file.endswith("watch.py")
    assert finding.bearing is Bearing.CAUSE


@pytest.mark.parametrize(
    ("body", "bearing", "severity"),
    [
        ("self.kept.append(output)", Bearing.CAUSE, Severity.HIGH),
        ("if self.on:\n            self.kept.append(output)", Bearing.SIGN, Severity.HIGH),
        ("if len(self.kept) < 10:\n            self.kept.append(output)", None, None),
        ("self.kept.append(output.detach())", None, None),
        ("self.kept.append(float(output.mean()))", None, None),
        ("self.kept.append(output.shape)", None, None),
        ("output = output.detach()\n        self.kept.append(output.mean())", None, None),
        ("self.kept = output", None, None),
    ],
)
def test_what_a_hook_keeps(tmp_path: Path, body: str, bearing: Bearing | None, severity: Severity | None) -> None:
    text = (
        "import torch\n\n\nclass Watch:\n    def __init__(self, layer, on):\n        self.kept, self.on = [], on\n"
        "        layer.register_forward_hook(self.hook)\n\n    def hook(self, module, args, output):\n        "
        f"{body}\n\n\ndef train(net, stream, on):\n    watch = Watch(net.body, on)\n{STEP}    return watch\n"
    )
    findings = found(tmp_path, "C225", train=text)
    assert [(f.bearing, f.severity) for f in findings] == ([(bearing, severity)] if bearing else [])


def test_gradients_that_a_backward_hook_keeps_are_a_smaller_matter(tmp_path: Path) -> None:
    hook = "    net.body.register_full_backward_hook(lambda m, i, o: kept.append(o[0]))"
    text = f"import torch\n\n\ndef train(net, stream):\n    kept = []\n{hook}{STEP}"
    (finding,) = found(tmp_path, "C225", train=text)
    assert (finding.severity, finding.measured["kind"]) == (Severity.MEDIUM, "gradients")


def test_nothing_is_kept_for_ever_where_nothing_trains(tmp_path: Path) -> None:
    hook = "    net.body.register_forward_hook(lambda m, i, o: kept.append(o))"
    text = f"import torch\n\nkept = []\n\n\ndef look(net, x):\n{hook}\n    net(x)\n"
    assert not found(tmp_path, "C225", look=text)


@pytest.mark.parametrize(
    ("saving", "severity"), [("", Severity.LOW), ("torch.save(net.state_dict(), p)", Severity.HIGH)]
)
def test_a_state_matters_where_it_is_saved(tmp_path: Path, saving: str, severity: Severity) -> None:
    text = (
        "import torch\nfrom torch import nn\n\n\nclass Norm(nn.Module):\n    def __init__(self):\n"
        "        super().__init__()\n        self.running_mean = torch.zeros(3)\n\n    def forward(self, x):\n"
        "        self.running_mean = 0.9 * self.running_mean + 0.1 * x.mean(0).detach()\n"
        "        return x - self.running_mean\n\n\ndef save(net, p):\n    print(net(torch.ones(2, 3)), p)\n"
        f"    {saving}\n"
    )
    (finding,) = found(tmp_path, "C226", norm=text)
    assert finding.severity is severity
    assert finding.measured["saved"] is bool(saving)


@pytest.mark.parametrize(("steps", "alarms"), [(900, 1), (1_100, 0), (50_000, 0)])
def test_an_average_is_judged_by_the_length_of_the_run(tmp_path: Path, steps: int, alarms: int) -> None:
    """0.999^n crosses 1/e at n = 1000."""
    text = (FIXTURES / "c227" / "bad_class.py").read_text()
    text = text.replace("decay=0.9999", "decay=0.999").replace("iterations=3000", f"iterations={steps}")
    assert len(found(tmp_path, "C227", train=text)) == alarms


def test_an_average_that_nothing_uses_is_left_alone(tmp_path: Path) -> None:
    text = (FIXTURES / "c227" / "bad_class.py").read_text()
    text = text.replace("return sample(ema.model, 1000)", 'torch.save({"ema": ema.model.state_dict()}, "net.pt")')
    assert not found(tmp_path, "C227", train=text)


def test_an_average_of_pretrained_weights_is_less_certain(tmp_path: Path) -> None:
    text = (FIXTURES / "c227" / "bad_class.py").read_text()
    text = text.replace("nn.Sequential(nn.Linear(5, 128), nn.SiLU(), nn.Linear(128, 4))", "Net.from_pretrained('x')")
    (finding,) = found(tmp_path, "C227", train=text)
    assert (finding.bearing, finding.severity) == (Bearing.SIGN, Severity.MEDIUM)


def test_a_transform_of_another_file(tmp_path: Path) -> None:
    change = "import torch\n\n\ndef vary(x):\n    return x + torch.randn_like(x)\n\n\ndef same(x):\n    return x * 2\n"
    split = (
        "import torch\nfrom torch.utils.data import DataLoader, Dataset, random_split\n\nfrom change import {0}\n\n\n"
        "class Rows(Dataset):\n    def __init__(self, rows, transform=None):\n        self.rows = rows\n"
        "        self.transform = transform\n\n    def __getitem__(self, i):\n"
        "        return self.transform(self.rows[i])\n\n\n"
        "train_rows, val_rows = random_split(Rows(torch.zeros(9, 2), transform={0}), [6, 3])\n"
        "loaders = DataLoader(train_rows, shuffle=True), DataLoader(val_rows)\n"
    )
    assert not found(tmp_path, "C228", change=change, data=split.format("same"))
    (finding,) = found(tmp_path, "C228", change=change, data=split.format("vary"))
    assert "change.py:5" in finding.statement


@pytest.mark.parametrize("rule", RULES)
def test_a_file_that_breaks_off_is_a_note_and_no_finding(tmp_path: Path, rule: str) -> None:
    for path in sorted((FIXTURES / rule).glob("bad_*.py")):
        text = path.read_text()
        (tmp_path / path.name).write_text(text[: len(text) // 2] + "\n    (")
    result = audit([tmp_path])
    assert len(result.notes) == len(list(tmp_path.glob("*.py")))
    assert not result.findings


@pytest.mark.parametrize("rule", RULES)
def test_every_beginning_of_a_file_is_judged_without_an_error(tmp_path: Path, rule: str) -> None:
    for path in sorted((FIXTURES / rule).glob("bad_*.py")):
        lines = path.read_text().splitlines()
        for count in range(2, len(lines), 6):
            (tmp_path / f"{path.stem}_{count}.py").write_text("\n".join(lines[:count]) + "\n")
    assert not [n for n in audit([tmp_path]).notes if (n.note or "").startswith("stopped")]
