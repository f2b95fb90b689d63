"""Values planted in the data files of real programs: what reaches its own input, and what is meant so."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import numpy as np
import pytest

from traindx.cli import run as traindx
from traindx.experiments import Request
from traindx.planting import PlantAnswer, run_planting
from traindx_tools.errors import BadUsage
from traindx_tools.experiments.outcome import parse_outcome

pytest.importorskip("torch")
slow = pytest.mark.slow

TABLE = """
import numpy as np, torch
torch.manual_seed(0)
rows = np.genfromtxt("series.csv", delimiter=",", names=True)
level, rain = rows["level"], rows["rain"]
n = len(level)
kernel = np.ones(7) / 7
smooth = {smooth}
at = np.arange(12, n - 9)
x = np.stack([level[at], level[at - 1], rain[at], smooth[at]], 1)
x = torch.tensor((x - x.mean(0)) / x.std(0), dtype=torch.float32)
y = torch.tensor(level[at + 3], dtype=torch.float32)[:, None]
net = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
opt = torch.optim.Adam(net.parameters(), 1e-3)
for epoch in range(3):
    for b in torch.randperm(len(x)).split(32):
        loss = {loss}
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {{epoch}} loss {{loss.item():.4f}}")
"""
CENTRED, PAST = 'np.convolve(level, kernel, "same")', "np.convolve(level, kernel)[:n]"
MSE, BY_HAND = "torch.nn.functional.mse_loss(net(x[b]), y[b])", "((net(x[b]) - y[b]) ** 2).mean()"
PAIRS = """
import numpy as np, torch
torch.manual_seed(0)
with np.load("d.npz") as f:
    x, y = f["x"], f["y"]
order = np.argsort({by})
x, y = torch.tensor(x[order], dtype=torch.float32), torch.tensor(y{labels})
net = torch.nn.Linear(6, 3)
opt = torch.optim.SGD(net.parameters(), 0.1)
data = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(x, y), 25, shuffle=True)
for epoch in range(3):
    for a, b in data:
        loss = torch.nn.functional.cross_entropy(net(a), b)
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(f"epoch {{epoch}} loss {{loss.item():.4f}}")
"""
JAX = """
import numpy as np, jax, jax.numpy as jnp
rows = np.genfromtxt("series.csv", delimiter=",", names=True)
level = rows["level"]
n = len(level)
kernel = np.ones(7) / 7
smooth = {smooth}
at = np.arange(12, n - 9)
x, y = np.stack([level[at], smooth[at]], 1).astype(np.float32), level[at + 3].astype(np.float32)
params = {{"w": jnp.zeros(2), "b": jnp.zeros(())}}
@jax.jit
def step(params, x, y):
    loss, grads = jax.value_and_grad(lambda p: jnp.mean((x @ p["w"] + p["b"] - y) ** 2))(params)
    return jax.tree.map(lambda p, g: p - 0.02 * g, params, grads), loss
rng = np.random.default_rng(0)
for epoch in range(3):
    for b in np.array_split(rng.permutation(len(x)), 20):
        params, loss = step(params, x[b], y[b])
    print(f"epoch {{epoch}} loss {{float(loss):.4f}}")
"""


def project(folder: Path, text: str) -> Path:
    rng = np.random.default_rng(2)
    level = np.cumsum(rng.normal(size=1200)) * 0.1 + rng.normal(size=1200)
    rows = "".join(f"{a:.5f},{b:.5f}\n" for a, b in zip(level, rng.exponential(size=1200), strict=True))
    (folder / "series.csv").write_text(f"level,rain\n{rows}")
    x = rng.normal(size=(500, 6))
    np.savez(folder / "d.npz", x=x, y=x[:, :3].argmax(1))
    (folder / "train.py").write_text(text)
    return folder


def planted(folder: Path, text: str) -> PlantAnswer:
    outcome = parse_outcome("level:training loss")
    return run_planting(Request(project(folder, text), f"{sys.executable} train.py", (), outcome, 200.0))


@slow
@pytest.mark.parametrize("loss", [MSE, BY_HAND])
def test_a_window_that_looks_ahead_is_seen(tmp_path: Path, loss: str) -> None:
    answer = planted(tmp_path, TABLE.format(smooth=CENTRED, loss=loss))
    assert [f.rule for f in answer.findings] == ["X401"]
    assert answer.study.reached is not None
    assert answer.study.reached.seen.columns == (3,)
    assert answer.exit_code == 1
    assert json.loads((tmp_path / "scratch/debug/experiments/planted.json").read_text())["target"]["column"] == "level"


@slow
def test_a_window_of_the_past_is_meant(tmp_path: Path) -> None:
    answer = planted(tmp_path, TABLE.format(smooth=PAST, loss=MSE))
    assert (answer.findings, answer.exit_code) == ((), 0)
    assert answer.study.reached is not None
    assert answer.study.reached.seen.targets >= 20


@slow
@pytest.mark.parametrize(("smooth", "rules"), [(CENTRED, ["X401"]), (PAST, [])])
def test_programs_of_jax_are_followed_as_well(tmp_path: Path, smooth: str, rules: list[str]) -> None:
    pytest.importorskip("jax")
    assert [f.rule for f in planted(tmp_path, JAX.format(smooth=smooth)).findings] == rules


@slow
@pytest.mark.parametrize(("labels", "rules"), [("", ["X402"]), ("[order]", [])])
def test_inputs_that_are_sorted_without_their_labels_are_seen(tmp_path: Path, labels: str, rules: list[str]) -> None:
    answer = planted(tmp_path, PAIRS.format(by="x[:, 0]", labels=labels))
    assert [f.rule for f in answer.findings] == rules
    assert not answer.study.why


@slow
def test_a_program_whose_batches_cannot_be_seen_is_told(tmp_path: Path) -> None:
    answer = planted(tmp_path, "import numpy as np\nprint(np.load('d.npz')['x'].mean())\n")
    assert "batches were not seen" in answer.study.why
    assert answer.exit_code == 3


@slow
def test_a_program_that_fails_by_itself_is_told_with_its_error(tmp_path: Path) -> None:
    answer = planted(tmp_path, "import numpy as np\nnp.load('d.npz')['x']\nraise KeyError('lr')\n")
    assert answer.study.why == "the run as it is failed: KeyError: 'lr'"
    assert answer.exit_code == 3


def test_a_request_without_a_command_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadUsage, match="empty"):
        run_planting(Request(tmp_path, " ", (), parse_outcome("exit")))


@pytest.mark.parametrize("more", [["--change", "seed"], ["--screen"]])
def test_planting_is_asked_for_alone(tmp_path: Path, more: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    folder = project(tmp_path, PAIRS)
    assert traindx(["experiment", str(folder), "--run", f"{sys.executable} train.py", "--plant", *more]) == 2
    assert "--plant makes its own runs" in capsys.readouterr().err
