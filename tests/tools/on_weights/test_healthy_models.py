"""Small models of many kinds, trained for some steps: of their checkpoints nothing above a remark is said."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from traindx_tools.finding import Severity
from traindx_tools.on_weights import examine

torch = pytest.importorskip("torch")
nn = torch.nn
F = torch.nn.functional


class Block(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, width: int, causal: bool) -> None:
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.q, self.k, self.v, self.o = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.causal = causal
        if causal:
            self.register_buffer("mask", torch.tril(torch.ones(64, 64)).bool())

    def forward(self, x: Any) -> Any:
        h = self.norm1(x)
        q, k, v = (m(h).unflatten(-1, (2, -1)).transpose(1, 2) for m in (self.q, self.k, self.v))
        h = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.o(h.transpose(1, 2).flatten(-2))
        return x + self.down(F.gelu(self.up(self.norm2(x))))


class GPT(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, layers: int = 6, width: int = 32, tied: bool = True) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(200, width), nn.Embedding(64, width)
        self.blocks = nn.ModuleList(Block(width, True) for _ in range(layers))
        self.norm = nn.LayerNorm(width)
        self.head = nn.Linear(width, 200, bias=False)
        if tied:
            self.head.weight = self.wte.weight
        self.apply(self._init)

    def _init(self, module: Any) -> None:
        if isinstance(module, (nn.Linear, nn.Embedding)):
            nn.init.normal_(module.weight, std=0.02)
        if isinstance(module, nn.Linear) and module.bias is not None:
            nn.init.zeros_(module.bias)

    def forward(self, tokens: Any) -> Any:
        x = self.wte(tokens) + self.wpe.weight[: tokens.shape[1]]
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def _gpt(**options: Any) -> tuple[Any, Callable[[Any], Any]]:
    def loss(model: Any) -> Any:
        tokens = (torch.rand(8, 33) ** 3 * 150).long()  # frequencies with a long tail; a quarter never occurs
        return F.cross_entropy(model(tokens[:, :-1]).flatten(0, 1), tokens[:, 1:].flatten())

    return GPT(**options), loss


class Residual(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, width: int, zero: bool) -> None:
        super().__init__()
        self.conv1, self.conv2 = (nn.Conv2d(width, width, 3, padding=1, bias=False) for _ in range(2))
        self.bn1, self.bn2 = nn.BatchNorm2d(width), nn.BatchNorm2d(width)
        if zero:
            nn.init.zeros_(self.bn2.weight)

    def forward(self, x: Any) -> Any:
        return F.relu(x + self.bn2(self.conv2(F.relu(self.bn1(self.conv1(x))))))


def _resnet() -> tuple[Any, Callable[[Any], Any]]:
    model = nn.Sequential(nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(),
                          *(Residual(16, True) for _ in range(5)), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
                          nn.Linear(16, 10))
    return model, lambda m: F.cross_entropy(m(torch.randn(8, 3, 12, 12) * 60 + 120), torch.randint(0, 10, (8,)))


class ViT(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.patch = nn.Conv2d(3, 32, 4, 4)
        self.token = nn.Parameter(torch.zeros(1, 1, 32))
        self.position = nn.Parameter(torch.randn(1, 17, 32) * 0.02)
        self.blocks = nn.Sequential(*(Block(32, False) for _ in range(4)))
        self.head = nn.Linear(32, 10)
        nn.init.zeros_(self.head.weight)

    def forward(self, x: Any) -> Any:
        x = self.patch(x).flatten(2).transpose(1, 2)
        x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
        return self.head(self.blocks(x)[:, 0])


def _vit() -> tuple[Any, Callable[[Any], Any]]:
    return ViT(), lambda m: F.cross_entropy(m(torch.randn(8, 3, 16, 16)), torch.randint(0, 10, (8,)))


class Tagger(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.embedding = nn.Embedding(100, 24, padding_idx=0)
        self.lstm = nn.LSTM(24, 32, num_layers=2, bidirectional=True, batch_first=True)
        self.out = nn.Linear(64, 7)

    def forward(self, tokens: Any) -> Any:
        return self.out(self.lstm(self.embedding(tokens))[0])


def _lstm() -> tuple[Any, Callable[[Any], Any]]:
    return Tagger(), lambda m: F.cross_entropy(m(torch.randint(0, 60, (8, 12))).flatten(0, 1),
                                               torch.randint(0, 7, (96,)))


class VAE(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 16))
        self.decoder = nn.Sequential(nn.Linear(8, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64))

    def forward(self, x: Any) -> Any:
        mean, logvar = self.encoder(x).chunk(2, -1)
        return self.decoder(mean + torch.randn_like(mean) * (logvar / 2).exp()), mean, logvar


def _vae() -> tuple[Any, Callable[[Any], Any]]:
    def loss(model: Any) -> Any:
        x = torch.randn(16, 64)
        made, mean, logvar = model(x)
        return F.mse_loss(made, x) - 0.05 * (1 + logvar - mean**2 - logvar.exp()).mean()

    return VAE(), loss


def _gan() -> tuple[Any, Callable[[Any], Any]]:
    generator = nn.Sequential(nn.Linear(8, 64), nn.BatchNorm1d(64), nn.ReLU(), nn.Linear(64, 64), nn.BatchNorm1d(64),
                              nn.ReLU(), nn.Linear(64, 32))
    critic = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(32, 64)), nn.LeakyReLU(0.2),
                           nn.Linear(64, 1))
    model = nn.ModuleDict({"generator": generator, "critic": critic})
    return model, lambda m: (F.softplus(-m["critic"](torch.randn(16, 32))).mean()
                             + F.softplus(m["critic"](m["generator"](torch.randn(16, 8)))).mean())


class Adapted(nn.Module):  # type: ignore[name-defined, misc]
    def __init__(self, inner: Any) -> None:
        super().__init__()
        self.base_layer = inner
        self.lora_A = nn.Linear(inner.in_features, 4, bias=False)
        self.lora_B = nn.Linear(4, inner.out_features, bias=False)
        nn.init.zeros_(self.lora_B.weight)

    def forward(self, x: Any) -> Any:
        return self.base_layer(x) + self.lora_B(self.lora_A(x))


def _lora() -> tuple[Any, Callable[[Any], Any]]:
    model, loss = _gpt()
    model.requires_grad_(False)
    for block in model.blocks:
        block.q, block.v = Adapted(block.q), Adapted(block.v)
    for name, parameter in model.named_parameters():
        parameter.requires_grad_("lora_" in name)
    return model, loss


def _frozen() -> tuple[Any, Callable[[Any], Any]]:
    """A backbone of random weights that is frozen on purpose, under a head that is trained."""
    backbone = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU())
    model = nn.Sequential(backbone.requires_grad_(False), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 5))
    return model, lambda m: F.cross_entropy(m(torch.randn(16, 32)), torch.randint(0, 5, (16,)))


def _mlp() -> tuple[Any, Callable[[Any], Any]]:
    model = nn.Sequential(nn.Linear(20, 64), nn.Tanh(), nn.Linear(64, 64), nn.Tanh(), nn.Linear(64, 1))
    return model, lambda m: (m(torch.randn(32, 20)) - 3).pow(2).mean()


class Diffusion(nn.Module):  # type: ignore[name-defined, misc]
    """A convolutional denoiser whose last layers start at zero, with group normalisation and sine tables of time."""

    def __init__(self) -> None:
        super().__init__()
        angle = torch.arange(100)[:, None] * 10000 ** (-torch.arange(16) / 16)
        self.register_buffer("times", torch.cat([angle.sin(), angle.cos()], 1))
        self.inner = nn.ModuleList(nn.ModuleDict({"conv": nn.Conv2d(16, 16, 3, padding=1), "norm": nn.GroupNorm(4, 16),
                                                  "time": nn.Linear(32, 16), "out": nn.Conv2d(16, 16, 1)})
                                   for _ in range(5))
        self.first, self.last = nn.Conv2d(1, 16, 3, padding=1), nn.Conv2d(16, 1, 3, padding=1)
        nn.init.zeros_(self.last.weight)
        for part in self.inner:
            nn.init.zeros_(part["out"].weight)

    def forward(self, x: Any, t: Any) -> Any:
        x = self.first(x)
        for part in self.inner:
            h = F.silu(part["norm"](part["conv"](x))) + part["time"](self.times[t])[..., None, None]
            x = x + part["out"](h)
        return self.last(x)


def _diffusion() -> tuple[Any, Callable[[Any], Any]]:
    return Diffusion(), lambda m: (m(torch.randn(4, 1, 8, 8), torch.randint(0, 100, (4,))) - torch.randn(4, 1, 8, 8)
                                   ).pow(2).mean()


class Momentum(nn.Module):  # type: ignore[name-defined, misc]
    """A query encoder and its moving average, as contrastive methods keep them."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder_q = nn.Sequential(nn.Embedding(50, 32), nn.Flatten(), nn.Linear(128, 32), nn.ReLU(),
                                       nn.Linear(32, 32))
        self.encoder_k = copy.deepcopy(self.encoder_q).requires_grad_(False)
        self.predictor = nn.Linear(32, 32)

    def forward(self, x: Any) -> Any:
        with torch.no_grad():
            for a, b in zip(self.encoder_k.parameters(), self.encoder_q.parameters(), strict=True):
                a.lerp_(b, 0.05)
        return self.predictor(self.encoder_q(x)), self.encoder_k(x)


def _momentum() -> tuple[Any, Callable[[Any], Any]]:
    def loss(model: Any) -> Any:
        q, k = model(torch.randint(0, 50, (8, 4)))
        return (q - k).pow(2).mean() - q.var(0).mean()

    return Momentum(), loss


class Mixture(nn.Module):  # type: ignore[name-defined, misc]
    """Experts of which some are seldom asked."""

    def __init__(self) -> None:
        super().__init__()
        self.router = nn.Linear(16, 8, bias=False)
        self.experts = nn.ModuleList(nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 16)) for _ in range(8))

    def forward(self, x: Any) -> Any:
        gate = self.router(x).softmax(-1)
        best = gate.argmax(-1)
        out = torch.zeros_like(x)
        for i, expert in enumerate(self.experts):
            if (best == i).any():
                out[best == i] = expert(x[best == i]) * gate[best == i, i: i + 1]
        return out


def _mixture() -> tuple[Any, Callable[[Any], Any]]:
    return Mixture(), lambda m: (m(torch.randn(32, 16)) - 1).pow(2).mean()


MODELS: dict[str, Callable[[], tuple[Any, Callable[[Any], Any]]]] = {
    "gpt": _gpt, "gpt-untied": lambda: _gpt(tied=False), "gpt-deep": lambda: _gpt(layers=12, width=16),
    "resnet": _resnet,
    "vit": _vit, "lstm": _lstm, "vae": _vae, "gan": _gan, "lora": _lora, "frozen": _frozen, "mlp": _mlp,
    "diffusion": _diffusion, "momentum": _momentum, "mixture": _mixture,
}  # fmt: skip


@pytest.fixture(autouse=True)
def _one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def trained(name: str, folder: Path, steps: int = 12, decay: float = 0.01) -> list[Path]:
    """Checkpoints of a training: at the start, in the middle, at the end."""
    torch.manual_seed(0)
    model, loss = MODELS[name]()
    params = [p for p in model.parameters() if p.requires_grad]
    optimizer = torch.optim.AdamW(params, lr=1e-3, weight_decay=decay)
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, total_iters=steps)
    files = []
    for step in range(steps + 1):
        if step in (0, steps // 2, steps):
            files.append(folder / f"{name}-{step}.pt")
            torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "step": step,
                        "schedule": schedule.state_dict()}, files[-1])
        optimizer.zero_grad()
        loss(model).backward()
        optimizer.step()
        schedule.step()
    return files


def _alarms(*findings: Any) -> list[str]:
    return [f"{f.rule} {f.severity.value}: {f.statement}" for f in findings if f.severity is not Severity.INFO]


LARGE = ("gpt-deep", "gpt-untied")
"""Near "gpt", and seconds each."""


@pytest.mark.parametrize("name", [pytest.param(n, marks=[pytest.mark.slow] * (n in LARGE)) for n in MODELS])
def test_no_alarm_over_a_healthy_model(name: str, tmp_path: Path) -> None:
    first, middle, last = trained(name, tmp_path)
    for seen in (examine(first), examine(middle), examine(last), examine(middle, last)):
        assert _alarms(*seen.findings) == []
        assert not [n for n in seen.notes if "failed" in n]
        assert seen.checkpoint.optimizers


@pytest.mark.slow
@pytest.mark.parametrize("name", ["gpt", "resnet", "vae", "mixture"])
def test_no_alarm_after_a_longer_training(name: str, tmp_path: Path) -> None:
    _, middle, last = trained(name, tmp_path, steps=120, decay=0.1)
    assert _alarms(*examine(last).findings, *examine(middle, last).findings) == []


@pytest.mark.parametrize("start", [True, False], ids=["with projections of zeros", "without"])
def test_a_fresh_layer_of_a_start_is_low_and_of_a_trained_model_is_not(start: bool, tmp_path: Path) -> None:
    """A control branch begins with a fresh encoder of its hints and projections of zeros, beside trained copies."""
    torch.manual_seed(0)
    parts = {f"copied_{name}": torch.nn.Linear(64, 64).weight.detach() * 1.3 + 0.05 * torch.randn(64, 64)
             for name in ("stem", "down", "middle", "up", "tail", "side", "last", "text")}
    parts["hint.weight"] = torch.nn.Linear(48, 64).weight.detach()
    if start:
        parts |= {f"zero_{i}.weight": torch.zeros(64, 64) for i in range(3)}
    torch.save(parts, tmp_path / "model.pt")
    (found,) = [f for f in examine(tmp_path / "model.pt").findings if f.rule == "W104"]
    assert found.severity is (Severity.LOW if start else Severity.MEDIUM)
    assert ("matrices of zeros" in found.statement) == start
