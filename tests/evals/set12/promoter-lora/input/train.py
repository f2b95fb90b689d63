"""LoRA adapters on a small DNA encoder for promoter detection."""
import argparse

import torch
from peft import LoraConfig, get_peft_model
from torch.nn import functional as F
from transformers import BertConfig, BertForSequenceClassification, set_seed

BASES = {"A": 1, "C": 2, "G": 3, "T": 4}


def read(path):
    ids, labels = [], []
    with open(path) as f:
        for row in f:
            label, seq = row.split()
            ids.append([5] + [BASES[c] for c in seq])
            labels.append(int(label))
    return torch.tensor(ids), torch.tensor(labels)


def checksum(model, part):
    return sum(p.detach().double().abs().sum().item() for n, p in model.named_parameters() if (part in n))


def main():
    ap = argparse.ArgumentParser()
    ap.add_argument("--encoder", default="encoder")
    ap.add_argument("--epochs", type=int, default=7)
    ap.add_argument("--rank", type=int, default=4)
    ap.add_argument("--lr", type=float, default=4e-3)
    args = ap.parse_args()
    set_seed(60)
    config = BertConfig.from_json_file(f"{args.encoder}/config.json")
    base = BertForSequenceClassification(config)
    base.bert.load_state_dict(torch.load(f"{args.encoder}/encoder.pt", weights_only=True))
    model = get_peft_model(base, LoraConfig(task_type="SEQ_CLS", r=args.rank, lora_alpha=16, lora_dropout=0.05,
                                            target_modules=["query", "value"]))
    n_all = sum(p.numel() for p in model.parameters())
    n_train = sum(p.numel() for p in model.parameters() if p.requires_grad)
    print(f"trainable {n_train} of {n_all} parameters ({100 * n_train / n_all:.2f} %)")
    print(f"checksum encoder {checksum(model, 'base_layer'):.6f}  word embeddings {checksum(model, 'word_embeddings'):.6f}  "
          f"lora_B {checksum(model, 'lora_B'):.6f}", flush=True)
    x, y = read("train.txt")
    xv, yv = read("dev.txt")
    opt = torch.optim.AdamW([p for p in model.parameters() if p.requires_grad], lr=args.lr)
    for epoch in range(args.epochs):
        model.train()
        total = 0.0
        for idx in torch.randperm(len(x)).split(32):
            loss = F.cross_entropy(model(input_ids=x[idx]).logits, y[idx])
            opt.zero_grad()
            loss.backward()
            opt.step()
            total += loss.item() * len(idx)
        model.eval()
        with torch.no_grad():
            acc = (model(input_ids=xv).logits.argmax(-1) == yv).float().mean().item()
        without = sum(p.grad is None for p in model.parameters())
        print(f"epoch {epoch}  loss {total / len(x):.4f}  dev acc {acc:.3f}  tensors without gradient {without}", flush=True)
    print(f"checksum encoder {checksum(model, 'base_layer'):.6f}  word embeddings {checksum(model, 'word_embeddings'):.6f}  "
          f"lora_B {checksum(model, 'lora_B'):.6f}")


if __name__ == "__main__":
    main()
