"""A schedule of as many steps as the Trainer has epochs."""
import torch
from transformers import BertConfig, BertForSequenceClassification, Trainer, TrainingArguments
from transformers import get_linear_schedule_with_warmup

EPOCHS = 5


def fit(rows):
    args = TrainingArguments("out", num_train_epochs=EPOCHS, report_to=[])
    model = BertForSequenceClassification(BertConfig(num_labels=3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, EPOCHS)  # FAULT C323
    Trainer(model=model, args=args, train_dataset=rows, optimizers=(optimizer, schedule)).train()


def fit_long(rows):
    args = TrainingArguments("out", num_train_epochs=EPOCHS, report_to=[], per_device_train_batch_size=8)
    model = BertForSequenceClassification(BertConfig(num_labels=3))
    optimizer = torch.optim.AdamW(model.parameters(), lr=2e-5)
    schedule = get_linear_schedule_with_warmup(optimizer, 0, EPOCHS * (len(rows) // 8))
    Trainer(model=model, args=args, train_dataset=rows, optimizers=(optimizer, schedule)).train()


fit([]), fit_long([])
