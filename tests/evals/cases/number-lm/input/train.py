#!/usr/bin/env python
"""Tiny GPT-2 on arithmetic progressions: "4 7 10 13 ..."; the prompt holds the first terms, the model continues."""
import argparse
import time

import torch
from torch.utils.data import DataLoader, Dataset
from transformers import GPT2Config, GPT2LMHeadModel

BOS, OFFSET, MOD = 0, 1, 60


class Progressions(Dataset):
    def __init__(self, n, length=13, seed=0):
        g = torch.Generator().manual_seed(seed)
        start = torch.randint(0, MOD, (n, 1), generator=g)
        delta = torch.randint(1, 8, (n, 1), generator=g)
        terms = (start + delta * torch.arange(length)) % MOD
        self.rows = torch.cat([torch.full((n, 1), BOS), terms + OFFSET], dim=1)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        row = self.rows[i]
        return {"input_ids": row[:-1].clone(), "labels": row[1:].clone()}


@torch.no_grad()
def sample(model, prompts, n_new):
    model.eval()
    ids = prompts
    for _ in range(n_new):
        nxt = model(input_ids=ids).logits[:, -1].argmax(-1, keepdim=True)
        ids = torch.cat([ids, nxt], dim=1)
    model.train()
    return ids


def show(row):
    return " ".join(str(t - OFFSET) for t in row.tolist()[1:])


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--epochs", type=int, default=6)
    ap.add_argument("--bs", type=int, default=64)
    ap.add_argument("--lr", type=float, default=2e-3)
    ap.add_argument("--prompt-terms", type=int, default=4)
    args = ap.parse_args()

    torch.manual_seed(17)
    config = GPT2Config(vocab_size=MOD + OFFSET, n_positions=32, n_embd=64, n_layer=2, n_head=4, resid_pdrop=0.0,
                        embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=BOS, eos_token_id=BOS, use_cache=False)
    model = GPT2LMHeadModel(config)
    train, test = Progressions(3200), Progressions(200, seed=99)
    loader = DataLoader(train, batch_size=args.bs, shuffle=True)
    opt = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=0.01)
    sched = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=args.lr, total_steps=args.epochs * len(loader), pct_start=0.1)
    print(f"{model.num_parameters() / 1e3:.0f}k parameters, {len(loader)} steps per epoch")

    for epoch in range(args.epochs):
        t0, total = time.time(), 0.0
        for batch in loader:
            out = model(**batch)
            out.loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            sched.step()
            opt.zero_grad()
            total += out.loss.item()
        k = args.prompt_terms + 1
        gen = sample(model, test.rows[:, :k], 4)
        hit = (gen[:, k:] == test.rows[:, k:k + 4]).float().mean().item()
        print(f"Epoch {epoch + 1}/{args.epochs} | train loss {total / len(loader):.4f} | ppl {torch.tensor(total / len(loader)).exp():.2f} "
              f"| continuation accuracy {100 * hit:.1f}% | {time.time() - t0:.0f}s")

    for i in range(4):
        print(f"  prompt {show(test.rows[i, :k]):<14} -> model {show(gen[i])[len(show(test.rows[i, :k])):]:<16} truth {show(test.rows[i, :k + 4])[len(show(test.rows[i, :k])):]}")


if __name__ == "__main__":
    main()
