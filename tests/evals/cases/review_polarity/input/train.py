import torch
from torch import nn

from net import PolarityNet, accuracy
from textpipe import Vocabulary, read_reviews, split, tensors


def main():
    torch.manual_seed(14)
    train_rows, held_out = split(read_reviews())
    vocab = Vocabulary(train_rows)
    (x, y), (xv, yv) = tensors(train_rows, vocab), tensors(held_out, vocab)
    print(f"[train] {len(x)} reviews, vocabulary {len(vocab)}")
    net = PolarityNet(len(vocab))
    opt = torch.optim.Adam(net.parameters(), lr=2e-3)
    for epoch in range(6):
        net.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(50):
            loss = nn.functional.cross_entropy(net(x[idx]), y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        print(f"[train] epoch {epoch} loss {total / len(x):.4f} held-out accuracy {accuracy(net, xv, yv):.4f}")
    torch.save({"weights": net.state_dict(), "vocab_size": len(vocab)}, "polarity.pt")
    print("[train] wrote polarity.pt")


if __name__ == "__main__":
    main()
