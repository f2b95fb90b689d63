import math
from collections import defaultdict

import torch
import yaml
from torch import nn
from torch.utils.data import DataLoader

from clips import N_MELS, collate, corpus


class Recogniser(nn.Module):
    def __init__(self, channels, strides, hidden, n_out=11):
        super().__init__()
        self.convs = nn.ModuleList()
        c = N_MELS
        for s in strides:
            self.convs.append(nn.Conv1d(c, channels, 3, stride=s, padding=1))
            c = channels
        self.rnn = nn.GRU(channels, hidden, batch_first=True, bidirectional=True)
        self.head = nn.Linear(2 * hidden, n_out)

    def forward(self, x, lens):
        h = x.transpose(1, 2)
        for conv in self.convs:
            h = torch.relu(conv(h))
            lens = (lens - 1) // conv.stride[0] + 1
        packed = nn.utils.rnn.pack_padded_sequence(h.transpose(1, 2), lens, batch_first=True, enforce_sorted=False)
        h, _ = nn.utils.rnn.pad_packed_sequence(self.rnn(packed)[0], batch_first=True)
        return self.head(h).log_softmax(-1), lens


def edit_distance(a, b):
    row = list(range(len(b) + 1))
    for i, x in enumerate(a, 1):
        prev, row[0] = row[0], i
        for j, y in enumerate(b, 1):
            prev, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, prev + (x != y))
    return row[-1]


@torch.no_grad()
def digit_error_rate(net, loader):
    net.eval()
    wrong, total = defaultdict(int), defaultdict(int)
    for x, lens, y, y_lens, rates in loader:
        lp, out_lens = net(x, lens)
        best, refs = lp.argmax(-1), y.split(y_lens.tolist())
        for path, n, ref, rate in zip(best, out_lens, refs, rates):
            path = torch.unique_consecutive(path[:n])
            wrong[rate] += edit_distance(path[path > 0].tolist(), ref.tolist())
            total[rate] += len(ref)
    net.train()
    return {r: wrong[r] / total[r] for r in sorted(total)}


def main():
    with open("config.yaml") as f:
        cfg = yaml.safe_load(f)
    torch.manual_seed(cfg["seed"])
    train, dev = corpus(900, 1), corpus(250, 2)
    tl = DataLoader(train, cfg["batch_size"], shuffle=True, collate_fn=collate)
    dl = DataLoader(dev, 64, collate_fn=collate)
    net = Recogniser(**cfg["model"])
    ctc = nn.CTCLoss(blank=0, reduction="mean")
    opt = torch.optim.Adam(net.parameters(), lr=cfg["lr"])
    step = 0
    for epoch in range(1, cfg["epochs"] + 1):
        total, skipped = 0.0, 0
        for x, lens, y, y_lens, _ in tl:
            lp, out_lens = net(x, lens)
            loss = ctc(lp.transpose(0, 1), y, out_lens, y_lens)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), cfg["clip"])
            if math.isfinite(norm):
                opt.step()
            else:
                skipped += 1
            total += loss.item()
            step += 1
            if step % 19 == 0:
                print(f"epoch={epoch} step={step} loss={loss.item():.4f} grad_norm={float(norm):.3f}")
        der = digit_error_rate(net, dl)
        print(f"epoch={epoch} mean_loss={total / len(tl):.4f} skipped_updates={skipped}/{len(tl)} "
              + " ".join(f"der_{k}={v:.3f}" for k, v in der.items()), flush=True)


if __name__ == "__main__":
    main()
