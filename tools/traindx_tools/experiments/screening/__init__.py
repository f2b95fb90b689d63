"""Which of everything that can be changed carries the symptom: each setting, file and stage, one at a time."""
