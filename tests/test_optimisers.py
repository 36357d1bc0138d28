"""Our optimisers step as torch's do, and never import torch's compiler."""

import subprocess
import sys

import pytest
import torch

from ludus.algos import optimisers

WITHOUT = """
import sys, torch
from ludus.algos.optimisers import {name}
weights = torch.nn.Parameter(torch.ones(3))
for _ in range(2):
    made = {name}([weights], fused=True)
    weights.sum().backward()
    made.step()
    made.zero_grad()
    made.load_state_dict(made.state_dict())
print("torch" in sys.modules, "torch._dynamo" in sys.modules)
"""
TRAINING = """
import ludus
ludus.train("tictactoe", preset="test", decisions=1, workers="0", eval_every="0", run="run")
print([name for name in ("torch._dynamo", "sympy") if name in sys.modules])
"""


@pytest.mark.parametrize("fused", [False, True])
@pytest.mark.parametrize("name", ["Adam", "AdamW"])
def test_steps_are_those_of_torch(name, fused):
    steps = []
    for kind in (getattr(optimisers, name), getattr(torch.optim, name)):
        weights = torch.nn.Parameter(torch.linspace(-1, 1, 5))
        optimiser = kind([weights], lr=0.1, fused=fused)
        for _ in range(3):
            optimiser.zero_grad()
            (weights**3).sum().backward()
            optimiser.step()
            optimiser.load_state_dict(optimiser.state_dict())
        steps.append(weights.detach().clone())
    assert torch.equal(*steps) and not torch.equal(steps[0], torch.linspace(-1, 1, 5))


def test_a_start_does_not_wait_for_torchs_compiler(tmp_path):
    program = "".join(WITHOUT.format(name=name) for name in ("Adam", "AdamW")) + TRAINING
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["True", "False"] * 2 + ["[]"]
