"""Afterstates: what placements make of the rows is what the cards say, and all networks score it alike."""

import numpy as np
import pytest
import torch

from ludus import games
from ludus.algos.ppo import Config, second_look
from ludus.algos.ppo.learner import PpoLearner
from ludus.algos.ppo.minibatches import ManyFirst
from ludus.core import seeds
from ludus.core.afterstates import described
from ludus.core.conformance import legal_of, observation_of
from ludus.core.errors import Usage
from ludus.core.rules import RandomBot, Rules, States
from ludus.games.ofc import afterstates as ofc
from ludus.games.ofc.cards import FLUSH, FULL_HOUSE, JOKER, ROYAL, STRAIGHT, STRAIGHT_FLUSH, TWO_PAIR, best
from ludus.games.ofc.hand import place_cards
from ludus.games.ofc.scoring import ROW_SIZE, ROW_START
from ludus.nets import NetConfig, make_policy
from ludus.nets.afterstates import AfterstateHead
from ludus.nets.net import Net, flat_size, flatten
from ludus.nets.plain import PlainPolicy

CONFIG = NetConfig(hidden=(24, 16), head="afterstates", afterstate=12)


def positions(rules: Rules, rows: int = 200, seed: int = 0) -> States:
    """Of all streets, after random play."""
    states, rng = rules.blank(rows), seeds.rows(seed, rows)
    rules.deal(states, rng)
    bot = RandomBot(rules)
    for step in range(40):
        moving = np.flatnonzero(~rules.over(states) & (np.arange(rows) % 40 > step))
        some, streams = states[moving], rng[moving]
        rules.play(some, bot.choose(some, streams), streams)
        states[moving], rng[moving] = some, streams
    return states[~rules.over(states)]


@pytest.fixture(
    params=[(3, 2), (2, 2), (3, 0)], ids=lambda switches: f"{switches[0]} seats, {switches[1]} jokers"
)
def rules(request) -> Rules:
    seats, jokers = request.param
    return games.open("ofc", seats=seats, jokers=jokers).native("played").rules


def make_net(rules: Rules, config: NetConfig = CONFIG) -> Net:
    torch.manual_seed(1)
    net = Net(rules.spec, config)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.2)
    return net


# ---- what rows become


def test_a_description_is_of_the_row_that_the_placement_makes(rules):
    """Whichever action is taken: its cards, and what they make of a row that is complete."""
    states, kind = positions(rules), rules.spec.afterstates
    features, places, _ = described(kind, observation_of(rules, states))
    legal, rng, complete = legal_of(rules, states), np.random.default_rng(3), 0
    for i in range(len(states)):
        action = rng.choice(np.flatnonzero(legal[i]))
        after = states[i : i + 1].copy()
        place_cards(after[0], action)
        board, count = after["board"][0, states["turn"][i]], after["count"][0, states["turn"][i]]
        for row in range(3):
            cards = board[ROW_START[row] :][: count[row]]
            naturals = cards[cards < JOKER]
            seen = features[places[i, row, kind.combine[action, row]]]
            ranks, suits = np.bincount(naturals >> 2, minlength=13), np.bincount(naturals & 3, minlength=4)
            held = [*ranks, len(cards) - len(naturals), *suits]
            assert seen[: ofc.COUNTS].tolist() == held
            assert seen[ofc.FULL] == (count[row] == ROW_SIZE[row])
            if count[row] == 5 and len(naturals) == 5:
                complete += 1
                made = best(cards, 5) // 16**5
                assert seen[ofc.MADE_FLUSH] == (made in (FLUSH, STRAIGHT_FLUSH, ROYAL))
                assert seen[ofc.MADE_STRAIGHT] == (made in (STRAIGHT, STRAIGHT_FLUSH, ROYAL))
                assert seen[ofc.MADE + ofc.FULL_HOUSE - ofc.QUADS] == (made == FULL_HOUSE)
                assert seen[ofc.MADE + ofc.TWO_PAIRS - ofc.QUADS] == (made == TWO_PAIR)
    assert complete > 20  # else nothing was compared


def test_outs_are_cards_that_may_still_come():
    rules = games.open("ofc").native("played").rules
    states = positions(rules, 400)
    obs, kind = observation_of(rules, states), rules.spec.afterstates
    features, places, _ = described(kind, obs)
    for i in range(len(states)):
        unseen = obs[i, 54:67].astype(np.float32) / 4
        for row in range(3):
            for place in places[i, row][places[i, row] >= 0]:
                ranks = features[place, :13]
                np.testing.assert_array_equal(
                    features[place, ofc.UNSEEN :][:13], np.where(ranks > 0, unseen, 0)
                )


def test_it_is_described_alike_on_any_device(rules):
    obs, kind = observation_of(rules, positions(rules)), rules.spec.afterstates
    features, places, _ = described(kind, obs)
    constants = [torch.from_numpy(array) for array in kind.constants]
    dense = kind.describe_tensor(torch.from_numpy(obs), constants, kind.options).numpy()
    there, count = places >= 0, kind.features
    dense = dense.transpose(1, 0, 2, 3)
    np.testing.assert_allclose(dense[there][:, :count], features[places[there]], atol=1e-6)
    assert not dense[..., count:].any()


# ---- networks that score it


def test_decisions_with_few_options_are_scored_by_themselves_alike(rules):
    states, net = positions(rules), make_net(rules)
    obs, head = observation_of(rules, states), net.policy
    assert isinstance(head, AfterstateHead)
    few = rules.spec.afterstates.has_few(obs)
    assert 0.5 < few.mean() < 1
    order = np.argsort(few, kind="stable")
    obs, legal = torch.from_numpy(obs[order]), torch.from_numpy(legal_of(rules, states)[order])
    beside, many = head.trunk(net.policy_body(net.prepare(obs))), int((~few).sum())
    whole, split = head.score_all(obs, beside, len(obs)), head.score_all(obs, beside, many)
    torch.testing.assert_close(split[legal], whole[legal])


class HasFew:
    """Afterstates of observations that say themselves whether they have few options."""

    def has_few(self, obs):
        return obs


@pytest.mark.parametrize("share", [0.25, 0.0, 1.0])
def test_minibatches_begin_with_the_decisions_that_may_have_many_options(share):
    torch.manual_seed(0)
    many_first = ManyFirst(HasFew())
    for total, size in ((10_000, 512), (10_240, 512), (1000, 512), (16_000, 8192), (300, 512), (50, 64)):
        few = torch.rand(total) >= share
        picks, many = many_first.minibatches(few, size)
        assert picks.shape == (max(total // size, 1), min(size, total))
        assert len(picks.unique()) == picks.numel()
        assert few[picks[:, many:]].all() and (many > 0) == (share > 0)
        again, kept = many_first.minibatches(few, size)
        assert not torch.equal(again, picks)
        if total > 5000:  # in few decisions the share may be any
            assert kept == many and many <= (1.25 * share + 0.15) * size
            assert abs((~few)[picks].float().mean() - share) < 0.03  # what is left out is left to chance


class Replayed:
    """In place of a CUDA graph."""

    def __init__(self, function) -> None:
        self.replay = function


def score_all(head: AfterstateHead, obs, body, many=None):
    """As on a GPU."""
    return head.score_all(obs, head.trunk(body), len(obs) if many is None else many)


def test_a_second_look_in_parts_sees_what_one_at_all_decisions_sees(rules, monkeypatch):
    monkeypatch.setattr(second_look, "CudaGraph", Replayed)
    monkeypatch.setattr(second_look, "fused", lambda look, *example: look)
    monkeypatch.setattr(second_look, "LOOKED", 128)
    monkeypatch.setattr(AfterstateHead, "forward", score_all)
    learner = PpoLearner(rules.spec, make_net(rules), Config(), "cpu")
    look = second_look.SecondLook(learner.net, learner._some, ManyFirst(rules.spec.afterstates))
    states = positions(rules)
    few = rules.spec.afterstates.has_few(observation_of(rules, states))
    mixed = states[np.random.default_rng(0).permutation(len(states))]
    for some in (states[few], mixed, states[few], states[~few]):
        obs, legal = observation_of(rules, some[:256]), torch.from_numpy(legal_of(rules, some[:256]))
        memory = {"obs": torch.from_numpy(obs), "legal": legal, "adv": torch.zeros(len(obs))}
        memory["action"] = legal.float().argmax(1).int()
        look.forget()
        for _ in range(2):
            torch.testing.assert_close(look.replay(memory), look.look(memory, len(obs)))


def test_compiled_scores_and_their_gradients_are_those_of_torch(rules):
    states, net = positions(rules), make_net(rules)
    head, obs = net.policy, torch.from_numpy(observation_of(rules, states))
    assert isinstance(head, AfterstateHead)
    legal = torch.from_numpy(legal_of(rules, states))
    weight = torch.randn(legal.shape) * legal
    beside = head.trunk(net.policy_body(net.prepare(obs)))
    compiled, plain = head(obs, net.policy_body(net.prepare(obs))), head.score_all(obs, beside, len(obs))
    torch.testing.assert_close(compiled[legal], plain[legal], rtol=1e-4, atol=1e-4)
    parameters = [*net.policy_body.parameters(), *head.parameters()]
    gradients = [torch.autograd.grad((logits * weight).sum(), parameters) for logits in (compiled, plain)]
    for ours, theirs in zip(*gradients, strict=True):  # a sum that rounds to another side of 0 may differ
        assert (ours - theirs).norm() < 0.02 * theirs.norm()


def test_workers_score_as_the_torch_net_does(rules):
    states, net = positions(rules), make_net(rules)
    obs, vector = observation_of(rules, states), np.zeros(flat_size(net), np.float32)
    flatten(net, vector)
    plain = make_policy(rules.spec, CONFIG)
    assert isinstance(plain, PlainPolicy)
    plain.load(vector)
    with torch.no_grad():
        logits, value = net.raw(torch.from_numpy(obs))
    legal = legal_of(rules, states)
    ours = plain.look(obs)
    np.testing.assert_allclose(ours[0][legal], logits.numpy()[legal], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(ours[1], value.numpy(), rtol=1e-4, atol=1e-4)
    assert logits.numpy()[legal].std() > 0.1


def test_with_a_memory_they_are_scored_too(rules):
    net = make_net(rules, NetConfig(hidden=(16,), head="afterstates", afterstate=8, memory=8))
    obs = torch.from_numpy(observation_of(rules, positions(rules))[:6])
    memory = torch.zeros(6, 16)
    alone = net.look(obs, memory)[0]
    unrolled = net.unroll(obs, memory[:1], torch.ones(1, 6, dtype=torch.bool))[0]
    torch.testing.assert_close(unrolled, alone)


def test_a_new_network_plays_nearly_evenly(rules):
    states = positions(rules)
    obs, legal = torch.from_numpy(observation_of(rules, states)), torch.from_numpy(legal_of(rules, states))
    torch.manual_seed(0)
    with torch.no_grad():
        logits, _ = Net(rules.spec, NetConfig(head="afterstates"))(obs, legal)
    share = logits.softmax(1) * legal.sum(1, keepdim=True)
    assert float(share[legal].min()) > 0.5 and float(share[legal].max()) < 2


def test_a_sum_that_is_no_number_is_noticed(rules):
    """Else a training that diverges would go on."""
    net = make_net(rules)
    with torch.no_grad():
        net.policy.first.fill_(torch.nan)
    states = positions(rules, 40)
    logits, _ = net.raw(torch.from_numpy(observation_of(rules, states)))
    assert logits[torch.from_numpy(legal_of(rules, states))].isnan().all()


def test_a_game_that_describes_none_refuses_the_head(ludus):
    code, _, err = ludus("train", "connect4", "--algo", "ppo", "--net.head", "afterstates")
    assert code == 2 and "connect4 doesn't describe afterstates" in err


def test_nobody_reads_afterstates_of_other_games():
    with pytest.raises(Usage, match="tictactoe doesn't describe afterstates"):
        NetConfig(head="afterstates").refuse(games.open("tictactoe").spec)
