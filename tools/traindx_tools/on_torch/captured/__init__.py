"""One training call of a model, kept and asked questions on a copy: what does its output depend on?"""
