"""Builds notes.jsonl (one triage note per line). Ran once on the intake export."""
import json
import random

SYMPTOMS = {
    "cardiac": "chest pain palpitations pressure radiating arm syncope sweating".split(),
    "respiratory": "cough wheeze breathless sputum inhaler asthma fever".split(),
    "trauma": "fall fracture wrist ankle laceration bruise swelling".split(),
}
COMMON = "patient reports since yesterday denies known allergy mother present mild severe onset sudden night work".split()

if __name__ == "__main__":
    rnd = random.Random(41)
    rows = []
    for i in range(1600):
        dept = rnd.choice(list(SYMPTOMS))
        words = rnd.choices(COMMON, k=rnd.randint(4, 12))
        for _ in range(rnd.randint(2, 4)):
            src = dept if rnd.random() < 0.85 else rnd.choice(list(SYMPTOMS))
            words.insert(rnd.randrange(len(words)), rnd.choice(SYMPTOMS[src]))
        text = " ".join(words)
        if rnd.random() < 0.3:
            text += f" BP {rnd.randint(100, 160)}/{rnd.randint(60, 95)} HR {rnd.randint(55, 120)}"
        rows.append({"id": f"n{i:05d}", "text": text, "dept": dept})
    for i in (437, 911, 1388):          # vitals only, filled in by the nurse
        rows[i]["text"] = f"{rnd.randint(100, 150)}/{rnd.randint(60, 90)} {rnd.randint(60, 110)} {rnd.uniform(36.2, 38.9):.1f}"
    with open("notes.jsonl", "w") as f:
        for r in rows:
            f.write(json.dumps(r) + "\n")
