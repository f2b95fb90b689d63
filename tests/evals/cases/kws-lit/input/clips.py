import torch
from torch.utils.data import DataLoader, TensorDataset

N_MELS, N_WORDS, MAX_T, KEY_T = 20, 8, 160, 6


def make_clips(n, lo, hi, seed):
    """A keyword of KEY_T frames somewhere in background babble made of fragments that look alike."""
    bank = torch.randn(N_WORDS, KEY_T, N_MELS, generator=torch.Generator().manual_seed(99))
    g = torch.Generator().manual_seed(seed)
    word = torch.randint(0, N_WORDS, (n,), generator=g)
    length = torch.randint(lo, hi + 1, (n,), generator=g)
    mel = torch.zeros(n, MAX_T, N_MELS)
    for i in range(n):
        T = int(length[i])
        mel[i, :T] = 0.9 * torch.randn(T, N_MELS, generator=g)
        at = int(torch.randint(0, T - KEY_T, (1,), generator=g))
        mel[i, at:at + KEY_T] += bank[word[i]]
    valid = torch.arange(MAX_T)[None] < length[:, None]
    return TensorDataset(mel, valid, word)


def loaders():
    train = make_clips(1200, 20, 40, 0)
    val = make_clips(300, 120, 160, 1)
    return DataLoader(train, 64, shuffle=True), DataLoader(val, 100)
