class CharVocab:
    """character table with special symbols in front"""

    def __init__(self, texts, specials=("<pad>", "<bos>", "<eos>")):
        chars = sorted({c for t in texts for c in t})
        self.size = len(chars)
        self.itos = list(specials) + chars
        self.stoi = {s: i for i, s in enumerate(self.itos)}

    def encode(self, text):
        return [self.stoi["<bos>"]] + [self.stoi[c] for c in text] + [self.stoi["<eos>"]]

    def decode(self, ids):
        return "".join(self.itos[i] for i in ids if i > 2)
