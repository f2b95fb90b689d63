"""Masked-LM pre-training on (synthetic) contract clauses with the Hugging Face Trainer."""
import resource

import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (BertConfig, BertForMaskedLM, Trainer, TrainerCallback, TrainingArguments, set_seed)

VOCAB, SEQ, MASK = 6000, 48, 4
HOST_LIMIT_MB = 450  # what the container has left beside the python process itself


class Clauses(Dataset):
    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        start = rng.integers(5, VOCAB - 500, (n, 1))
        self.ids = (start + np.cumsum(rng.integers(1, 4, (n, SEQ)), axis=1)) % (VOCAB - 5) + 5
        self.hide = rng.random((n, SEQ)) < 0.15

    def __len__(self):
        return len(self.ids)

    def __getitem__(self, i):
        ids = torch.tensor(self.ids[i])
        hide = torch.tensor(self.hide[i])
        return {
            "input_ids": torch.where(hide, torch.tensor(MASK), ids),
            "attention_mask": torch.ones(SEQ, dtype=torch.long),
            "labels": torch.where(hide, ids, torch.tensor(-100)),
        }


def current_mb():
    with open("/proc/self/statm") as f:
        return int(f.read().split()[1]) * resource.getpagesize() / 2**20


class HostMemory(TrainerCallback):
    """Prints the growth of the resident set and stops before the container is killed."""

    def __init__(self):
        self.base = None
        self.seen = 0

    def on_train_begin(self, args, state, control, **kw):
        self.base = current_mb()

    def on_step_end(self, args, state, control, **kw):
        self.seen = 0
        if state.global_step % 10 == 0:
            print(f"[mem] train step {state.global_step} +{current_mb() - self.base:.0f} MB", flush=True)

    def on_prediction_step(self, args, state, control, **kw):
        self.seen += 1
        grown = current_mb() - self.base
        if self.seen % 5 == 0:
            print(f"[mem] predict batch {self.seen} +{grown:.0f} MB", flush=True)
        if grown > HOST_LIMIT_MB:
            raise MemoryError(f"host memory +{grown:.0f} MB exceeds the container limit of {HOST_LIMIT_MB} MB")


def masked_accuracy(p):
    guess = p.predictions
    if guess.ndim == 3:
        guess = guess.argmax(-1)
    keep = p.label_ids != -100
    return {"masked_acc": float((guess[keep] == p.label_ids[keep]).mean()), "n_masked": int(keep.sum())}


def main():
    set_seed(31)
    net = BertForMaskedLM(BertConfig(
        vocab_size=VOCAB, hidden_size=32, num_hidden_layers=1, num_attention_heads=2, intermediate_size=64,
        max_position_embeddings=SEQ))
    args = TrainingArguments(
        output_dir="out",
        per_device_train_batch_size=16,
        per_device_eval_batch_size=16,
        num_train_epochs=1,
        learning_rate=1e-3,
        logging_steps=10,
        eval_strategy="epoch",
        save_strategy="no",
        report_to=[],
        disable_tqdm=True,
        use_cpu=True,
    )
    trainer = Trainer(
        model=net,
        args=args,
        train_dataset=Clauses(640, 1),
        eval_dataset=Clauses(640, 2),
        compute_metrics=masked_accuracy,
        callbacks=[HostMemory()],
    )
    trainer.train()
    print("finished")


if __name__ == "__main__":
    main()
