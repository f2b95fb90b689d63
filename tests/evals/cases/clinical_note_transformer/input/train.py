import logging
import sys

import torch
from torch import nn
from torch.utils.data import DataLoader, random_split

from notes import DEPTS, TriageNotes, collate

logging.basicConfig(stream=sys.stdout, level=logging.INFO,
                    format="%(asctime)s.%(msecs)03d [%(levelname)s] %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
log = logging.getLogger("triage")


class NoteEncoder(nn.Module):
    def __init__(self, vocab_size, dim=48, heads=4, depth=2, max_len=64):
        super().__init__()
        self.tok = nn.Embedding(vocab_size, dim, padding_idx=0)
        self.pos = nn.Parameter(torch.randn(max_len, dim) * 0.02)
        layer = nn.TransformerEncoderLayer(dim, heads, 2 * dim, dropout=0.1, batch_first=True, norm_first=True)
        self.encoder = nn.TransformerEncoder(layer, depth, enable_nested_tensor=False)
        self.cls = nn.Linear(dim, len(DEPTS))

    def forward(self, ids):
        pad = ids == 0
        h = self.tok(ids) + self.pos[: ids.shape[1]]
        h = self.encoder(h, src_key_padding_mask=pad)
        keep = (~pad).unsqueeze(-1).float()
        pooled = (h * keep).sum(1) / keep.sum(1)
        return self.cls(pooled)


@torch.no_grad()
def evaluate(net, loader):
    net.eval()
    hit = n = 0
    for ids, y in loader:
        hit += (net(ids).argmax(-1) == y).sum().item()
        n += len(y)
    return hit / n


def main():
    torch.manual_seed(9)
    data = TriageNotes("notes.jsonl")
    train, valid = random_split(data, [1360, 240], generator=torch.Generator().manual_seed(0))
    loader = DataLoader(train, 16, shuffle=True, collate_fn=collate)
    valid_loader = DataLoader(valid, 64, collate_fn=collate)
    net = NoteEncoder(len(data.vocab) + 1)
    opt = torch.optim.AdamW(net.parameters(), lr=1e-3)
    warm = torch.optim.lr_scheduler.LinearLR(opt, 0.1, 1.0, total_iters=30)
    log.info("notes train=%d valid=%d vocab=%d params=%d", len(train), len(valid), len(data.vocab),
             sum(p.numel() for p in net.parameters()))
    for epoch in range(1, 5):
        net.train()
        total = 0.0
        for i, (ids, y) in enumerate(loader, 1):
            loss = nn.functional.cross_entropy(net(ids), y, label_smoothing=0.05)
            opt.zero_grad()
            loss.backward()
            norm = nn.utils.clip_grad_norm_(net.parameters(), 1.0)
            opt.step()
            warm.step()
            total += loss.item()
            if i % 10 == 0:
                log.info("epoch %d batch %d/%d loss %.4f grad_norm %.3f lr %.5f", epoch, i, len(loader),
                         loss.item(), norm, warm.get_last_lr()[0])
        log.info("epoch %d done mean_loss %.4f valid_acc %.3f", epoch, total / len(loader),
                 evaluate(net, valid_loader))


if __name__ == "__main__":
    main()
