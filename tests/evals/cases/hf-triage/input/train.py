"""Which desk answers a letter?  A small BERT from scratch, Trainer with early stopping."""
import random

import numpy as np
import torch
from transformers import BertConfig, BertForSequenceClassification, EarlyStoppingCallback, Trainer, TrainingArguments, set_seed

DESKS = {
    "tax": ["assessment", "refund", "return", "deduction"],
    "housing": ["rent", "landlord", "deposit", "mould"],
    "permits": ["building", "fence", "garage", "facade"],
    "schools": ["pupil", "teacher", "holiday", "bus"],
}
FILLER = "dear office please i would like to ask about the matter of my letter from last month which was not answered yet".split()
WORDS = sorted({w for ws in DESKS.values() for w in ws} | set(FILLER))
VOCAB = {"[PAD]": 0, "[CLS]": 1, **{w: i + 2 for i, w in enumerate(WORDS)}}
LENGTH = 24


class Letters(torch.utils.data.Dataset):
    def __init__(self, n, seed):
        rng = random.Random(seed)
        self.rows = []
        for _ in range(n):
            desk = rng.randrange(len(DESKS))
            words = rng.choices(FILLER, k=rng.randint(12, LENGTH - 4))
            own = list(DESKS.values())[desk]
            other = rng.choice(list(DESKS.values()))
            for w in rng.choices(own, k=2) + rng.choices(other, k=1):
                words.insert(rng.randrange(len(words)), w)
            ids = [VOCAB["[CLS]"]] + [VOCAB[w] for w in words][:LENGTH - 1]
            pad = LENGTH - len(ids)
            self.rows.append({"input_ids": ids + [0] * pad, "attention_mask": [1] * len(ids) + [0] * pad, "labels": desk})

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        return {k: torch.tensor(v) for k, v in self.rows[i].items()}


def metrics(pred):
    guess = pred.predictions.argmax(-1)
    f1 = []
    for k in range(len(DESKS)):
        tp = np.sum((guess == k) & (pred.label_ids == k))
        f1.append(2 * tp / max(1, np.sum(guess == k) + np.sum(pred.label_ids == k)))
    return {"macro_f1": float(np.mean(f1)), "accuracy": float((guess == pred.label_ids).mean())}


def main():
    set_seed(7)
    config = BertConfig(vocab_size=len(VOCAB), hidden_size=48, num_hidden_layers=2, num_attention_heads=4,
                        intermediate_size=96, max_position_embeddings=LENGTH, num_labels=len(DESKS))
    args = TrainingArguments(
        output_dir="out", num_train_epochs=12, per_device_train_batch_size=32, per_device_eval_batch_size=100,
        learning_rate=6e-4, warmup_steps=60, lr_scheduler_type="linear", weight_decay=0.01,
        eval_strategy="steps", eval_steps=40, save_strategy="steps", save_steps=40, save_total_limit=2,
        load_best_model_at_end=True, metric_for_best_model="eval_macro_f1", greater_is_better=False,
        logging_steps=40, report_to=[], use_cpu=True, disable_tqdm=True, seed=7,
    )
    trainer = Trainer(
        model=BertForSequenceClassification(config), args=args, train_dataset=Letters(1600, 1), eval_dataset=Letters(400, 2),
        compute_metrics=metrics, callbacks=[EarlyStoppingCallback(early_stopping_patience=4)],
    )
    trainer.train()
    trainer.save_state()
    print("planned steps", trainer.state.max_steps, "done", trainer.state.global_step)
    print("best checkpoint", trainer.state.best_model_checkpoint, "metric", round(trainer.state.best_metric, 4))
    out = trainer.evaluate(Letters(400, 3))
    print(f"test macro_f1 {out['eval_macro_f1']:.4f} accuracy {out['eval_accuracy']:.4f}")


if __name__ == "__main__":
    main()
