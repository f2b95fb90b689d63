"""Scores a saved checkpoint on the held-out reviews."""
import sys

import torch

from net import PolarityNet, accuracy
from textpipe import Vocabulary, read_reviews, split, tensors


def main(path):
    ckpt = torch.load(path)
    train_rows, held_out = split(read_reviews())
    vocab = Vocabulary(train_rows)
    if len(vocab) != ckpt["vocab_size"]:
        raise SystemExit("vocabulary size differs from the checkpoint")
    net = PolarityNet(len(vocab))
    report = net.load_state_dict(ckpt["weights"])
    print(f"[eval] {path}: {report}")
    x, y = tensors(held_out, vocab)
    print(f"[eval] held-out reviews {len(x)} accuracy {accuracy(net, x, y):.4f}")
    for row in held_out[:3]:
        ids, _ = tensors([row], vocab)
        print(f"[eval]   truth {row[0]} p(good) {net(ids).softmax(-1)[0, 1]:.3f}  {' '.join(row[1])[:60]}")


if __name__ == "__main__":
    main(sys.argv[1] if len(sys.argv) > 1 else "polarity.pt")
