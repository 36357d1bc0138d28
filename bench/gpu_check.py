"""What only a GPU can show of learners and their streams, checked; needs CUDA, one minute.

`gpu_check.py cpu` tries the script itself without a GPU: what is about recorded updates is trivial there.
"""

import dataclasses
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from ludus import algos, games
from ludus.algos import Opponent, Plan, alphazero, ppo
from ludus.algos.alphazero.actor import SelfPlay
from ludus.algos.alphazero.evaluators import DeviceNetwork, PlayingCopies
from ludus.algos.alphazero.learner import AlphaZeroLearner
from ludus.algos.cuda_graph import copied
from ludus.algos.ppo.central import DeviceBlock, DevicePolicy, Playing
from ludus.algos.ppo.learner import PpoLearner
from ludus.config import resolve
from ludus.core import seeds
from ludus.core.block import Block, Column
from ludus.core.conformance import Play, legal_of, observation_of
from ludus.core.spec import Part, Spec
from ludus.core.table import Table
from ludus.games import blokus
from ludus.nets import NetConfig
from ludus.nets.board import BoardNet
from ludus.nets.net import Net
from ludus.processes import make_context
from ludus.search import SearchConfig, list_legal
from ludus.store.run import read_config, read_weights
from ludus.training.build import flat_weights
from ludus.training.pools import PoolPlan
from ludus.training.pools.central import CentralPool
from ludus.training.seating import Seating
from ludus.training.weights import Past
from ludus.training.worker import make_actor

GAME = games.open("connect4").native("checked")
RULES = GAME.rules
BOARD = NetConfig(channels=16, blocks=2)
PLAIN = NetConfig(hidden=(64,))
SEARCH = alphazero.Config(search=SearchConfig(4, "gumbel", 1.0, width=8), minibatch=32, learning_starts=32)
BUSY = 200_000_000
"""Clock cycles for which a stream is kept busy: a tenth of a second."""
failed: list[str] = []


def check(what: str, right: bool, seen: Any = "") -> None:
    print(f"{'ok' if right else 'WRONG':5} {what} {seen}", flush=True)
    if not right:
        failed.append(what)


# ---- learners: what they are loaded from must not change how they learn


def ppo_plan(rows: int, steps: int) -> Plan:
    return Plan("connect4", {}, "ppo", ppo.Config(), PLAIN, rows, steps, seed=1)


def search_plan(net: NetConfig, rows: int, steps: int, workers: int = 1) -> Plan:
    return Plan("connect4", {}, "alphazero", SEARCH, net, rows, steps, seed=1, workers=workers)


def ppo_columns(spec: Spec) -> list[Column]:
    return algos.find("ppo").columns(resolve("connect4", algo="ppo"), spec)


def no_past() -> Past:
    """Of games of the policy with itself alone."""
    return Past(make_context(), np.zeros(1, np.float32))


def nobody(table: Table, slot: int) -> Opponent:
    raise AssertionError("there are no past selves here")


def ppo_block() -> Block:
    actor, _ = make_actor(ppo_plan(32, 32), 0, no_past(), np.zeros(3, np.int64))
    block = Block(ppo_columns(RULES.spec), 32, 32)
    torch.manual_seed(0)
    actor.load(flat_weights(Net(RULES.spec, PLAIN)), 0.0)
    actor.fill(block)
    return block


def search_block() -> Block:
    def flat(states: Any, actions: Any, counts: Any, rng: Any, logits: Any, values: Any) -> None:
        logits[:], values[:] = 0, 0

    plan, table = search_plan(BOARD, 8, 16), GAME.table(8)
    seating = Seating(plan, 0, GAME, table, no_past(), nobody)
    block = Block(alphazero.record(SEARCH, RULES.spec), 16, 8)
    SelfPlay(plan, 0, table, seating, np.zeros(3, np.int64), flat).fill(block)
    return block


def ppo_learner(device: str) -> PpoLearner:
    torch.manual_seed(0)
    config = ppo.Config(learning_rate=1e-4, learning_rate_end=1.0, minibatch=256, target_kl=0.0, epochs=1)
    return PpoLearner(RULES.spec, Net(RULES.spec, PLAIN), config, device)


def search_learner(device: str) -> AlphaZeroLearner:
    torch.manual_seed(0)
    return AlphaZeroLearner(RULES, BOARD, SEARCH, device)


def movement(learner: Any, block: Block, scale: float) -> float:
    """How far one round of learning moves the policy's head, with a share of the learning rate."""
    learner.rate_scale = scale
    head = [tensor for name, tensor in learner.net.named_parameters() if name.startswith("policy.")]
    before = [tensor.detach().clone() for tensor in head]
    told = learner.learn([block], off_policy=False)
    rate = learner.config.learning_rate * scale
    if abs(told["learner/learning_rate"] - rate) > 1e-3 * rate:
        failed.append(f"the rate that is told is {told['learner/learning_rate']}, not {rate}")
    return sum(float((new.detach() - old).abs().sum()) for new, old in zip(head, before, strict=True))


def check_rates(name: str, learner: Any, block: Block) -> None:
    """Rates that change after an update was recorded are the ones that are used."""
    whole, half, none, again = (movement(learner, block, scale) for scale in (1.0, 0.5, 0.0, 1.0))
    seen = f"moved {whole:.3g}, {half:.3g}, {none:.3g}, {again:.3g}"
    check(f"{name}: rates 1, 1/2, 0, 1", none == 0 and whole > 0 < again and 0.1 < half / whole < 0.95, seen)


def check_learner(name: str, make: Callable[[str], Any], block: Block, device: str) -> None:
    trained = {where: make(where) for where in ("cpu", device)}
    for where, learner in trained.items():
        check_rates(f"{name} on {where}", learner, block)
    for source, learner in trained.items():
        for target in (device, "cpu"):
            fresh = make(target)
            fresh.load_state_dict(copied(learner.state_dict()))
            check_rates(f"{name} from a {source} checkpoint on {target}", fresh, block)
    learner = trained[device]
    learner.load_state_dict(copied(learner.state_dict()))  # as a rollback does
    check_rates(f"{name} rolled back", learner, block)


# ---- streams: what plays sees whole weights, and the newest


def check_policy(device: torch.device) -> None:
    """Weights that are still being changed when a block starts are waited for."""
    net = Net(RULES.spec, PLAIN).to(device)
    playing = Playing(net)
    policy = DevicePolicy([playing], 16, device, seed=1)
    block = DeviceBlock(ppo_columns(RULES.spec), 4, 16, device, 0)
    turn, right = GAME.table(16).reset(1), []
    for favourite in range(7):
        policy.start(block)
        with torch.cuda.stream(policy.stream):
            policy.act(turn.obs, turn.legal, None, 1.0, None)  # the counter stands at 1 now
        if device.type == "cuda":
            torch.cuda._sleep(BUSY)
        with torch.no_grad():
            net.policy.weight.zero_()
            net.policy.bias.zero_()
            net.policy.bias[favourite] = 50.0
        playing.update(net)
        policy.start(block)
        with torch.cuda.stream(policy.stream):
            actions = policy.act(turn.obs, turn.legal, None, 1.0, None)[0].copy()
        kept = block.tensors["action"][0].cpu().numpy()
        right.append((actions == favourite).all() and (kept == favourite).all() and int(policy.at) == 1)
    check("a block starts with the newest weights, at its beginning", all(right), right)


def check_vectors(device: torch.device) -> None:
    """Continuous actions: played in a recorded graph, and learned from in another."""
    box = (np.full(2, -1, np.float32), np.full(2, 1, np.float32))
    spec = Spec("vectors", 1, 0, (Part("obs", (3,), np.dtype(np.float32)),), zero_sum=False, box=box)
    learner = PpoLearner(spec, Net(spec, PLAIN), ppo.Config(minibatch=16, epochs=1), str(device))
    policy, block = (
        DevicePolicy([Playing(learner.net)], 16, device, seed=1),
        DeviceBlock(ppo_columns(spec), 8, 16, device, 0),
    )
    policy.start(block)
    numbers = np.random.default_rng(0).normal(size=(16, 3)).astype(np.float32)
    with torch.cuda.stream(policy.stream):
        for _ in range(8):
            policy.act(numbers, policy.legal.numpy(), None, 1.0, None)
    block["reward"][:] = np.random.default_rng(1).normal(size=block["reward"].shape)
    block["ended"][:] = True
    losses = learner.learn([block], off_policy=False)
    check("vectors are played and learned", all(np.isfinite(list(losses.values()))), losses["policy/kl"])


def check_afterstates(device: torch.device) -> None:
    """A GPU scores all options of a decision, a CPU only those that there are."""
    rules = games.open("ofc").native("checked").rules
    net = Net(rules.spec, NetConfig(hidden=(64,), head="afterstates"))
    farthest = 0.0
    for states, _ in Play(rules, rows=256).decisions(10):
        obs, legal = (
            torch.from_numpy(observation_of(rules, states)),
            torch.from_numpy(legal_of(rules, states)),
        )
        with torch.no_grad():
            right = net.cpu()(obs, legal)[0]
            found = net.to(device)(obs.to(device), legal.to(device))[0].cpu()
        farthest = max(farthest, float((found - right).abs().max()))
    check("afterstates are scored alike", farthest < 0.01, farthest)


def check_central(what: str, name: str, net: NetConfig, device: torch.device) -> None:
    """What a recorded graph plays is what the learner finds in the block, and learns from."""
    game, find = games.open(name).native("checked"), algos.find("ppo")
    config = dataclasses.replace(resolve(name, algo="ppo"), net=net)
    plan = dataclasses.replace(ppo_plan(64, 16), game=name, net=net)
    settings = ppo.Config(minibatch=256, epochs=1)
    learner = PpoLearner(game.spec, Net(game.spec, net), settings, str(device))
    central = find.make_central(plan, game, learner.net, find.columns(config, game.spec), False)
    table = game.table(plan.rows)
    actor, (block,) = central.add(0, table, Seating(plan, 0, game, table, no_past(), nobody))
    actor.fill(block)
    data = learner._gather([block])
    value, logp = learner._look(data)
    apart = max(float((mine - data[name]).abs().max()) for name, mine in (("value", value), ("logp", logp)))
    losses = learner.learn([block], off_policy=True)
    right = (
        apart < 1e-2
        and np.isfinite(list(losses.values())).all()
        and (not net.memory or block["memory"].any())
    )
    check(f"{what}: what is played is learned from", bool(right), f"at most {apart:.2g} apart")


def evaluated(network: Any, states: np.ndarray) -> np.ndarray:
    n = len(states)
    actions, counts = np.zeros((n, RULES.spec.actions), np.int32), np.zeros(n, np.int32)
    list_legal(RULES, states, actions, counts)
    logits, values = np.zeros(actions.shape, np.float32), np.zeros((n, 2), np.float32)
    network(states, actions, counts, seeds.rows(0, n), logits, values)
    return np.concatenate([logits.ravel(), values.ravel()])


def check_publish(device: torch.device, rounds: int = 300) -> None:
    """Evaluations see one set of weights or the other, never a mixture."""
    net, rng = BoardNet(RULES.spec, NetConfig(channels=64, blocks=8)).to(device), torch.Generator()
    sets = []
    for seed in range(2):
        rng.manual_seed(seed)
        sets.append([0.05 * torch.randn(p.shape, generator=rng).to(device) for p in net.parameters()])
    plan, vector = search_plan(net.config, 64, 4, workers=2), flat_weights(net)
    columns = alphazero.record(SEARCH, RULES.spec)
    pool = CentralPool(PoolPlan(plan, columns, net, vector, make_context()))
    states = RULES.blank(64)
    RULES.deal(states, seeds.rows(0, 64))
    networks = [actor.network for actor in pool._actors]

    def publish(number: int) -> None:
        with torch.no_grad():
            for parameter, values in zip(net.parameters(), sets[number % 2], strict=True):
                parameter.copy_(values)
        pool.publish(vector, number, 0.0)

    whole, seen, stop = [], [], threading.Event()
    for number in range(2):
        publish(number)
        whole.append(evaluated(networks[0], states))
    apart = float(np.abs(whole[0] - whole[1]).max())

    def evaluate(network: Any) -> None:
        while not stop.is_set():
            answer = evaluated(network, states)
            seen.append(min(float(np.abs(answer - one).max()) for one in whole))

    threads = [threading.Thread(target=evaluate, args=(network,)) for network in networks]
    for thread in threads:
        thread.start()
    for number in range(rounds if device.type == "cuda" else 20):
        publish(number)
    stop.set()
    for thread in threads:
        thread.join()
    told = f"{len(seen)} answers, at most {max(seen):.2g} from one of two that are {apart:.2g} apart"
    check("searches see whole weights", max(seen) < apart / 20, told)


def check_precision(device: torch.device, rows: int = 192) -> None:
    """The champion of Blokus in half the precision chooses and values as it does in float32, in batches of
    all sizes."""
    game = games.open("blokus").native("checked")
    rules, folder = game.rules, Path(blokus.__file__).parent / "champion"
    weights, config = read_weights(folder), read_config(folder)
    net = BoardNet(rules.spec, config.net)
    net.load_state_dict({name: torch.from_numpy(array) for name, array in weights.items()})
    whole = DeviceNetwork(rules, PlayingCopies(net), rows)  # float32 on the CPU
    net.to(device).to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    copies = PlayingCopies(net)
    if device.type == "cuda":
        obs = np.zeros((rows, *rules.spec.obs_shape), rules.spec.obs_dtype)
        copies.fuse(torch.from_numpy(obs).to(device))
    states = np.concatenate([some[:8] for some, _ in Play(rules, rows=8).decisions(24)])
    network, parts = DeviceNetwork(rules, copies, rows), np.split(states, [1, 65, 130])
    (policy, value), (half_policy, half_value) = (
        map(np.concatenate, zip(*(policy_and_value(rules, one, some) for some in parts), strict=True))
        for one in (whole, network)
    )
    apart = np.abs(policy - half_policy).sum(1) / 2  # total variation
    worth = np.abs(value - half_value).max(1)
    seen = (
        f"policy {apart.mean():.2g} (at most {apart.max():.2g}), value {worth.mean():.2g} ({worth.max():.2g})"
    )
    check("half the precision is enough to play", max(apart.mean(), worth.mean()) < 1e-2, seen)


def policy_and_value(rules: Any, network: Any, states: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """[N, A] and [N, seats]"""
    n = len(states)
    actions, counts = np.zeros((n, rules.spec.actions), np.int32), np.zeros(n, np.int32)
    list_legal(rules, states, actions, counts)
    logits, values = np.zeros(actions.shape, np.float32), np.zeros((n, rules.spec.seats), np.float32)
    network(states, actions, counts, seeds.rows(0, n), logits, values)
    logits[np.arange(logits.shape[1]) >= counts[:, None]] = -np.inf
    policy = np.exp(logits - logits.max(1, keepdims=True))
    return policy / policy.sum(1, keepdims=True), values


def main() -> None:
    device = sys.argv[1] if len(sys.argv) > 1 else "cuda"
    if device == "cuda" and not torch.cuda.is_available():
        sys.exit("bench/gpu_check.py needs a CUDA GPU; `gpu_check.py cpu` tries the script without one")
    print("torch", torch.__version__, torch.cuda.get_device_name() if device == "cuda" else "on a CPU")
    ppo_learner(device)
    precision = torch.get_float32_matmul_precision()
    check("TF32 on a GPU only", precision == ("high" if device == "cuda" else "highest"), precision)
    check_learner("ppo", ppo_learner, ppo_block(), device)
    check_learner("alphazero", search_learner, search_block(), device)
    ppo_learner(device)  # a learner on the CPU was the last to set the precision
    check_policy(torch.device(device))
    check_vectors(torch.device(device))
    check_afterstates(torch.device(device))
    check_central("memory", "connect4", NetConfig(hidden=(32,), memory=16), torch.device(device))
    check_central("afterstates", "ofc", NetConfig(hidden=(64,), head="afterstates"), torch.device(device))
    check_publish(torch.device(device))
    check_precision(torch.device(device))
    print(f"WRONG: {'; '.join(failed)}" if failed else "all is well")
    sys.exit(bool(failed))


if __name__ == "__main__":
    main()
