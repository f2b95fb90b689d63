import torch
from accelerate import Accelerator


def main(model, loader):
    accelerator = Accelerator()
    optimizer = torch.optim.AdamW(model.parameters(), lr=5e-5)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    total_loss = 0
    for batch in loader:
        outputs = model(**batch)
        loss = outputs.loss
        total_loss += loss  # FAULT C103
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    print(total_loss / len(loader))
