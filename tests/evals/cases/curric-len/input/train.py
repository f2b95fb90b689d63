import torch
from torch import nn
from torch.utils.data import DataLoader

from data import AddSums, VOCAB, pad

SCHEDULE = {0: 1, 3: 2, 6: 3}          # epoch -> largest number of digits
EPOCHS, BATCH = 9, 64


class SumLM(nn.Module):
    def __init__(self, d=64):
        super().__init__()
        self.emb = nn.Embedding(len(VOCAB) + 1, d, padding_idx=0)
        self.rnn = nn.GRU(d, 128, batch_first=True)
        self.out = nn.Linear(128, len(VOCAB) + 1)

    def forward(self, ids):
        return self.out(self.rnn(self.emb(ids))[0])


def token_loss(model, ids, mask):
    logits = model(ids[:, :-1])
    tgt, m = ids[:, 1:], mask[:, 1:]
    loss = nn.functional.cross_entropy(logits[m], tgt[m])
    return loss, ((logits.argmax(-1) == tgt) & m).sum().item() / m.sum().item()


def evaluate(model, loaders):
    model.eval()
    res = {}
    with torch.no_grad():
        for k, dl in loaders.items():
            accs = [token_loss(model, *b)[1] for b in dl]
            res[k] = sum(accs) / len(accs)
    model.train()
    return res


def main():
    torch.manual_seed(0)
    ds = AddSums(2560, max_digits=SCHEDULE[0])
    dl = DataLoader(ds, batch_size=BATCH, shuffle=True, collate_fn=pad, num_workers=2, persistent_workers=True)
    tests = {k: DataLoader(AddSums(300, k, seed=99), batch_size=100, collate_fn=pad) for k in (1, 2, 3)}
    model = SumLM()
    opt = torch.optim.Adam(model.parameters(), lr=3e-3)
    print(f"{'epoch':>5} {'digits':>6} {'loss':>8} {'tok_acc':>8} | {'test<=1':>8} {'test<=2':>8} {'test<=3':>8}")
    for epoch in range(EPOCHS):
        if epoch in SCHEDULE:
            ds.max_digits = SCHEDULE[epoch]
        tot = acc = 0.0
        for ids, mask in dl:
            loss, a = token_loss(model, ids, mask)
            opt.zero_grad()
            loss.backward()
            nn.utils.clip_grad_norm_(model.parameters(), 1.0)
            opt.step()
            tot, acc = tot + loss.item(), acc + a
        t = evaluate(model, tests)
        print(f"{epoch:5d} {ds.max_digits:6d} {tot / len(dl):8.4f} {acc / len(dl):8.3f} | "
              f"{t[1]:8.3f} {t[2]:8.3f} {t[3]:8.3f}", flush=True)


if __name__ == "__main__":
    main()
