"""PPO's learner (Schulman et al. 2017; details after Huang et al. 2022).

A decision's advantage continues at the same seat's next decision in that game.
"""

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext

import numpy as np
import torch
from torch import Tensor

from ludus import machine
from ludus.algos import Phase
from ludus.algos.cuda_graph import (
    CudaGraph,
    device_settings,
    fused,
    joined,
    load_optimiser,
    rate_of,
    recorded_updates,
    set_precision,
    set_rate,
)
from ludus.algos.optimisers import Adam
from ludus.algos.ppo import STRETCH, Config
from ludus.algos.ppo.advantages import advantages, stretches
from ludus.algos.ppo.batch import Batch, column
from ludus.algos.ppo.device_advantages import device_advantages
from ludus.algos.ppo.fused_loss import Loss
from ludus.algos.ppo.known_gradient import KnownGradient
from ludus.algos.ppo.log_prob import log_prob
from ludus.algos.ppo.minibatches import ManyFirst, shuffled
from ludus.algos.ppo.plain_gradient import PlainGradient, one_torch_thread
from ludus.algos.ppo.plain_passes import PlainPasses
from ludus.algos.ppo.second_look import LOOKED, SecondLook
from ludus.algos.ppo.stacks import stacked
from ludus.core.block import Block
from ludus.core.spec import Spec, image_shape
from ludus.nets.afterstates import AfterstateHead
from ludus.nets.net import Net

TOGETHER = 32
"""Updates that are recorded as one graph: between them Python would wait for the threads that play."""
SMALL = 1_000_000
"""Up to this many parameters we use our own Adam step, which is single-threaded."""
TRAINED_COUNT = 1_000_000
"""Decisions that the statistics of trained weights count as."""


class PpoLearner:
    """Owns the network and its optimiser; turns blocks into updates."""

    def __init__(self, spec: Spec, net: Net, config: Config, device: str = "cpu") -> None:
        self.spec, self.net, self.config, self.device = spec, net.to(device), config, torch.device(device)
        self.on_gpu = self.device.type == "cuda"
        set_precision(self.device)
        self._parameters = list(self.net.parameters())
        self._flat = joined(self._parameters)
        settings = device_settings(config.learning_rate, self.device)
        self.optimiser = Adam([self._flat], eps=1e-5, **settings)
        self.phase: Phase = lambda name: nullcontext()
        self.cancelled: Callable[[], bool] = lambda: False
        self.progress = 0.0
        self.rate_scale = 1.0  # smaller after a training was rolled back
        self._seen_values = 0
        self._obs_count = 1e-4
        self._entropy_weight = torch.tensor(config.entropy_coef, device=device)
        self._teacher_weight = torch.tensor(config.teacher_coef, device=device)
        self._view = "planes" if spec.stack else "obs"
        columns = ["frames" if spec.stack else "obs", "legal", "action", "logp", "value"]
        columns += ["teacher"] if config.teacher else []
        columns += ["memory", "fresh"] if net.cell else []
        self._batch = Batch(spec, columns, self.device)
        self._picked_loss = self._eager_loss
        self._many_first = None
        if self.on_gpu and isinstance(self.net.policy, AfterstateHead) and not net.cell:
            self._many_first = ManyFirst(self.net.policy.afterstates)
        self._second_look = SecondLook(self.net, self._some, self._many_first)
        self._forget_graphs()
        torch.get_num_threads()  # before threads of ours set theirs
        self._threads = ThreadPoolExecutor(machine.usable_cores(), initializer=one_torch_thread)
        self._plain = self._plain_gradient()

    def _plain_gradient(self) -> PlainGradient | None:
        if self.on_gpu or not PlainPasses.possible(self.net):
            return None
        assert self._flat.grad is not None
        return PlainGradient(self.net, self._flat.grad, self._threads)

    def learn(self, blocks: list[Block], off_policy: bool) -> dict[str, float]:
        """One update from finished blocks. off_policy: an older policy than ours played them.

        What an older policy played counts by how likely it still is, and the ratio that is clipped starts at
        the policy we have now (decoupled PPO, Hilton et al. 2021). With a ratio to the older policy, a third
        of all decisions was clipped in a training on a GPU.
        """
        with self.phase("gathering"):
            data = self._gather(blocks)
        with self.phase("looking"):
            if self.net.normalises:
                self._track_observations(data["obs"])
            value, logp = self._look(data) if off_policy else (data["value"], data["logp"])
        rho = torch.exp(logp - data["logp"]) if off_policy else torch.ones_like(value)
        with self.phase("advantages"):
            adv, known = self._advantages(blocks, value, rho)
        weight = rho.clamp_max(1)
        target = value + weight * adv
        known_target, known_adv = target[known], adv[known]
        self._track_values(known_target)
        explained = 1 - (target - value)[known].var() / known_target.var().clamp_min(1e-8)
        data["adv"].copy_(weight * (adv - known_adv.mean()) / (known_adv.std() + 1e-8))
        data["logp"].copy_(logp)
        data["target"].copy_(target)
        data["known"].copy_(known)
        with self.phase("optimising"):
            metrics = self._epochs(data, self._stretches(blocks) if self.net.cell else None)
        metrics["value/explained"] = float(explained)
        metrics["policy/lag_ratio"] = float((rho - 1).abs().mean())
        return metrics

    def _forget_graphs(self) -> None:
        """What was recorded knows tensors that are gone."""
        self._updates: dict[int, CudaGraph[Tensor]] = {}
        self._picks = torch.empty(0)
        self._many: int | None = None  # decisions of a minibatch that may have many options; None: all
        self._second_look.forget()
        self._device_advantages: CudaGraph[tuple[Tensor, Tensor]] | None = None

    def _gather(self, blocks: list[Block]) -> dict[str, Tensor]:
        total = sum(block.decisions for block in blocks)
        if total > self._batch.room:
            self._batch.make_room(total)
            self._forget_graphs()
        return self._batch.gather(blocks)

    def _look(self, data: dict[str, Tensor]) -> tuple[Tensor, Tensor]:
        """What we expect of all decisions, and our log-probabilities of them."""
        if self.on_gpu and len(data["adv"]) == self._batch.room:
            return self._second_look.replay(self._batch.memory)
        return self._second_look.look(data, LOOKED if self.on_gpu else 512 if self.net.images else 4096)

    def _some(
        self, data: dict[str, Tensor], pick: slice | Tensor
    ) -> tuple[Tensor, Tensor, Tensor, Tensor | None]:
        memory = data["memory"][pick] if self.net.cell else None
        return self._seen(data, data[self._view][pick]), data["legal"][pick], data["action"][pick], memory

    def _seen(self, data: dict[str, Tensor], some: Tensor) -> Tensor:
        """Observations of some decisions, of which `_view` is given.

        On a CPU, convolutions learn 1.6 times as fast if channels come last in memory.
        """
        obs = stacked(data["frames"], some) if self.spec.stack else some
        planes_first = self.net.images and obs.shape[1:] == image_shape(self.spec.obs_shape)
        return obs.contiguous(memory_format=torch.channels_last) if planes_first else obs

    def _advantages(self, blocks: list[Block], value: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
        same = len({(block.steps, block.rows) for block in blocks}) == 1
        if self.on_gpu and same and len(value) == self._batch.room:
            return self._advantages_on_device(blocks, value, rho)
        values, rhos = value.cpu().numpy(), rho.cpu().numpy()
        adv, known = np.empty_like(values), np.empty(len(values), bool)
        starts = np.cumsum([0] + [block.decisions for block in blocks[:-1]])

        def one(block: Block, at: int) -> None:
            shape, part = (block.steps, block.rows), slice(at, at + block.decisions)
            advantages(
                values[part].reshape(shape), rhos[part].reshape(shape), block["seat"], block["reward"],
                block["ended"], block["bootstrap"], self.config.gamma, self.config.gae_lambda,
                adv[part].reshape(shape), known[part].reshape(shape),
            )  # fmt: skip

        list(self._threads.map(one, blocks, starts))
        return torch.from_numpy(adv).to(self.device), torch.from_numpy(known).to(self.device)

    def _advantages_on_device(self, blocks: list[Block], value: Tensor, rho: Tensor) -> tuple[Tensor, Tensor]:
        """Recorded, for blocks that are always as many and as large."""
        shape = (len(blocks), blocks[0].steps, blocks[0].rows)
        inputs = {"value": value.reshape(shape), "rho": rho.reshape(shape)}
        for name in ("seat", "reward", "ended", "bootstrap"):
            parts = [column(block, name) for block in blocks]
            inputs[name] = torch.stack([part.to(self.device, non_blocking=True) for part in parts])
        if self._device_advantages is None:
            room = {name: tensor.clone() for name, tensor in inputs.items()}
            self._room, config = room, self.config
            self._device_advantages = CudaGraph(
                lambda: device_advantages(
                    **{**room, "seat": room["seat"].long()}, gamma=config.gamma, lam=config.gae_lambda
                )
            )
        for name, tensor in inputs.items():
            self._room[name].copy_(tensor)
        adv, known = self._device_advantages.replay()
        return adv.flatten(), known.flatten()

    def _stretches(self, blocks: list[Block]) -> Tensor:
        """Decisions that follow each other in one seat, int64 [C, STRETCH]; -1 where there are no more."""
        found, at = [], 0
        for block in blocks:
            most = block.rows * (block.steps // STRETCH + self.spec.seats)
            out = np.empty((most, STRETCH), np.int64)
            found.append(out[: stretches(block["seat"], STRETCH, at, out)])
            at += block.decisions
        return torch.from_numpy(np.concatenate(found)).to(self.device)

    def _minibatches(self, data: dict[str, Tensor], runs: Tensor | None) -> Tensor:
        """Decisions to learn from together, int64 [M, size], in a new order; with memory, whole stretches."""
        if self._many_first:
            picks, many = self._many_first.minibatches(data["obs"], self.config.minibatch)
            if many != self._many:
                self._many, self._updates, self._picked_loss = many, {}, self._eager_loss
            return picks
        items = torch.arange(len(data["adv"]), device=self.device).unsqueeze(1) if runs is None else runs
        return shuffled(items, self.config.minibatch)

    def _epochs(self, data: dict[str, Tensor], runs: Tensor | None) -> dict[str, float]:
        config = self.config
        self._entropy_weight.fill_(config.entropy_coef * self._decayed(config.entropy_coef_end))
        left = 1 - self.progress / config.teacher_until if config.teacher_until else 0.0
        self._teacher_weight.fill_(config.teacher_coef * max(0.0, left))
        set_rate(
            self.optimiser, self.rate_scale * config.learning_rate * self._decayed(config.learning_rate_end)
        )
        sums, last = torch.zeros(6, device=self.device), torch.zeros(6, device=self.device)
        updates = epochs = 0
        for _ in range(config.epochs):
            last.zero_()
            for told, count in self._all_updates(data, self._minibatches(data, runs)):
                last += told
                updates += count
                if self.cancelled():
                    break
            sums += last
            epochs += 1
            if self.cancelled():
                break
            if config.target_kl and float(last[3]) * epochs / updates > config.target_kl:
                break
        policy, value, entropy, kl, clipped, norm = (sums / updates).tolist()
        return {
            "losses/policy": policy, "losses/value": value, "policy/entropy": entropy, "policy/kl": kl,
            "policy/clipped": clipped, "losses/grad_norm": norm, "learner/epochs": epochs,
            "learner/learning_rate": rate_of(self.optimiser),
        }  # fmt: skip

    def _all_updates(self, data: dict[str, Tensor], picks: Tensor) -> Iterator[tuple[Tensor, int]]:
        """What updates tell, in sums, and of how many. picks: [M, size]"""
        if not self.on_gpu:
            for pick in picks:
                yield self._update(data, pick), 1
            return
        together = min(TOGETHER, len(picks))
        if self._picks.shape[1:] != picks.shape[1:]:
            self._updates = {}
            self._picks = torch.zeros(TOGETHER, picks.shape[1], dtype=torch.long, device=self.device)
        at = 0
        while at < len(picks):
            count = together if len(picks) - at >= together else 1
            self._picks[:count].copy_(picks[at : at + count])
            if self._picked_loss == self._eager_loss and not self.net.cell:
                self._picked_loss = fused(self._eager_loss, self._batch.memory, self._picks[0])
            if count not in self._updates:
                self._updates[count] = recorded_updates(
                    self.net,
                    self.optimiser,
                    lambda number: self._update(self._batch.memory, self._picks[number]),
                    count,
                )
            yield self._updates[count].replay(), count
            at += count

    def _update(self, data: dict[str, Tensor], pick: Tensor) -> Tensor:
        """One step of the optimiser; policy, value, entropy, kl, clipped and gradient norm."""
        if self.on_gpu:
            loss, told = self._picked_loss(data, pick)
            self._differentiate(loss)
        elif self._plain:
            told = self._plain(data, pick, self._cpu_loss())
        else:
            told = self._cpu_gradient(*self._looked_up(data, pick))
        told[5] = self._step()
        return told

    def _step(self) -> Tensor | float:
        """One optimiser step; the gradient norm before clipping."""
        limit = self.config.max_grad_norm
        if not self.on_gpu and self._flat.numel() <= SMALL:
            return self.optimiser.clipped_step(limit)
        norm = torch.nn.utils.clip_grad_norm_([self._flat], limit)
        self.optimiser.step()
        return norm

    def _looked_up(self, data: dict[str, Tensor], pick: Tensor) -> tuple[dict[str, Tensor], Tensor, Tensor]:
        """The columns of a minibatch, and what the network says to it: logits before masking, and values."""
        net, at = self.net, pick.clamp_min(0)
        mini = {name: column.index_select(0, at) for name, column in data.items() if name != "frames"}
        mini["obs"] = self._seen(data, mini[self._view])
        if net.cell:
            mini["known"] = mini["known"] * (pick >= 0)
            starts, fresh = mini["memory"][::STRETCH], mini["fresh"].reshape(-1, STRETCH)
            logits, value = net.unroll(mini["obs"], starts, fresh)
        else:
            logits, value = net.raw(mini["obs"], many=self._many)
        mini["share"] = mini["known"] / mini["known"].sum().clamp_min(1)
        return mini, logits, value

    def _eager_loss(self, data: dict[str, Tensor], pick: Tensor) -> tuple[Tensor, Tensor]:
        return self._loss(*self._looked_up(data, pick))

    def _differentiate(self, loss: Tensor) -> None:
        grads = torch.autograd.grad(loss, self._parameters)
        torch.cat([grad.reshape(-1) for grad in grads], out=self._flat.grad)

    def _cpu_gradient(self, mini: dict[str, Tensor], logits: Tensor, value: Tensor) -> Tensor:
        """Writes the gradient; what an update reports."""
        if self.net.log_std is not None:
            loss, told = self._loss(mini, logits, value)
            self._differentiate(loss)
            return told
        told, *gradients = self._cpu_loss()(mini, logits.detach(), value.detach())
        self._differentiate(KnownGradient.apply(logits, value, *gradients))
        return told

    def _cpu_loss(self) -> Loss:
        config = self.config
        return Loss(
            config.clip_range, config.value_coef, float(self.net.value_std), float(self._entropy_weight),
            float(self._teacher_weight) if config.teacher else None,
        )  # fmt: skip

    def _loss(self, mini: dict[str, Tensor], logits: Tensor, value: Tensor) -> tuple[Tensor, Tensor]:
        """The loss, and what an update reports of it."""
        config, net, share = self.config, self.net, mini["share"]
        logits = net.masked(logits, mini["legal"])
        logp, entropy = log_prob(net, logits, mini["action"])
        log_ratio = logp - mini["logp"]
        ratio = log_ratio.exp()
        clipped = ratio.clamp(1 - config.clip_range, 1 + config.clip_range)
        policy_loss = -(torch.min(ratio * mini["adv"], clipped * mini["adv"]) * share).sum()
        value_loss = (((value - mini["target"]) / net.value_std).square() * share).sum() / 2
        mean_entropy = (entropy * share).sum()
        loss = policy_loss + config.value_coef * value_loss - self._entropy_weight * mean_entropy
        if config.teacher:  # imitate first, then improve on it: from scratch, good boards are never met
            loss = loss - self._teacher_weight * (log_prob(net, logits, mini["teacher"])[0] * share).sum()
        kl = ((ratio - 1 - log_ratio) * share).sum()  # low-variance estimate (Schulman 2020)
        outside = (((ratio - 1).abs() > config.clip_range).float() * share).sum()
        return loss, torch.stack([policy_loss, value_loss, mean_entropy, kl, outside, outside]).detach()

    def _decayed(self, end: float) -> float:
        return 1 - (1 - end) * self.progress

    def _track_values(self, target: Tensor) -> None:
        """Values are learned in units of their own spread, whatever a game's points are worth."""
        self._seen_values += 1
        new = max(0.02, 1 / self._seen_values)
        mean = self.net.value_mean + new * (target.mean() - self.net.value_mean)
        std = self.net.value_std + new * (target.std().clamp_min(1e-2) - self.net.value_std)
        self.net.rescale_value(mean, std)

    def _track_observations(self, obs: Tensor) -> None:
        """Running mean and spread of every number observed (Chan et al. 1979)."""
        flat = self.net.numbers(obs)
        count, mean = len(flat), flat.mean(0)
        var = (flat - mean).square_().mean(0)  # a third of the time that torch's own takes on a CPU
        total = self._obs_count + count
        delta = mean - self.net.obs_mean
        kept = self.net.obs_std.square() * self._obs_count + var * count
        spread = kept + delta.square() * self._obs_count * count / total
        self.net.obs_mean += delta * count / total
        self.net.obs_std.copy_((spread / total).sqrt().clamp_min(1e-4))
        self._obs_count = total

    def start_trained(self) -> None:
        """Its statistics of observations and values count, so that a first batch does not replace them."""
        self._obs_count, self._seen_values = TRAINED_COUNT, TRAINED_COUNT

    def state_dict(self) -> dict:
        state = {
            "net": self.net.state_dict(), "optimiser": self.optimiser.state_dict(), "progress": self.progress,
            "seen_values": self._seen_values, "obs_count": self._obs_count, "rate_scale": self.rate_scale,
            "rng": torch.get_rng_state(),
        }  # fmt: skip
        if self.on_gpu:
            state["rng_gpu"] = torch.cuda.get_rng_state(self.device)
        if self._many_first:
            state["many_share"] = self._many_first.share
        return state

    def load_state_dict(self, state: dict) -> None:
        self.net.load_state_dict(state["net"])
        load_optimiser(self.optimiser, state["optimiser"])
        self.progress, self._seen_values = state["progress"], state["seen_values"]
        self._obs_count, self.rate_scale = state["obs_count"], state["rate_scale"]
        torch.set_rng_state(state["rng"])
        if self.on_gpu and "rng_gpu" in state:
            torch.cuda.set_rng_state(state["rng_gpu"], self.device)
        if self._many_first:
            self._many_first.share = state.get("many_share", 0.0)
        self._forget_graphs()  # they know the optimiser's old tensors
        self._batch.make_room(0)  # what `--inference auto` measured may have been larger than what comes
