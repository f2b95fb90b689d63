import random

import torch

from lm import CausalLM
from tok import CharTokenizer

MAX_NEW = 16


def dialogues(n, seed):
    r = random.Random(seed)
    for _ in range(n):
        a, b = r.randint(0, 12), r.randint(0, 12)
        yield f"Q: {a}+{b}=? A: ", str(a + b)


class Collator:
    def __init__(self, tok):
        self.tok = tok

    def __call__(self, pairs):
        rows = [self.tok.encode(q + a) + [self.tok.eos_token_id] for q, a in pairs]
        ids = self.tok.pad(rows)
        labels = ids.clone()
        labels[labels == self.tok.pad_token_id] = -100
        for i, (q, _) in enumerate(pairs):
            labels[i, : len(q)] = -100
        return ids, labels


def probe(model, tok, pairs):
    model.eval()
    right = ended = 0
    sample = None
    for q, a in pairs:
        out = model.generate(tok.encode(q), MAX_NEW, tok.eos_token_id)[len(q):]
        ended += out[-1] == tok.eos_token_id
        text = tok.decode(out).replace("<eos>", "")
        right += text.strip() == a
        sample = sample or f"{q}{tok.decode(out)}"
    model.train()
    return right, ended, sample


def main():
    torch.manual_seed(3)
    tok = CharTokenizer()
    if tok.pad_token_id is None:
        tok.pad_token_id = tok.eos_token_id
    model = CausalLM(len(tok))
    optim = torch.optim.AdamW(model.parameters(), lr=3e-3, betas=(0.9, 0.95), weight_decay=0.01)
    collate = Collator(tok)
    pool = list(dialogues(4000, 1))
    check = list(dialogues(40, 2))
    rnd = random.Random(0)
    for step in range(1, 801):
        lr = 3e-3 * min(1.0, step / 50)
        for group in optim.param_groups:
            group["lr"] = lr
        ids, labels = collate(rnd.sample(pool, 48))
        loss = model(ids, labels)
        optim.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optim.step()
        if step % 100 == 0:
            right, ended, sample = probe(model, tok, check)
            print({"step": step, "sft_loss": round(loss.item(), 4), "exact": f"{right}/40", "ended": f"{ended}/40"})
            print("   >>", sample)


if __name__ == "__main__":
    main()
