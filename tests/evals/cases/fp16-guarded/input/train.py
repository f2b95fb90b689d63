import json
import sys

import torch
from torch import nn
from torch.nn import functional as F

settings = json.load(open("settings.json"))
AUTOCAST = dict(device_type="cpu", dtype=torch.float16)


class EventStream:
    """Machine event codes: a noisy permutation chain with resets."""

    def __init__(self, vocab, seed):
        self.g = torch.Generator().manual_seed(seed)
        self.vocab = vocab
        self.nxt = torch.randperm(vocab, generator=torch.Generator().manual_seed(0))

    def batch(self, n, ctx):
        cur = torch.randint(0, self.vocab, (n,), generator=self.g)
        out = [cur]
        for _ in range(ctx):
            jump = torch.rand(n, generator=self.g) < 0.12
            cur = torch.where(jump, torch.randint(0, self.vocab, (n,), generator=self.g), self.nxt[cur])
            out.append(cur)
        seq = torch.stack(out, 1)
        return seq[:, :-1], seq[:, 1:]


class EventModel(nn.Module):
    def __init__(self, vocab, ctx, dim, heads, **_):
        super().__init__()
        self.tok, self.pos = nn.Embedding(vocab, dim), nn.Parameter(0.02 * torch.randn(ctx, dim))
        self.block = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.0, batch_first=True, norm_first=True)
        self.unembed = nn.Linear(dim, vocab)

    def forward(self, ids):
        mask = nn.Transformer.generate_square_subsequent_mask(ids.size(1))
        return self.unembed(self.block(self.tok(ids) + self.pos[: ids.size(1)], src_mask=mask, is_causal=True))


def lm_loss(logits, targets):
    # summed over the window as in the paper, mean over sequences
    return F.cross_entropy(logits.transpose(1, 2), targets, reduction="none").sum(1).mean()


def guarded_step(net, opt, scaler, value, max_norm):
    """Clip in scaled units and leave the weights alone when the batch went bad."""
    opt.zero_grad()
    scaler.scale(value).backward()
    scale = scaler.get_scale()
    norm = nn.utils.clip_grad_norm_(net.parameters(), max_norm * scale)
    if not torch.isfinite(norm):
        return None
    scaler.step(opt)
    scaler.update()
    return norm.item() / scale


def main():
    torch.manual_seed(2)
    s = settings
    net = EventModel(**s)
    opt = torch.optim.AdamW(net.parameters(), s["lr"])
    scaler = torch.amp.GradScaler("cpu", init_scale=s["init_scale"])
    stream, skipped = EventStream(s["vocab"], 5), 0
    for i in range(s["iters"]):
        x, y = stream.batch(s["batch"], s["ctx"])
        with torch.autocast(**AUTOCAST):
            value = lm_loss(net(x), y)
        norm = guarded_step(net, opt, scaler, value, s["max_norm"])
        skipped += norm is None
        if i % s["log_every"] == 0 or i == s["iters"] - 1:
            shown = "skipped" if norm is None else f"{norm:.3f}"
            sys.stderr.write(f"[{i:>4}] loss/token {value.item() / s['ctx']:.4f}  grad {shown}  "
                             f"skipped so far {skipped}  loss scale {scaler.get_scale():.0f}\n")


main()
