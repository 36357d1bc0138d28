"""PPO: advantages against the textbook's sums, and a learner that moves the way it should."""

import io
from concurrent.futures import ThreadPoolExecutor
from itertools import islice
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from ludus import algos, games
from ludus.algos.cuda_graph import copied, device_settings, load_optimiser, rate_of, set_rate
from ludus.algos.optimisers import Adam
from ludus.algos.ppo import STRETCH, Config
from ludus.algos.ppo.activations import activate
from ludus.algos.ppo.advantages import advantages, stretches
from ludus.algos.ppo.device_advantages import device_advantages
from ludus.algos.ppo.known_gradient import KnownGradient
from ludus.algos.ppo.learner import PpoLearner
from ludus.algos.ppo.plain_gradient import PlainGradient, one_torch_thread
from ludus.algos.ppo.plain_passes import PlainPasses
from ludus.config import Config as TrainConfig
from ludus.core.block import Block, Column
from ludus.core.conformance import Play, legal_of, observation_of
from ludus.core.spec import Part, Spec
from ludus.nets import NetConfig
from ludus.nets.net import Net
from ludus.nets.products import product

FLOAT32 = np.dtype(np.float32)


def computed(value, rho, seat, reward, ended, bootstrap, gamma, lam) -> tuple[np.ndarray, np.ndarray]:
    """Advantages [T, N], and which of them are known."""
    out, known = np.full(seat.shape, np.nan, np.float32), np.zeros(seat.shape, bool)
    advantages(value, rho, seat, reward, ended, bootstrap, gamma, lam, out, known)
    return out, known


# ---- advantages: the textbook's way, one seat of one game after the other


def games_of_seat(n, s, value, rho, seat, reward, ended, bootstrap):
    """Each game of row n as seat s saw it: its decisions, and what it was worth to the seat afterwards.

    A decision is (step, value, rho, pay until the seat's next decision). What follows the last one is
    worth 0 if the game was over, its bootstrap if it was cut off, and None if it goes on after the block or
    was lost.
    """
    found, decisions = [], []
    for t in range(len(seat)):
        if seat[t, n] == s:
            decisions.append([t, value[t, n], rho[t, n], 0.0])
        if decisions:
            decisions[-1][3] += reward[t, n, s]
        if ended[t, n]:
            if decisions:
                after = bootstrap[t, n, s]
                found.append((decisions, None if np.isnan(after) else after))
            decisions = []
    if decisions:
        found.append((decisions, None))
    return found


def by_the_book(value, rho, seat, reward, ended, bootstrap, gamma, lam):
    """V-trace (Espeholt et al. 2018, with lambda) as sums. With rho = 1 that is GAE.

    A decision's advantage is what came of it by V-trace targets, less its value, without its own rho.
    """
    out, known = np.zeros(seat.shape), np.zeros(seat.shape, bool)
    for n in range(seat.shape[1]):
        for s in range(reward.shape[2]):
            for decisions, after in games_of_seat(n, s, value, rho, seat, reward, ended, bootstrap):
                values = [decision[1] for decision in decisions] + ([] if after is None else [after])
                deltas = [decisions[k][3] + gamma * values[k + 1] - values[k] for k in range(len(values) - 1)]
                weights = [min(1.0, decision[2]) for decision in decisions]
                for i in range(len(deltas)):
                    out[decisions[i][0], n] = sum(
                        (gamma * lam) ** (k - i) * np.prod(weights[i + 1 : k + 1]) * deltas[k]
                        for k in range(i, len(deltas))
                    )
                    known[decisions[i][0], n] = True
    return out, known


def random_block(seed: int, seats: int, on_policy: bool) -> tuple:
    rng = np.random.default_rng(seed)
    steps, rows = 24, 6
    value = rng.normal(0, 2, (steps, rows)).astype(np.float32)
    rho = np.ones_like(value) if on_policy else rng.uniform(0.2, 1.6, (steps, rows)).astype(np.float32)
    seat = rng.integers(0, seats, (steps, rows), np.int8)
    reward = rng.normal(0, 1, (steps, rows, seats)).astype(np.float32)
    ended = rng.random((steps, rows)) < 0.15
    ended[:, 0] = False  # a game longer than the block
    cut = (ended & (rng.random((steps, rows)) < 0.6))[:, :, None]
    bootstrap = np.where(cut, rng.normal(0, 5, (steps, rows, seats)), 0)
    bootstrap[cut[:, :, 0] & (rng.random((steps, rows)) < 0.3)] = np.nan
    return value, rho, seat, reward, ended, bootstrap.astype(np.float32)


@pytest.mark.parametrize("on_policy", [True, False], ids=["on policy", "older policy"])
@pytest.mark.parametrize("seats", [1, 2, 3])
@pytest.mark.parametrize(("gamma", "lam"), [(0.97, 0.9), (1.0, 1.0), (0.9, 0.0)])
def test_advantages_are_the_textbooks_for_each_seat_on_its_own(seats, on_policy, gamma, lam):
    for seed in range(5):
        block = random_block(seed, seats, on_policy)
        out, known = computed(*block, gamma, lam)
        expected, expected_known = by_the_book(*block, gamma, lam)
        np.testing.assert_array_equal(known, expected_known)
        np.testing.assert_allclose(out, expected, rtol=1e-4, atol=1e-4)
        assert known.any() and not known.all() and not known[-1, 0]


def test_advantages_on_a_device_are_those_of_the_compiled_code():
    blocks = [random_block(seed, 3, on_policy=False) for seed in range(4)]
    stacked = [torch.from_numpy(np.stack(column)) for column in zip(*blocks, strict=True)]
    stacked[2] = stacked[2].long()
    out, known = device_advantages(*stacked, gamma=0.97, lam=0.9)
    for number, block in enumerate(blocks):
        expected, expected_known = computed(*block, 0.97, 0.9)
        np.testing.assert_array_equal(known[number].numpy(), expected_known)
        np.testing.assert_allclose(out[number].numpy(), expected, rtol=1e-4, atol=1e-4)


def one_row(seat, reward, ended, value, bootstrap=None) -> tuple:
    """A block of one game. reward: what each step paid each seat"""
    steps = len(seat)
    return (
        np.array(value, np.float32).reshape(steps, 1), np.ones((steps, 1), np.float32),
        np.array(seat, np.int8).reshape(steps, 1), np.array(reward, np.float32).reshape(steps, 1, -1),
        np.array(ended, bool).reshape(steps, 1),
        np.array(np.zeros_like(reward) if bootstrap is None else bootstrap, np.float32).reshape(steps, 1, -1),
    )  # fmt: skip


def test_a_seat_is_paid_for_what_happens_at_the_others_decisions():
    # Seat 1 has the last word and loses by it: seat 0 made its only decision two steps before.
    block = one_row([0, 1, 1], [[0, 0], [0, 0], [1, -1]], [0, 0, 1], value=[0.25, 0, -0.5])
    out, known = computed(*block, 0.5, 1.0)
    assert known.all()
    # seat 1: last -1 + 0.5; first 0 + 0.5 * -0.5 - 0 + 0.5 * -0.5
    assert out[:, 0].tolist() == [1 - 0.25, -0.5, -0.5]


def test_the_last_decision_of_a_game_that_goes_on_is_not_known_but_counts_for_the_one_before():
    block = one_row([0, 0, 0], [[1], [2], [4]], [0, 0, 0], value=[0, 8, 16])
    out, known = computed(*block, 0.5, 0.5)
    assert known[:, 0].tolist() == [True, True, False]
    # 2 + 8 - 8 = 2; 1 + 4 - 0 + 0.25 * 2 = 5.5
    assert out[:2, 0].tolist() == [5.5, 2.0]


def test_nothing_of_the_next_game_reaches_the_one_before():
    block = one_row([0, 0, 0], [[1], [50], [50]], [1, 0, 1], value=[3, 70, 90])
    out, _ = computed(*block, 1.0, 1.0)
    assert out[0, 0] == 1 - 3


def test_a_game_cut_off_is_worth_what_its_last_position_was():
    over = one_row([0, 0], [[1], [1]], [0, 1], value=[0, 0])
    cut = one_row([0, 0], [[1], [1]], [0, 1], value=[0, 0], bootstrap=[0, 10])
    assert computed(*over, 0.5, 1.0)[0][:, 0].tolist() == [1.5, 1.0]
    assert computed(*cut, 0.5, 1.0)[0][:, 0].tolist() == [4.0, 6.0]


def test_the_correction_for_an_older_policy_never_exceeds_one():
    value, rho, *rest = random_block(3, 2, on_policy=True)
    np.testing.assert_array_equal(
        computed(value, rho * 5, *rest, 0.9, 0.9)[0], computed(value, rho, *rest, 0.9, 0.9)[0]
    )
    # What a policy would never have done says nothing about what came before: only the next value is left.
    np.testing.assert_array_equal(
        computed(value, rho * 0, *rest, 0.9, 0.9)[0], computed(value, rho, *rest, 0.9, 0.0)[0]
    )


# ---- the learner

BANDIT = Spec("bandit", 1, 4, (Part("obs", (3,), np.dtype(np.uint8)),))
REWARDED, NEVER_LEGAL = 2, 3
SMALL_NET = NetConfig(hidden=(16,))


def make_learner(spec: Spec = BANDIT, seed: int = 0, net: NetConfig = SMALL_NET, **config) -> PpoLearner:
    torch.manual_seed(seed)
    return PpoLearner(spec, Net(spec, net), Config(**{"minibatch": 64, **config}))


def columns_of(learner: PpoLearner) -> list[Column]:
    return algos.find("ppo").columns(TrainConfig(settings=learner.config), learner.spec)


def bandit(
    learner: PpoLearner, seed: int = 0, steps: int = 16, rows: int = 16, games_end: bool = True
) -> Block:
    """Every decision is a game: one action is paid, one is never legal; the policy itself has played."""
    rng = np.random.default_rng(seed)
    spec = learner.spec
    block = Block(columns_of(learner), steps, rows)
    block["obs"][...] = rng.integers(0, 3, block["obs"].shape)
    block["legal"][...] = True
    block["legal"][..., NEVER_LEGAL] = False
    chances, block["value"][...] = looked_at(learner, block)
    flat = [rng.choice(spec.actions, p=row) for row in chances.reshape(-1, spec.actions)]
    block["action"][...] = np.array(flat).reshape(steps, rows)
    block["logp"][...] = np.log(
        np.take_along_axis(chances, block["action"][..., None].astype(int), 2)[..., 0]
    )
    block["reward"][..., 0] = block["action"] == REWARDED
    block["ended"][...] = games_end
    return block


def looked_at(learner: PpoLearner, block: Block) -> tuple[np.ndarray, np.ndarray]:
    """Probabilities [T, N, A] and values [T, N]."""
    with torch.no_grad():
        obs, legal = (torch.from_numpy(block[name]).flatten(0, 1) for name in ("obs", "legal"))
        logits, value = learner.net(obs, legal)
    chances = logits.double().softmax(1).numpy()
    chances = (chances / chances.sum(1, keepdims=True)).reshape(block.steps, block.rows, -1)
    return chances, value.numpy().reshape(block.steps, block.rows)


def probabilities(learner: PpoLearner, block: Block) -> np.ndarray:
    """[T, N, A]"""
    return looked_at(learner, block)[0]


def weights(learner: PpoLearner) -> dict[str, torch.Tensor]:
    return {name: tensor.clone() for name, tensor in learner.net.state_dict().items()}


def same(first: dict[str, torch.Tensor], second: dict[str, torch.Tensor]) -> bool:
    return all(torch.equal(first[name], second[name]) for name in first)


def test_one_update_makes_the_rewarded_action_likelier_and_the_others_less_so():
    learner = make_learner()
    block = bandit(learner)
    before = probabilities(learner, block).mean((0, 1))
    metrics = learner.learn([block], off_policy=False)
    after = probabilities(learner, block).mean((0, 1))
    assert after[REWARDED] > before[REWARDED] + 0.01
    assert (after[[0, 1]] < before[[0, 1]]).all() and after[NEVER_LEGAL] < 1e-20
    assert all(np.isfinite(number) for number in metrics.values())


def test_a_bandit_is_solved_in_some_updates_and_its_value_is_known():
    learner = make_learner(learning_rate=5e-3, entropy_coef=0.0)
    for seed in range(40):
        block = bandit(learner, seed)
        learner.learn([block], off_policy=False)
    assert probabilities(learner, block)[..., REWARDED].mean() > 0.95
    with torch.no_grad():
        value = learner.net(torch.from_numpy(block["obs"][0]), torch.from_numpy(block["legal"][0]))[1]
    assert value.mean() == pytest.approx(1, abs=0.15)


def test_nothing_is_learned_about_an_illegal_action():
    learner = make_learner(entropy_coef=0.1)
    before = weights(learner)
    learner.learn([bandit(learner)], off_policy=False)
    after = weights(learner)
    assert torch.equal(after["policy.weight"][NEVER_LEGAL], before["policy.weight"][NEVER_LEGAL])
    assert after["policy.bias"][NEVER_LEGAL] == before["policy.bias"][NEVER_LEGAL]
    assert (after["policy.bias"][:NEVER_LEGAL] != before["policy.bias"][:NEVER_LEGAL]).all()


def test_decisions_whose_outcome_is_not_known_are_not_learned_from():
    results = []
    for action in (0, 1):
        learner = make_learner()
        block = bandit(learner, games_end=False)
        block["action"][-1] = action  # games go on after the block, so no last decision is known
        block["reward"][-1] = 100 * action
        torch.manual_seed(1)
        learner.learn([block], off_policy=False)
        results.append(weights(learner))
    assert same(*results)
    assert not same(results[0], weights(make_learner()))


def test_blocks_are_learned_from_together_whatever_their_number():
    halves, whole = make_learner(minibatch=10_000), make_learner(minibatch=10_000)
    block = bandit(whole, rows=16)
    parts = [bandit(halves, rows=8) for _ in range(2)]
    for number, part in enumerate(parts):
        for column in part.columns:
            part[column.name][...] = block[column.name][:, 8 * number : 8 * number + 8]
    whole.learn([block], off_policy=False)
    halves.learn(parts, off_policy=False)
    for name, tensor in weights(whole).items():  # only the order of sums differs
        torch.testing.assert_close(weights(halves)[name], tensor, rtol=1e-3, atol=1e-4)


def test_epochs_stop_once_the_policy_has_moved_far_enough():
    far, never = make_learner(target_kl=1e-9, epochs=5), make_learner(target_kl=0.0, epochs=5)
    assert far.learn([bandit(far)], off_policy=False)["learner/epochs"] < 5
    assert never.learn([bandit(never)], off_policy=False)["learner/epochs"] == 5


def test_an_older_policys_block_is_measured_by_how_much_its_choices_differ():
    learner = make_learner(learning_rate=0.01)
    block = bandit(learner)
    assert learner.learn([block], off_policy=True)["policy/lag_ratio"] < 1e-3
    assert learner.learn([block], off_policy=True)["policy/lag_ratio"] > 0.05


def test_at_the_end_of_the_run_the_rates_are_what_they_should_decay_to():
    learner = make_learner(learning_rate_end=0.0)
    learner.progress = 1.0
    before = weights(learner)
    learner.learn([bandit(learner)], off_policy=False)
    moved = {name for name, tensor in weights(learner).items() if not torch.equal(tensor, before[name])}
    assert moved == {"value.weight", "value.bias", "value_mean", "value_std"}  # new units, nothing learned


def test_a_restored_learner_goes_on_exactly_as_the_one_that_was_saved():
    spec = Spec("bandit", 1, 4, (Part("obs", (3,), FLOAT32),))
    first, second = make_learner(spec, seed=0), make_learner(spec, seed=1)
    for seed in range(3):
        first.learn([bandit(first, seed)], off_policy=False)
    first.progress = 0.5
    file = io.BytesIO()
    torch.save(first.state_dict(), file)
    file.seek(0)
    second.load_state_dict(torch.load(file, weights_only=True))
    assert second.progress == 0.5
    metrics = []
    for learner in (first, second):
        torch.manual_seed(2)
        metrics += [[learner.learn([bandit(learner, seed)], off_policy=False) for seed in range(3, 6)]]
    assert metrics[0] == metrics[1]
    assert same(weights(first), weights(second))


def test_observations_are_measured_over_all_blocks():
    spec = Spec("bandit", 1, 4, (Part("obs", (3,), FLOAT32),))
    learner, rng, seen = make_learner(spec), np.random.default_rng(0), []
    for mean in (5, -3, 40):
        block = bandit(learner)
        block["obs"][...] = rng.normal(mean, [1, 2, 3], block["obs"].shape)
        seen.append(block["obs"].reshape(-1, 3).copy())
        learner.learn([block], off_policy=False)
    every = np.concatenate(seen)
    np.testing.assert_allclose(learner.net.obs_mean.numpy(), every.mean(0), rtol=1e-3)
    np.testing.assert_allclose(learner.net.obs_std.numpy(), every.std(0), rtol=1e-3)


def test_vectors_as_actions_are_learned_too():
    low = np.full((2, 2), -1, np.float32)
    spec = Spec("box", 1, 0, (Part("obs", (3,), FLOAT32),), box=(low, -low))
    learner, rng = make_learner(spec, learning_rate=3e-3), np.random.default_rng(0)
    for _ in range(25):  # paid for large actions
        block = Block(columns_of(learner), 16, 16)
        block["obs"][...] = rng.normal(size=block["obs"].shape)
        with torch.no_grad():
            obs, legal = (torch.from_numpy(block[name]).flatten(0, 1) for name in ("obs", "legal"))
            mean, value = learner.net(obs, legal)
            chosen = torch.distributions.Normal(mean, learner.net.log_std.exp())
            block["value"][...] = value.reshape(16, 16)
            action = chosen.sample()
            block["logp"][...] = chosen.log_prob(action).sum(1).reshape(16, 16)
        block["action"][...] = action.reshape(16, 16, 2, 2)
        block["reward"][..., 0] = block["action"].sum((2, 3))
        block["ended"][...] = True
        learner.learn([block], off_policy=False)
    assert chosen.mean.mean() > 0.3


# ---- memory


def test_stretches_hold_each_decision_once_and_never_mix_seats():
    rng = np.random.default_rng(0)
    seat = rng.integers(0, 3, (37, 5)).astype(np.int8)
    out = np.empty((200, 4), np.int64)
    found = out[: stretches(seat, 4, 1000, out)]
    real = found[found >= 0]
    assert sorted(real - 1000) == list(range(seat.size))
    for run in found:
        at = run[run >= 0] - 1000
        assert len({(seat.ravel()[i], i % 5) for i in at}) == 1
        assert (np.diff(at) > 0).all()


def test_a_stretch_unrolls_to_what_was_played_step_by_step():
    torch.manual_seed(0)
    net = Net(BANDIT, NetConfig(hidden=(8,), memory=6))
    obs = torch.randint(0, 3, (2 * STRETCH, 3), dtype=torch.uint8)
    fresh = torch.zeros(2, STRETCH, dtype=torch.bool)
    fresh[:, 0] = fresh[1, 5] = True  # a new game begins within the second
    unrolled, _ = net.unroll(obs, torch.randn(2, 12), fresh)
    for run in range(2):
        memory = torch.zeros(1, 12)
        for place in range(STRETCH):
            at = slice(run * STRETCH + place, run * STRETCH + place + 1)
            memory = torch.zeros(1, 12) if fresh[run, place] else memory
            logits, _ = net.raw(obs[at], memory)
            torch.testing.assert_close(logits, unrolled[at])
            memory = net.remember(net.policy_body(net.prepare(obs[at])), memory)


@pytest.mark.parametrize("teacher", ["", "greedy"])
def test_compiled_slopes_are_those_of_autograd(teacher):
    learner = make_learner(teacher=teacher, teacher_until=2.0, entropy_coef=0.3, value_coef=0.7)
    rng, size = np.random.default_rng(3), 200
    legal = torch.from_numpy(rng.random((size, 4)) < 0.6)
    legal[:, 1] = True
    action = torch.from_numpy(np.array([rng.choice(np.flatnonzero(row)) for row in legal.numpy()], np.int32))
    mini = {
        "legal": legal, "action": action, "teacher": torch.ones(size, dtype=torch.int32),
        "logp": torch.from_numpy(rng.normal(-1.2, 0.4, size).astype(np.float32)),
        "adv": torch.from_numpy(rng.normal(0, 1, size).astype(np.float32)),
        "target": torch.from_numpy(rng.normal(0, 3, size).astype(np.float32)),
        "share": torch.from_numpy(rng.random(size).astype(np.float32) / size),
    }  # fmt: skip
    learner.net.policy.weight.data.normal_(0, 1)
    obs = torch.from_numpy(rng.integers(0, 3, (size, 3)).astype(np.uint8))
    loss, told = learner._loss(mini, *learner.net.raw(obs))
    grads = torch.autograd.grad(loss, learner._parameters)
    logits, value = learner.net.raw(obs)
    quick_told, *gradients = learner._cpu_loss()(mini, logits.detach(), value.detach())
    quick_grads = torch.autograd.grad(KnownGradient.apply(logits, value, *gradients), learner._parameters)
    torch.testing.assert_close(quick_told[:5], told[:5], rtol=1e-4, atol=1e-5)
    assert told[4] > 0  # some were clipped
    for quick, slow in zip(quick_grads, grads, strict=True):
        torch.testing.assert_close(quick, slow, rtol=1e-3, atol=1e-5)


class ByAutograd(PpoLearner):
    """Learns by torch alone."""

    def _plain_gradient(self) -> None:
        return None

    def _cpu_gradient(self, mini, logits, value):
        loss, told = self._loss(mini, logits, value)
        self._differentiate(loss)
        return told

    def _step(self):
        norm = torch.nn.utils.clip_grad_norm_([self._flat], self.config.max_grad_norm)
        self.optimiser.step()
        return norm


@pytest.mark.parametrize("hidden", [(), (16,), (24, 16)])
@pytest.mark.parametrize("shared", [True, False], ids=["shared", "separate"])
@pytest.mark.parametrize("activation", ["relu", "tanh"])
@pytest.mark.parametrize("use_onednn", [True, False], ids=["oneDNN", "MKL"])
def test_updates_without_autograd_are_those_with_it(monkeypatch, use_onednn, activation, shared, hidden):
    monkeypatch.setattr("ludus.nets.products.USE_ONEDNN", use_onednn and torch.backends.mkldnn.is_available())
    spec = Spec("bandit", 1, 4, (Part("obs", (3,), FLOAT32),))
    net = NetConfig(hidden=hidden, activation=activation, shared=shared)
    plain = make_learner(spec, net=net, max_grad_norm=0.3, learning_rate=1e-3)
    torch.manual_seed(0)
    other = ByAutograd(spec, Net(spec, net), plain.config)
    assert plain._plain is not None and same(weights(plain), weights(other))
    for seed in range(3):
        block, told = bandit(plain, seed), []
        for learner in (plain, other):
            torch.manual_seed(seed)
            told.append(learner.learn([block], off_policy=False))
        assert told[0]["losses/grad_norm"] > 0.3 / 2  # so that some were clipped
        assert told[0] == pytest.approx(told[1], rel=1e-3, abs=1e-5)
    for name, tensor in weights(other).items():
        torch.testing.assert_close(weights(plain)[name], tensor, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("rows, inner, columns", [(40, 33, 24), (15, 20, 17), (64, 5, 1), (16, 1, 16)])
@pytest.mark.parametrize("turned", [True, False])
def test_products_by_either_library_are_the_same(monkeypatch, turned, rows, inner, columns):
    torch.manual_seed(rows)
    a, b = torch.randn(rows, inner), torch.randn(inner, columns)
    if turned:
        a, b = a.t().contiguous().t(), b.t().contiguous().t()
    exact = (a.double() @ b.double()).float()
    for use_onednn in {False, torch.backends.mkldnn.is_available()}:
        monkeypatch.setattr("ludus.nets.products.USE_ONEDNN", use_onednn)
        torch.testing.assert_close(product(a, b), exact, rtol=1e-5, atol=1e-5)
        out = torch.empty(rows, columns)
        assert product(a, b, out=out) is out
        torch.testing.assert_close(out, exact, rtol=1e-5, atol=1e-5)


def test_networks_that_are_not_plain_are_left_to_autograd():
    low = np.full(2, -1, np.float32)
    box = Spec("box", 1, 0, (Part("obs", (3,), FLOAT32),), box=(low, -low))
    two = Spec("two", 1, 4, (Part("first", (3,), FLOAT32), Part("second", (2,), FLOAT32)))
    assert PlainPasses.possible(Net(BANDIT, NetConfig(hidden=(8,))))
    assert not PlainPasses.possible(Net(BANDIT, NetConfig(hidden=(8,), memory=6)))
    assert not PlainPasses.possible(Net(box, NetConfig(hidden=(8,))))
    assert not PlainPasses.possible(Net(two, NetConfig(hidden=(8,))))


@pytest.mark.parametrize("is_tanh", [True, False], ids=["tanh", "relu"])
def test_activations_are_torchs_and_nan_stays_nan(is_tanh):
    bias = torch.linspace(-0.5, 0.5, 7)
    x = torch.cat([torch.linspace(-12, 12, 7 * 400).reshape(400, 7), torch.randn(50, 7) * 1e-3])
    expected, out = (x + bias).tanh() if is_tanh else (x + bias).relu(), x.clone()
    activate(out.numpy(), bias.numpy(), is_tanh)
    torch.testing.assert_close(out, expected, rtol=1e-6, atol=3e-7)
    nothing = torch.full((2, 7), torch.nan)
    activate(nothing.numpy(), bias.numpy(), is_tanh)
    assert nothing.isnan().all()


# ---- other policies' blocks


def test_what_the_newest_policy_played_counts_by_the_values_it_had():
    """The network needs no second look at it."""
    learner = make_learner(epochs=1, learning_rate=0.0)
    block = bandit(learner)
    block["value"][...] += np.random.default_rng(1).normal(size=block["value"].shape)
    learner.learn([block], off_policy=False)
    advantage = torch.from_numpy(block["reward"][..., 0] - block["value"]).flatten()
    normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    torch.testing.assert_close(learner._batch.memory["adv"], normal)


def test_what_an_older_policy_played_counts_by_how_likely_it_still_is():
    """Once, in values and in advantages; the ratio that is clipped starts at the newest policy."""
    learner = make_learner(epochs=1, learning_rate=0.0)
    block = bandit(learner)
    obs, legal = (torch.from_numpy(block[name]).flatten(0, 1) for name in ("obs", "legal"))
    with torch.no_grad():
        value = learner.net(obs, legal)[1]
    block["logp"][:, ::2] += np.log(4)  # as if half of them had been played four times as often: rho is 1/4
    rho = torch.ones(block["logp"].shape)
    rho[:, ::2] = 1 / 4
    reward = torch.from_numpy(block["reward"]).flatten()
    told = learner.learn([block], off_policy=True)
    torch.testing.assert_close(learner._batch.memory["target"], value + rho.flatten() * (reward - value))
    advantage = reward - value
    normal = (advantage - advantage.mean()) / (advantage.std() + 1e-8)
    torch.testing.assert_close(learner._batch.memory["adv"], rho.flatten() * normal)
    assert told["policy/clipped"] == 0 and told["policy/kl"] == pytest.approx(0, abs=1e-6)


# ---- the optimiser, on whatever device


def optimiser_of(settings: dict, steps: int = 3, device: str = "cpu") -> torch.optim.Adam:
    parameter = torch.nn.Parameter(torch.ones(4, device=device))
    optimiser = torch.optim.Adam([parameter], **settings)
    for _ in range(steps):
        parameter.grad = torch.ones_like(parameter)
        optimiser.step()
    return optimiser


def as_on_gpu(rate: float) -> dict:
    return {"lr": torch.tensor(rate), "fused": True, "capturable": True}


ON_CPU = device_settings(1e-3, torch.device("cpu"))


def test_a_checkpoint_of_a_cpu_is_loaded_with_the_settings_of_a_gpu():
    optimiser = optimiser_of(as_on_gpu(1e-2), steps=0)
    load_optimiser(optimiser, copied(optimiser_of(ON_CPU).state_dict()))
    (group,) = optimiser.param_groups
    assert group["capturable"] and group["fused"] and isinstance(group["lr"], torch.Tensor)
    set_rate(optimiser, 5e-3)
    assert rate_of(optimiser) == pytest.approx(5e-3) and isinstance(group["lr"], torch.Tensor)
    assert optimiser.state[group["params"][0]]["step"] == 3


def test_a_checkpoint_of_a_gpu_is_loaded_with_the_settings_of_a_cpu():
    gpu = optimiser_of(ON_CPU)
    gpu.param_groups[0].update(as_on_gpu(0.5))
    here, same_device = optimiser_of(ON_CPU, steps=0), optimiser_of(ON_CPU)
    with torch.no_grad():
        here.param_groups[0]["params"][0].copy_(same_device.param_groups[0]["params"][0])
    load_optimiser(here, copied(gpu.state_dict()))
    for optimiser in (here, same_device):
        set_rate(optimiser, 0.1)
        optimiser.param_groups[0]["params"][0].grad = torch.ones(4)
        optimiser.step()
    assert rate_of(here) == 0.1 and not here.param_groups[0]["capturable"]
    assert torch.equal(here.param_groups[0]["params"][0], same_device.param_groups[0]["params"][0])


def test_what_the_optimiser_remembers_goes_to_the_device_of_its_parameters():
    optimiser = optimiser_of({"capturable": True}, steps=0, device="meta")
    optimiser.param_groups[0]["lr"] = torch.tensor(1e-3, device="meta")
    load_optimiser(optimiser, copied(optimiser_of(ON_CPU).state_dict()))
    (group,) = optimiser.param_groups
    state = optimiser.state[group["params"][0]]
    assert group["lr"].device.type == "meta"
    assert {tensor.device.type for tensor in state.values()} == {"meta"}


def test_a_loaded_learner_has_room_for_what_comes_not_for_what_was():
    """What is recorded for a GPU is of one size, and `--inference auto` measures with another."""
    learner = make_learner()
    block = bandit(learner, 0)
    learner.learn([block, block], off_policy=False)
    learner.load_state_dict(copied(learner.state_dict()))
    learner.learn([block], off_policy=False)
    assert learner._batch.room == block.decisions


@pytest.mark.parametrize("max_norm", [0.1, 100.0])
def test_compiled_steps_are_those_of_torch(max_norm):
    torch.manual_seed(0)
    ours, torchs = (torch.nn.Parameter(torch.ones(1000)) for _ in range(2))
    compiled, plain = (Adam([vector], eps=1e-5, **ON_CPU) for vector in (ours, torchs))
    for _ in range(5):
        ours.grad, torchs.grad = (gradient := torch.randn(1000)), gradient.clone()
        norm = compiled.clipped_step(max_norm)
        assert norm == pytest.approx(float(torch.nn.utils.clip_grad_norm_([torchs], max_norm)), rel=1e-5)
        plain.step()
    torch.testing.assert_close(ours, torchs)
    mine, theirs = compiled.state_dict()["state"][0], plain.state_dict()["state"][0]
    for name, tensor in theirs.items():
        torch.testing.assert_close(mine[name], tensor)
    ours.grad = torch.full((1000,), torch.nan)
    assert np.isnan(compiled.clipped_step(max_norm))


def test_an_optimiser_of_another_network_is_refused():
    two = torch.optim.Adam([torch.nn.Parameter(torch.ones(4)) for _ in range(2)])
    with pytest.raises(ValueError, match="other parameters"):
        load_optimiser(optimiser_of(ON_CPU), copied(two.state_dict()))


def test_the_learning_rate_that_is_used_is_told():
    learner = make_learner(learning_rate=4e-3, learning_rate_end=0.5)
    for progress, scale, rate in ((0.0, 1.0, 4e-3), (0.5, 1.0, 3e-3), (1.0, 0.5, 1e-3)):
        learner.progress, learner.rate_scale = progress, scale
        assert learner.learn([bandit(learner)], off_policy=False)["learner/learning_rate"] == pytest.approx(
            rate
        )


class TorchWithGpu:
    """Torch that takes every device for a GPU, while tensors stay where they are."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def device(self, name):
        return SimpleNamespace(type="cuda")


def test_only_a_gpu_computes_with_less_than_float32(monkeypatch):
    try:
        with monkeypatch.context() as patch:
            patch.setattr("ludus.algos.ppo.learner.torch", TorchWithGpu())
            patch.setattr("ludus.algos.ppo.learner.device_settings", lambda rate, device: ON_CPU)
            assert make_learner().on_gpu and torch.get_float32_matmul_precision() == "high"
        assert not make_learner().on_gpu and torch.get_float32_matmul_precision() == "highest"
    finally:
        torch.set_float32_matmul_precision("highest")


OFC = games.open("ofc").native("played").rules


@pytest.mark.parametrize("head", ["actions", "afterstates"])
@pytest.mark.parametrize("decisions", [1, 79, 150])
def test_a_minibatch_in_parts_has_the_gradient_of_all_of_it(monkeypatch, head, decisions):
    monkeypatch.setattr("ludus.algos.ppo.plain_gradient.PART", 40)
    some = islice(Play(OFC, rows=40).decisions(), 0, 15, 3)
    states = np.concatenate([states for states, _ in some])[:decisions]
    obs, legal = (torch.from_numpy(array(OFC, states)) for array in (observation_of, legal_of))
    size = len(obs)
    torch.manual_seed(1)
    data = {name: torch.randn(size) for name in ("logp", "adv", "target")}
    data |= {"obs": obs, "legal": legal, "action": legal.int().argmax(1).int(), "known": torch.ones(size)}
    data["known"][1::5] = 0
    learner = ByAutograd(OFC.spec, Net(OFC.spec, NetConfig(hidden=(24,), head=head, afterstate=12)), Config())
    for parameter in learner.net.parameters():
        parameter.data.normal_(0, 0.2)
    told = learner._cpu_gradient(*learner._looked_up(data, torch.arange(size)))
    assert learner._flat.grad is not None
    right, found = learner._flat.grad.clone(), []
    for threads in (1, 2, 3):
        monkeypatch.setattr(torch, "get_num_threads", lambda threads=threads: threads)
        with ThreadPoolExecutor(3, initializer=one_torch_thread) as workers:
            gradient = torch.full_like(right, torch.nan)
            ours = PlainGradient(learner.net, gradient, workers)
            reported = ours(data, torch.arange(size), learner._cpu_loss())
        torch.testing.assert_close(reported[:5], told[:5], rtol=1e-3, atol=1e-5)
        assert float((gradient - right).norm()) < 0.01 * float(right.norm())
        found.append(gradient)
    assert torch.equal(found[0], found[1]) and torch.equal(found[0], found[2])
