"""Algorithms: each file says what a block holds and how a learner turns blocks into better weights."""
