"""Continue training the transliteration model on new place names, from the released weights."""
import argparse
import json
from pathlib import Path

import torch
from safetensors.torch import load_file
from torch.utils.data import Dataset
from transformers import (BartConfig, BartForConditionalGeneration, PrinterCallback, Trainer, TrainerCallback,
                          TrainingArguments, set_seed)

IGNORE = -100


class CharVocab:
    def __init__(self, path):
        self.stoi = json.loads(Path(path).read_text(encoding="utf-8"))
        self.pad, self.bos, self.eos, self.unk = (self.stoi[t] for t in ("<pad>", "<s>", "</s>", "<unk>"))

    def __len__(self):
        return len(self.stoi)

    def encode(self, text):
        return [self.stoi.get(c, self.unk) for c in text] + [self.eos]


class Names(Dataset):
    def __init__(self, path, vocab):
        self.items = []
        for line in Path(path).read_text(encoding="utf-8").splitlines():
            src, tgt = line.split("\t")
            self.items.append((vocab.encode(src), vocab.encode(tgt)))

    def __len__(self):
        return len(self.items)

    def __getitem__(self, i):
        src, tgt = self.items[i]
        return {"input_ids": src, "labels": tgt}


def make_collate(pad):
    def fill(rows, value):
        n = max(map(len, rows))
        return torch.tensor([r + [value] * (n - len(r)) for r in rows])

    def collate(batch):
        ids = fill([b["input_ids"] for b in batch], pad)
        return {"input_ids": ids, "attention_mask": (ids != pad).long(), "labels": fill([b["labels"] for b in batch], IGNORE)}
    return collate


class Printer(TrainerCallback):
    def on_log(self, args, state, control, logs=None, **kw):
        keep = {k: round(float(v), 4) for k, v in logs.items() if k in ("loss", "eval_loss", "grad_norm")}
        if keep:
            print(f"step {state.global_step}", keep, flush=True)


def main():
    p = argparse.ArgumentParser()
    p.add_argument("--release", default="release")
    p.add_argument("--data", default="data")
    p.add_argument("--steps", type=int, default=60)
    p.add_argument("--from-scratch", action="store_true")
    args = p.parse_args()
    set_seed(3)
    vocab = CharVocab(f"{args.release}/vocab.json")
    config = BartConfig(**json.loads(Path(f"{args.release}/config.json").read_text()))
    assert config.vocab_size == len(vocab)
    model = BartForConditionalGeneration(config)
    if not args.from_scratch:
        missing, unexpected = model.load_state_dict(load_file(f"{args.release}/model.safetensors"), strict=False)
        model.tie_weights()
        print(f"loaded {args.release}: vocab {len(vocab)}, missing {[m for m in missing if 'embed_tokens' not in m and 'lm_head' not in m]}, unexpected {unexpected}")
    train, dev = Names(f"{args.data}/train.tsv", vocab), Names(f"{args.data}/dev.tsv", vocab)
    print(f"{len(train)} training pairs, {len(dev)} dev pairs", flush=True)
    targs = TrainingArguments(
        output_dir="out", max_steps=args.steps, per_device_train_batch_size=32, per_device_eval_batch_size=128,
        learning_rate=5e-4, lr_scheduler_type="linear", warmup_steps=10, logging_steps=10, logging_first_step=True,
        eval_strategy="steps", eval_steps=20, save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=3,
    )
    trainer = Trainer(model=model, args=targs, train_dataset=train, eval_dataset=dev, data_collator=make_collate(vocab.pad),
                      callbacks=[Printer()])
    trainer.remove_callback(PrinterCallback)
    print("before training: eval_loss %.4f" % trainer.evaluate()["eval_loss"])
    trainer.train()


if __name__ == "__main__":
    main()
