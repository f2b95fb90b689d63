"""Writes reviews.tsv (label <tab> text). Ran once."""
import random

GOOD = "lovely crisp generous sturdy charming bright reliable tasty smooth comfy quick elegant".split()
BAD = "flimsy bland noisy late greasy dull broken rude leaky stiff blurry stale".split()
NEUTRAL = ("the a this that product box shop order arrived was is very quite my our kitchen lamp coffee shoe jacket "
           "phone cable table with and for weeks days price size colour delivery staff bought used again week "
           "friend sister garden office morning evening handle lid sole strap").split()

if __name__ == "__main__":
    rnd = random.Random(0)
    with open("reviews.tsv", "w") as f:
        for _ in range(2400):
            y = rnd.randint(0, 1)
            words = [rnd.choice(NEUTRAL) for _ in range(rnd.randint(8, 18))]
            for _ in range(rnd.randint(2, 4)):
                pool = (GOOD if y else BAD) if rnd.random() < 0.85 else (BAD if y else GOOD)
                words.insert(rnd.randrange(len(words)), rnd.choice(pool))
            f.write(f"{y}\t{' '.join(words)}\n")
