"""Sweeps: which settings train best. Each trial is an ordinary run; Optuna chooses what is tried next."""
