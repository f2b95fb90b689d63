"""Trainings with nothing wrong: every probe must stay silent on them at medium and above."""

from __future__ import annotations

import copy

import torch
from torch import nn
from torch.nn import functional as F


def mlp(steps=40):
    model = nn.Sequential(nn.Linear(16, 64), nn.ReLU(), nn.Linear(64, 64), nn.ReLU(), nn.Linear(64, 4))
    optimizer = torch.optim.Adam(model.parameters(), 1e-3)
    teacher = torch.randn(16, 4)
    for _ in range(steps):
        x = torch.randn(32, 16)
        loss = F.cross_entropy(model(x), (x @ teacher).argmax(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class Block(nn.Module):
    def __init__(self, width, heads=4):
        super().__init__()
        self.heads = heads
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.drop = nn.Dropout(0.1)

    def forward(self, x):
        b, t, w = x.shape
        q, k, v = (y.view(b, t, self.heads, -1).transpose(1, 2) for y in self.qkv(self.norm1(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True).transpose(1, 2).reshape(b, t, w)
        x = x + self.drop(self.out(y))
        return x + self.drop(self.down(F.gelu(self.up(self.norm2(x)))))


class TiedLM(nn.Module):
    def __init__(self, vocabulary=100, width=32, layers=4, length=24):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(vocabulary, width), nn.Embedding(length, width)
        self.blocks = nn.ModuleList([Block(width) for _ in range(layers)])
        self.norm, self.head = nn.LayerNorm(width), nn.Linear(width, vocabulary, bias=False)
        self.head.weight = self.tokens.weight
        for p in self.parameters():
            if p.ndim == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions(torch.arange(ids.shape[1]))
        for block in self.blocks:
            x = block(x)
        return self.head(self.norm(x))


def tied_lm(steps=40):
    model = TiedLM()
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3, weight_decay=0.1)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: min(1.0, (s + 1) / 10))
    for step in range(steps):
        model.train()
        ids = (torch.arange(24)[None] * torch.randint(1, 4, (8, 1)) + torch.randint(0, 100, (8, 1))) % 100
        logits = model(ids)
        loss = F.cross_entropy(logits[:, :-1].reshape(-1, 100), ids[:, 1:].reshape(-1))
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
        if step % 10 == 9:
            model.eval()
            with torch.no_grad():
                for _ in range(4):
                    model(ids)


def transformer(steps=30):
    layer = nn.TransformerEncoderLayer(32, 4, 64, batch_first=True)
    model = nn.ModuleDict({"embed": nn.Embedding(50, 32), "trunk": nn.TransformerEncoder(layer, 4),
                           "head": nn.Linear(32, 5)})

    class Classifier(nn.Module):
        def __init__(self):
            super().__init__()
            self.parts = model

        def forward(self, ids, mask):
            x = self.parts["trunk"](self.parts["embed"](ids), src_key_padding_mask=mask)
            return self.parts["head"](x.mean(1))

    net = Classifier()
    optimizer = torch.optim.AdamW(net.parameters(), 5e-4)
    for _ in range(steps):
        ids = torch.randint(1, 50, (16, 12))
        mask = torch.arange(12)[None] >= torch.randint(6, 13, (16, 1))
        loss = F.cross_entropy(net(ids.masked_fill(mask, 0), mask), ids[:, 0] % 5)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def cnn(steps=30):
    model = nn.Sequential(
        nn.Conv2d(3, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(),
        nn.Dropout(0.2), nn.Linear(32, 10))
    optimizer = torch.optim.SGD(model.parameters(), 0.05, momentum=0.9, weight_decay=5e-4)
    data = torch.utils.data.TensorDataset(torch.randn(200, 3, 12, 12), torch.randint(0, 10, (200,)))
    loader = torch.utils.data.DataLoader(data, 20, shuffle=True)
    held_out = torch.utils.data.DataLoader(torch.utils.data.TensorDataset(
        torch.randn(60, 3, 12, 12), torch.randint(0, 10, (60,))), 20)
    done = 0
    while done < steps:
        model.train()
        for x, y in loader:
            loss = F.cross_entropy(model(x), y)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            done += 1
        model.eval()
        with torch.no_grad():
            for x, _ in held_out:
                model(x)


def gan(steps=40):
    g = nn.Sequential(nn.Linear(8, 32), nn.BatchNorm1d(32), nn.ReLU(), nn.Linear(32, 2))
    d = nn.Sequential(nn.Linear(2, 32), nn.LeakyReLU(0.2), nn.Linear(32, 1))
    og = torch.optim.Adam(g.parameters(), 2e-4, betas=(0.5, 0.999))
    od = torch.optim.Adam(d.parameters(), 2e-4, betas=(0.5, 0.999))
    for step in range(steps):
        real = F.normalize(torch.randn(32, 2), dim=1)
        with torch.no_grad():
            fake = g(torch.randn(32, 8))
        loss = F.binary_cross_entropy_with_logits(d(real), torch.ones(32, 1)) + \
            F.binary_cross_entropy_with_logits(d(fake), torch.zeros(32, 1))
        od.zero_grad()
        loss.backward()
        od.step()
        loss = F.binary_cross_entropy_with_logits(d(g(torch.randn(32, 8))), torch.ones(32, 1))
        og.zero_grad()
        loss.backward()
        og.step()
        if step % 20 == 19:
            with torch.no_grad():
                g(torch.randn(4, 8))


def frozen_backbone(steps=30):
    backbone = nn.Sequential(nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten())
    with torch.no_grad():
        for _ in range(5):
            backbone(torch.randn(16, 3, 8, 8))
    model = nn.Sequential(backbone, nn.Linear(8, 4))
    for p in backbone.parameters():
        p.requires_grad_(False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], 1e-2)
    for _ in range(steps):
        model.train()
        backbone.eval()
        x, y = torch.randn(16, 3, 8, 8), torch.randint(0, 4, (16,))
        loss = F.cross_entropy(model(x), y)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def head_only(steps=30):
    """The backbone keeps `requires_grad`: the optimizer alone decides."""
    model = nn.Sequential(nn.Sequential(nn.Linear(8, 32), nn.Tanh()), nn.Linear(32, 4))
    optimizer = torch.optim.SGD(model[1].parameters(), 0.1)
    for _ in range(steps):
        x = torch.randn(16, 8)
        loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class LoRA(nn.Module):
    def __init__(self, base, rank=4):
        super().__init__()
        self.base = base
        for p in base.parameters():
            p.requires_grad_(False)
        self.a = nn.Parameter(torch.randn(rank, base.in_features) / base.in_features**0.5)
        self.b = nn.Parameter(torch.zeros(base.out_features, rank))

    def forward(self, x):
        return self.base(x) + x @ self.a.T @ self.b.T


def lora(steps=30):
    model = nn.Sequential(LoRA(nn.Linear(16, 32)), nn.GELU(), LoRA(nn.Linear(32, 32)), nn.GELU(),
                          LoRA(nn.Linear(32, 4)))
    optimizer = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], 1e-3)
    for _ in range(steps):
        x = torch.randn(16, 16)
        loss = F.cross_entropy(model(x), x.argmax(-1) % 4)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def teacher_student(steps=30):
    """Self-distillation: the teacher follows by an exponential moving average and gets no gradient."""
    student = nn.Sequential(nn.Linear(8, 32), nn.LayerNorm(32), nn.GELU(), nn.Linear(32, 8))
    teacher = copy.deepcopy(student).requires_grad_(False)
    optimizer = torch.optim.AdamW(student.parameters(), 1e-3)
    for _ in range(steps):
        x = torch.randn(32, 8)
        with torch.no_grad():
            target = teacher(x + 0.1 * torch.randn_like(x))
        loss = F.mse_loss(student(x), target)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for a, b in zip(teacher.parameters(), student.parameters(), strict=True):
                a.lerp_(b, 0.01)


def q_learning(steps=30):
    """A target network that still wants gradients, in no optimizer; called without them."""
    q = nn.Sequential(nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 2))
    target = copy.deepcopy(q)
    optimizer = torch.optim.Adam(q.parameters(), 1e-3)
    for step in range(steps):
        s, r = torch.randn(32, 4), torch.randn(32)
        with torch.no_grad():
            goal = r + 0.9 * target(torch.randn(32, 4)).max(-1).values
        loss = F.smooth_l1_loss(q(s)[:, 0], goal)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if step % 10 == 9:
            target.load_state_dict(q.state_dict())


def vae(steps=30):
    encoder, decoder = nn.Sequential(nn.Linear(20, 32), nn.ReLU(), nn.Linear(32, 8)), nn.Sequential(
        nn.Linear(4, 32), nn.ReLU(), nn.Linear(32, 20))
    optimizer = torch.optim.Adam([*encoder.parameters(), *decoder.parameters()], 1e-3)
    for _ in range(steps):
        x = torch.rand(32, 20)
        mu, logvar = encoder(x).chunk(2, -1)
        y = decoder(mu + torch.randn_like(mu) * (0.5 * logvar).exp())
        loss = F.binary_cross_entropy_with_logits(y, x, reduction="sum") / 32 + 0.1 * (
            -0.5 * (1 + logvar - mu**2 - logvar.exp()).sum(1).mean())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


class PooledEncoder(nn.Module):
    """A pooler whose output nobody uses, as in many published encoders."""

    def __init__(self):
        super().__init__()
        self.embed, self.block = nn.Embedding(60, 32), Block(32)
        self.pooler = nn.Linear(32, 32)

    def forward(self, ids):
        hidden = self.block(self.embed(ids))
        return {"last": hidden, "pooled": torch.tanh(self.pooler(hidden[:, 0]))}


def unused_pooler(steps=30):
    model = nn.ModuleDict({"encoder": PooledEncoder(), "head": nn.Linear(32, 3)})
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps):
        ids = torch.randint(0, 60, (8, 10))
        loss = F.cross_entropy(model["head"](model["encoder"](ids)["last"]).flatten(0, 1), (ids % 3).flatten())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def bf16_autocast(steps=30):
    model = nn.Sequential(nn.Linear(16, 64), nn.GELU(), nn.Linear(64, 1))
    optimizer = torch.optim.AdamW(model.parameters(), 1e-3)
    for _ in range(steps):
        x = torch.randn(32, 16)
        with torch.autocast("cpu", torch.bfloat16):
            loss = F.mse_loss(model(x)[:, 0].float(), x.sum(-1))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()


def accumulation(steps=20):
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 1))
    optimizer = torch.optim.SGD(model.parameters(), 0.05)
    for _ in range(steps):
        for _ in range(4):
            x = torch.randn(8, 16)
            (F.mse_loss(model(x)[:, 0], x[:, 0]) / 4).backward()
        optimizer.step()
        optimizer.zero_grad()


ALL = (mlp, tied_lm, transformer, cnn, gan, frozen_backbone, head_only, lora, teacher_student, q_learning, vae,
       unused_pooler, bf16_autocast, accumulation)  # fmt: skip
