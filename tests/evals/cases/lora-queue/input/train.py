"""Ticket routing with LoRA on a small BERT (weights from config; the real job starts from our in-house checkpoint)."""
import random

import torch
from peft import LoraConfig, TaskType, get_peft_model
from torch.utils.data import Dataset
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments, get_linear_schedule_with_warmup, set_seed

QUEUES = {"billing": range(10, 30), "login": range(30, 50), "hardware": range(50, 70), "other": range(70, 90)}
CLS, SEP, PAD = 1, 2, 0
STEPS = 240


class Tickets(Dataset):
    def __init__(self, n, seed, length=16):
        rnd = random.Random(seed)
        self.rows = []
        for _ in range(n):
            label = rnd.randrange(len(QUEUES))
            words = list(QUEUES.values())[label]
            body = [rnd.choice(words) if rnd.random() < 0.45 else rnd.randrange(90, 200) for _ in range(length)]
            self.rows.append(([CLS] + body + [SEP], label))

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, i):
        ids, label = self.rows[i]
        return {"input_ids": torch.tensor(ids), "attention_mask": torch.ones(len(ids), dtype=torch.long),
                "labels": torch.tensor(label)}


def build():
    cfg = BertConfig(vocab_size=200, hidden_size=64, num_hidden_layers=2, num_attention_heads=4, intermediate_size=128,
                     max_position_embeddings=32, num_labels=len(QUEUES), pad_token_id=PAD)
    return BertForSequenceClassification(cfg)


def optimizer_for(model, lr=3e-3, weight_decay=0.01):
    decay, rest = [], []
    for name, p in model.named_parameters():
        (rest if name.endswith("bias") or "LayerNorm" in name else decay).append(p)
    opt = torch.optim.AdamW([{"params": decay, "weight_decay": weight_decay}, {"params": rest, "weight_decay": 0.0}], lr=lr)
    return opt, get_linear_schedule_with_warmup(opt, 20, STEPS)


def accuracy(pred):
    return {"accuracy": float((pred.predictions.argmax(-1) == pred.label_ids).mean())}


def main():
    set_seed(13)
    base = build()
    optimizers = optimizer_for(base)
    model = get_peft_model(base, LoraConfig(task_type=TaskType.SEQ_CLS, r=16, lora_alpha=32, lora_dropout=0.0,
                                            target_modules=["query", "value", "dense"]))
    model.print_trainable_parameters()
    args = TrainingArguments(output_dir="out", max_steps=STEPS, per_device_train_batch_size=16, per_device_eval_batch_size=64,
                             logging_steps=20, eval_strategy="steps", eval_steps=60, save_strategy="no", report_to=[],
                             disable_tqdm=True, use_cpu=True, seed=13)
    trainer = Trainer(model=model, args=args, train_dataset=Tickets(2000, 0), eval_dataset=Tickets(200, 1),
                      optimizers=optimizers, compute_metrics=accuracy)
    trainer.train()


if __name__ == "__main__":
    main()
