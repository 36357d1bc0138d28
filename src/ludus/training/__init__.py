"""Training: workers fill blocks, the learner learns from them, the loop ties them together."""
