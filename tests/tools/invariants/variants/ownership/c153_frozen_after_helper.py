import torch
from torch import nn
import torchvision


def build(classes):
    model = torchvision.models.resnet50(weights="IMAGENET1K_V2")
    model.fc = nn.Linear(2048, classes)
    return model


def freeze(model):
    for weight in model.parameters():
        weight.requires_grad = False  # FAULT C153


def main(batches):
    model = build(9)
    freeze(model)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    for x, y in batches:
        opt.zero_grad()
        nn.functional.cross_entropy(model(x), y).backward()
        opt.step()


main([])
