"""Batch: the columns of the blocks that are learned from together, joined on the learner's device."""

import numpy as np
import torch
from torch import Tensor

from ludus.algos.ppo.stacks import BLANK, places
from ludus.core.block import Block
from ludus.core.spec import Spec
from ludus.nets.parts import as_tensor

LEARNED = ("adv", "target", "known")
"""Columns that the learner itself writes, float32."""


class Batch:
    """Its memory stays where it is, as recorded updates need it, until a larger batch comes."""

    def __init__(self, spec: Spec, columns: list[str], device: torch.device) -> None:
        self.spec, self.columns, self.device = spec, columns, device
        self.memory: dict[str, Tensor] = {}
        self.room = 0  # decisions

    def make_room(self, decisions: int) -> None:
        """Forget everything."""
        self.memory = {name: torch.empty(decisions, device=self.device) for name in LEARNED}
        self.room = decisions

    def gather(self, blocks: list[Block]) -> dict[str, Tensor]:
        """All columns by name, [decisions, ...]; `frames` are those of all blocks, which `planes` number."""
        for name in self.columns:
            self._join(name, [column(block, name).flatten(0, 1) for block in blocks])
        if self.spec.stack:
            self._join("planes", self._planes(blocks))
        total = sum(block.decisions for block in blocks)
        return {name: whole if name == "frames" else whole[:total] for name, whole in self.memory.items()}

    def _join(self, name: str, parts: list[Tensor]) -> None:
        if name == "frames":
            parts = [*parts, torch.zeros_like(parts[0][:1])]  # what blank planes show
        total = sum(map(len, parts))
        if name not in self.memory:
            shape = total, *parts[0].shape[1:]
            self.memory[name] = torch.empty(shape, dtype=parts[0].dtype, device=self.device)
        whole = self.memory[name][:total]
        if all(part.device == whole.device for part in parts):
            torch.cat(parts, out=whole)
            return
        for part, place in zip(parts, whole.split([len(part) for part in parts]), strict=True):
            place.copy_(part, non_blocking=True)

    def _planes(self, blocks: list[Block]) -> list[Tensor]:
        """Which of all frames each decision's stack consists of, int64 [decisions, stack] of each block."""
        stack, padding = self.spec.stack, self.spec.parts[0].padding
        sizes = [(stack - 1 + block.steps) * block.rows for block in blocks]
        found = []
        for block, start in zip(blocks, np.cumsum([0, *sizes]), strict=False):
            own = places(block["ended"], stack, padding).reshape(-1, stack)
            found.append(torch.from_numpy(np.where(own == BLANK, sum(sizes), own + start)))
        return found


def column(block: Block, name: str) -> Tensor:
    """A column as a tensor: on the device already, or mapped from shared memory."""
    tensors = getattr(block, "tensors", {})
    return tensors[name] if name in tensors else as_tensor(block[name])
