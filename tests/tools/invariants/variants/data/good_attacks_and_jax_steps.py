"""A loader in order whose loop takes gradients of its pictures, beside a training that shuffles."""
import torch
from torch import nn
from torch.utils.data import DataLoader
from torchvision import transforms
from torchvision.datasets import ImageFolder


def disturbed(model, pictures, labels, size=0.02):
    pictures = pictures.clone().requires_grad_()
    loss = nn.functional.cross_entropy(model(pictures), labels)
    loss.backward()
    return (pictures + size * pictures.grad.sign()).detach()


def attack(model, loader):
    hit = 0
    for pictures, labels in loader:
        hit += (model(disturbed(model, pictures, labels)).argmax(-1) != labels).sum().item()
    return hit


def main(folder):
    data = ImageFolder(folder, transforms.ToTensor())
    in_order = DataLoader(data, batch_size=32, shuffle=False)
    model = nn.Sequential(nn.Flatten(), nn.Linear(3 * 64 * 64, 10))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for pictures, labels in DataLoader(data, batch_size=32, shuffle=True):
        loss = nn.functional.cross_entropy(model(pictures), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    model.requires_grad_(False).eval()
    print(attack(model, in_order))
