"""What the newest policy says of decisions that an older one made; recorded on a GPU if there are always as
many."""

from collections.abc import Callable

import torch
from torch import Tensor

from ludus.algos.cuda_graph import CudaGraph, fused
from ludus.algos.ppo.log_prob import log_prob
from ludus.algos.ppo.minibatches import ManyFirst
from ludus.nets.net import Net

LOOKED = 1 << 16
"""Largest forward pass over a batch on a GPU, in decisions."""
Data = dict[str, Tensor]
Seen = tuple[Tensor, Tensor, Tensor, Tensor | None]
"""Observations, masks, actions, memories."""
Look = Callable[[Tensor, Tensor, Tensor, Tensor | None, int | None], tuple[Tensor, Tensor]]
"""(*Seen, `many`) -> values, log-probabilities of the actions."""


class SecondLook:
    def __init__(
        self, net: Net, seen: Callable[[Data, slice | Tensor], Seen], many_first: ManyFirst | None
    ) -> None:
        """seen: some decisions of a batch"""
        self.net, self.seen, self.many_first = net, seen, many_first
        self.forget()

    def forget(self) -> None:
        """The batch's memory is another one, or the weights'."""
        self._graph: CudaGraph[tuple[Tensor, Tensor]] | None = None
        self._many: int | None = None
        self._order = torch.empty(0)

    @torch.no_grad()
    def look(self, data: Data, size: int) -> tuple[Tensor, Tensor]:
        """Values and log-probabilities, [N]. size: of the parts that are looked at one by one"""
        return self._by_parts(data, _parts(len(data["adv"]), size), self._at_some, None)

    @torch.no_grad()
    def replay(self, memory: Data) -> tuple[Tensor, Tensor]:
        """The same of the whole batch's memory, which stays where it is."""
        total = len(memory["adv"])
        # Equal parts if possible, since every other size is compiled too.
        most = min(LOOKED, total)
        size = next((size for size in range(most, most // 4, -1) if total % size == 0), most)
        sorts = self.many_first is not None and total % size == 0
        if self.many_first is not None and sorts:
            picks, many = self.many_first.minibatches(memory["obs"], size)
            if many != self._many:
                self._many, self._graph, self._order = many, None, torch.empty_like(picks.flatten())
            self._order.copy_(picks.flatten())
        if self._graph is None:
            self._graph = self._recorded(memory, size)
        values, logps = self._graph.replay()
        return (self._in_place(values), self._in_place(logps)) if sorts else (values, logps)

    def _recorded(self, memory: Data, size: int) -> CudaGraph[tuple[Tensor, Tensor]]:
        look, many = self._at_some, self._many
        if not self.net.cell:
            look = fused(look, *self.seen(memory, slice(size)), many)
        parts = _parts(len(memory["adv"]), size)
        picks = parts if many is None else [self._order[part] for part in parts]
        return CudaGraph(lambda: self._by_parts(memory, picks, look, many))

    def _by_parts(
        self, data: Data, picks: list[slice] | list[Tensor], look: Look, many: int | None
    ) -> tuple[Tensor, Tensor]:
        values, logps = zip(*(look(*self.seen(data, pick), many) for pick in picks), strict=True)
        return torch.cat(values), torch.cat(logps)

    def _at_some(
        self, obs: Tensor, legal: Tensor, action: Tensor, memory: Tensor | None, many: int | None
    ) -> tuple[Tensor, Tensor]:
        logits, value = self.net(obs, legal, memory, many)
        return value, log_prob(self.net, logits, action)[0]

    def _in_place(self, ordered: Tensor) -> Tensor:
        return torch.empty_like(ordered).index_copy_(0, self._order, ordered)


def _parts(total: int, size: int) -> list[slice]:
    return [slice(start, start + size) for start in range(0, total, size)]
