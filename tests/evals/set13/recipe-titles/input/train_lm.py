import math
import torch
from torch import nn
import torch.nn.functional as F
from tok import WordLevel

torch.manual_seed(0)
torch.set_num_threads(1)
tk = WordLevel("tokenizer")
train = open("titles_train.txt").read().splitlines()
valid = open("titles_valid.txt").read().splitlines()


class TinyGPT(nn.Module):
    def __init__(self, V, d=48, h=4, n=2, T=32):
        super().__init__()
        self.wte, self.wpe = nn.Embedding(V, d), nn.Embedding(T, d)
        self.blocks = nn.ModuleList([nn.TransformerEncoderLayer(d, h, 4 * d, 0.1, "gelu", batch_first=True, norm_first=True) for _ in range(n)])
        self.ln = nn.LayerNorm(d)
        self.head = nn.Linear(d, V, bias=False)
        self.head.weight = self.wte.weight
        nn.init.normal_(self.wte.weight, std=0.02)
        nn.init.normal_(self.wpe.weight, std=0.02)

    def forward(self, ids, labels=None):
        T = ids.shape[1]
        x = self.wte(ids) + self.wpe(torch.arange(T))
        m = torch.full((T, T), float("-inf")).triu(1)
        for b in self.blocks:
            x = b(x, src_mask=m)
        lg = self.head(self.ln(x))
        if labels is None:
            return lg
        return F.cross_entropy(lg[:, :-1].flatten(0, 1), labels[:, 1:].flatten(), ignore_index=-100)

    @torch.no_grad()
    def generate(self, ids, n, temperature=0.8):
        done = torch.zeros(len(ids), dtype=torch.bool)
        while ids.shape[1] < n and not done.all():
            p = (self(ids)[:, -1] / temperature).softmax(-1)
            nxt = torch.multinomial(p, 1)
            ids = torch.cat([ids, nxt], 1)
            done |= nxt[:, 0] == tk.eos_id
        return ids


model = TinyGPT(len(tk.vocab))
EPOCHS, BS, LR = 4, 64, 3e-3
steps = EPOCHS * math.ceil(len(train) / BS)
opt = torch.optim.AdamW(model.parameters(), lr=LR, betas=(0.9, 0.95), weight_decay=0.01)
sched = torch.optim.lr_scheduler.LambdaLR(opt, lambda s: min(1, (s + 1) / 40) * 0.5 * (1 + math.cos(math.pi * s / steps)))
want = sum(len(t.split()) for t in valid) / len(valid)
for ep in range(EPOCHS):
    model.train()
    tot = 0.0
    perm = torch.randperm(len(train)).tolist()
    for i in range(0, len(perm), BS):
        loss = model(*tk.batch([train[j] for j in perm[i:i + BS]]))
        opt.zero_grad(); loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        opt.step(); sched.step(); tot += loss.item()
    model.eval()
    with torch.no_grad():
        vl = model(*tk.batch(valid)).item()
    g = [tk.decode(r[1:].tolist()) for r in model.generate(torch.full((50, 1), tk.bos_id), tk.max_len)]
    ln = sum(len(s.split()) for s in g) / len(g)
    print(f"epoch {ep+1}/{EPOCHS} train {tot / math.ceil(len(train)/BS):.3f} valid {vl:.3f} ppl {math.exp(vl):.2f} | generated words/title {ln:.1f} (valid {want:.1f})", flush=True)
for s in g[:4]:
    print("   ", s)
