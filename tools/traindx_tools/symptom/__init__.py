"""The stated symptom: read from a person's words, looked up in what was recorded, answered."""
