"""Codebooks inside compiled steps: tables whose nearest row is chosen for each vector and taken in its place."""
