"""Relation classification with label smoothing (eps 0.2), HF Trainer."""
import numpy as np
import torch
from torch.utils.data import Dataset
from transformers import (DistilBertConfig, DistilBertForSequenceClassification, Trainer, TrainingArguments, set_seed)

N_REL = 9


class Relations(Dataset):
    """Token ids of 'subject ... cue ... object' snippets; the cue pair decides the relation."""

    def __init__(self, n, seed):
        rng = np.random.default_rng(seed)
        self.ids = rng.integers(20, 90, (n, 14))
        self.y = rng.integers(0, N_REL, n)
        pos = rng.integers(1, 12, n)
        self.ids[np.arange(n), pos] = 2 + self.y
        self.ids[:, 0] = 1

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return {"input_ids": torch.tensor(self.ids[i]), "attention_mask": torch.ones(14, dtype=torch.long),
                "labels": int(self.y[i])}


class SmoothTrainer(Trainer):
    def compute_loss(self, model, inputs, return_outputs=False, **kw):
        labels = inputs["labels"]
        out = model(input_ids=inputs["input_ids"], attention_mask=inputs["attention_mask"])
        loss = torch.nn.functional.cross_entropy(out.logits, labels, label_smoothing=0.2)
        return (loss, {"logits": out.logits}) if return_outputs else loss


def metrics(p):
    return {"accuracy": float((p.predictions.argmax(-1) == p.label_ids).mean())}


def main():
    set_seed(13)
    cfg = DistilBertConfig(vocab_size=96, dim=40, n_layers=2, n_heads=4, hidden_dim=80, max_position_embeddings=16,
                           num_labels=N_REL, dropout=0.0, attention_dropout=0.0, seq_classif_dropout=0.0)
    args = TrainingArguments(output_dir="out", num_train_epochs=5, per_device_train_batch_size=32, learning_rate=3e-3,
                             per_device_eval_batch_size=100, warmup_steps=15, logging_steps=20, eval_strategy="epoch",
                             save_strategy="no", report_to=[], disable_tqdm=True, use_cpu=True, seed=13)
    trainer = SmoothTrainer(model=DistilBertForSequenceClassification(cfg), args=args, compute_metrics=metrics,
                            train_dataset=Relations(1600, 1), eval_dataset=Relations(300, 2))
    trainer.train()
    trainer.state.save_to_json("trainer_state.json")


if __name__ == "__main__":
    main()
