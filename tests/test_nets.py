"""Networks: the torch one and its double without torch say the same, and choose only what is legal."""

import numpy as np
import pytest
import torch
from gymnasium import spaces

from ludus.algos.ppo.log_prob import log_prob
from ludus.core.spec import Part, Spec, image_shape
from ludus.games.adapters.spaces import obs_form
from ludus.nets import NetConfig
from ludus.nets.net import Net, flat_size, flatten, unflatten
from ludus.nets.plain import PlainPolicy, shapes
from ludus.nets.policy import TorchPolicy

UINT8, INT16, FLOAT32 = (np.dtype(kind) for kind in (np.uint8, np.int16, np.float32))
CONFIGS = [
    NetConfig(hidden=(16, 8), activation=activation, shared=shared)
    for activation in ("relu", "tanh")
    for shared in (True, False)
]


def make_spec(shape=(3, 4), dtype=UINT8, actions=7, box=None, kind="flat") -> Spec:
    return Spec("made up", 2, actions, (Part("obs", shape, dtype, kind),), box=box)


def make_net(spec: Spec, config: NetConfig, seed: int = 1) -> Net:
    """A network none of whose weights and scales are what a new one has."""
    torch.manual_seed(seed)
    net = Net(spec, config)
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn_like(parameter) * 0.4)
        net.obs_mean.copy_(torch.randn_like(net.obs_mean))
        net.obs_std.copy_(torch.rand_like(net.obs_std) + 0.3)
        net.value_mean.fill_(-3.5)
        net.value_std.fill_(7.25)
    return net


def make_obs(spec: Spec, n: int, rng: np.random.Generator) -> np.ndarray:
    if spec.obs_dtype.kind in "iu":
        return rng.integers(0, 5, (n, *spec.obs_shape), spec.obs_dtype)
    return rng.normal(1, 3, (n, *spec.obs_shape)).astype(spec.obs_dtype)


def vector_of(net: Net) -> np.ndarray:
    vector = np.zeros(flat_size(net), np.float32)
    flatten(net, vector)
    return vector


def doubles(spec: Spec, config: NetConfig) -> tuple[Net, PlainPolicy]:
    net, plain = make_net(spec, config), PlainPolicy(spec, config)
    plain.load(vector_of(net))
    return net, plain


# ---- the network without torch


@pytest.mark.parametrize("dtype", [UINT8, INT16, FLOAT32], ids=str)
@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.activation}-{'shared' if c.shared else 'two'}")
def test_plain_policy_gives_the_numbers_of_the_torch_net(config, dtype):
    spec = make_spec(dtype=dtype)
    net, plain = doubles(spec, config)
    obs = make_obs(spec, 40, np.random.default_rng(2))
    obs[0] = 255 if dtype == UINT8 else 1000.0  # beyond what a normalised observation may be
    with torch.no_grad():
        logits, value = net.raw(torch.from_numpy(obs))
    np.testing.assert_allclose(plain.logits(obs), logits.numpy(), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(plain.value(obs), value.numpy(), rtol=1e-4, atol=1e-4)
    assert value.std() > 1 and logits.std() > 0.1  # else there would be nothing to compare


@pytest.mark.parametrize(
    ("space", "normalised"),
    [
        (spaces.Box(0, 1, (3,), np.int8), False),  # planes of 0 and 1, as PettingZoo's boards
        (spaces.MultiBinary(3), True),  # becomes one vector of floats
        (spaces.Box(0, 255, (128,), np.uint8), True),  # an emulator's memory
        (spaces.Box(-1000, 1000, (3,), np.int64), True),
        (spaces.Box(-1, 1, (3,), np.float64), True),
    ],
    ids=str,
)
def test_numbers_of_any_size_reach_layers_normalised_and_bits_as_they_are(space, normalised):
    form = obs_form(space, "made up")
    spec = Spec("made up", 1, 7, form.parts)
    net = make_net(spec, CONFIGS[0])
    obs = np.full((2, *form.shape), 1, form.dtype)
    given = net.prepare(torch.from_numpy(obs))
    scaled = (torch.ones(given.shape) - net.obs_mean) / net.obs_std
    torch.testing.assert_close(given, scaled if normalised else torch.ones(given.shape))


def test_native_games_of_bytes_are_given_to_layers_as_they_are():
    dtypes = (UINT8, np.dtype(bool), INT16, FLOAT32)
    assert [make_spec(dtype=dtype).parts[0].normalised for dtype in dtypes] == [False, False, True, True]


@pytest.mark.parametrize("config", CONFIGS, ids=lambda c: f"{c.activation}-{'shared' if c.shared else 'two'}")
def test_plain_shapes_are_those_of_the_state_dictionary_in_its_order(config):
    spec = make_spec()
    expected = [(name, tuple(tensor.shape)) for name, tensor in Net(spec, config).state_dict().items()]
    assert shapes(spec, config) == expected


def test_the_way_weights_are_handed_over_does_not_matter():
    spec, config = make_spec(), CONFIGS[1]
    net, plain = doubles(spec, config)
    named, torch_policy = PlainPolicy(spec, config), TorchPolicy(spec, config)
    named.load_named({name: tensor.numpy() for name, tensor in net.state_dict().items()})
    torch_policy.load(vector_of(net))
    obs = make_obs(spec, 9, np.random.default_rng(3))
    np.testing.assert_array_equal(named.logits(obs), plain.logits(obs))
    np.testing.assert_array_equal(named.value(obs), plain.value(obs))
    np.testing.assert_allclose(torch_policy.logits(obs), plain.logits(obs), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(torch_policy.value(obs), plain.value(obs), rtol=1e-4, atol=1e-4)


def test_a_loaded_policy_does_not_change_with_the_memory_it_was_loaded_from():
    spec, config = make_spec(dtype=FLOAT32), CONFIGS[0]
    vector = vector_of(make_net(spec, config))
    plain = PlainPolicy(spec, config)
    plain.load(vector)
    obs = make_obs(spec, 5, np.random.default_rng(3))
    logits, value = plain.logits(obs), plain.value(obs)
    vector[:] = 0
    np.testing.assert_array_equal(plain.logits(obs), logits)
    np.testing.assert_array_equal(plain.value(obs), value)


# ---- choosing


@pytest.mark.parametrize("temperature", [1.0, 0.5])
def test_actions_are_as_frequent_as_the_softmax_over_legal_ones_says(temperature):
    spec, n = make_spec(), 40_000
    _, plain = doubles(spec, CONFIGS[0])
    legal = np.array([True, False, True, True, False, True, False])
    some = make_obs(spec, 500, np.random.default_rng(4))
    logits = plain.logits(some) / temperature
    chances = np.where(legal, np.exp(logits - logits[:, legal].max(1, keepdims=True)), 0)
    chances /= chances.sum(1, keepdims=True)
    at = chances[:, legal].min(1).argmax()  # where every action is in question
    obs, expected = some[at : at + 1], chances[at]
    assert n * expected[legal].min() > 100
    actions, _, _ = plain.act(
        np.repeat(obs, n, 0), np.repeat(legal[None], n, 0), np.random.default_rng(5), temperature
    )
    seen = np.bincount(actions, minlength=7)
    assert seen[~legal].sum() == 0
    chi_square = ((seen - n * expected)[legal] ** 2 / (n * expected[legal])).sum()
    assert chi_square < 16.3  # 3 degrees of freedom: passed by one seed in a thousand


def test_log_probabilities_are_those_of_torch_over_legal_actions():
    spec, rng = make_spec(dtype=FLOAT32), np.random.default_rng(6)
    net, plain = doubles(spec, CONFIGS[3])
    obs, legal = make_obs(spec, 300, rng), rng.random((300, 7)) < 0.4
    legal[np.arange(300), rng.integers(7, size=300)] = True
    actions, logp, _ = plain.act(obs, legal, rng)
    assert legal[np.arange(300), actions].all()
    with torch.no_grad():
        logits, _ = net(torch.from_numpy(obs), torch.from_numpy(legal))
    expected = logits.log_softmax(1).numpy()[np.arange(300), actions]
    np.testing.assert_allclose(logp, expected, atol=2e-4)
    learned, entropy = log_prob(net, logits, torch.from_numpy(actions))
    np.testing.assert_allclose(learned.numpy(), expected, atol=1e-6)
    chances = logits.softmax(1)
    np.testing.assert_allclose(entropy.numpy(), -(chances * chances.log()).sum(1).numpy(), atol=1e-5)


def test_a_single_legal_action_is_taken_for_certain_however_unlikely():
    spec = make_spec()
    config = NetConfig(hidden=(4,))
    net = make_net(spec, config)
    with torch.no_grad():
        net.policy.bias[:] = torch.tensor([60.0, 0, 0, -60, 0, 0, 0])
    plain = PlainPolicy(spec, config)
    plain.load(vector_of(net))
    legal = np.zeros((50, 7), bool)
    legal[:, 3] = True
    actions, logp, _ = plain.act(
        make_obs(spec, 50, np.random.default_rng(1)), legal, np.random.default_rng(2)
    )
    assert (actions == 3).all() and np.abs(logp).max() < 1e-6


@pytest.mark.parametrize("drift", [0.0, -100.0, 1000.0])
def test_illegal_actions_have_no_chance_in_torch(drift):
    net = make_net(make_spec(), CONFIGS[0])
    with torch.no_grad():
        net.policy.bias += drift  # nothing holds on to it: a softmax does not see it
    obs = torch.from_numpy(make_obs(net.spec, 20, np.random.default_rng(7)))
    legal = torch.zeros(20, 7, dtype=torch.bool)
    legal[:, 2:4] = True
    chances = net(obs, legal)[0].softmax(1)
    assert chances[:, [0, 1, 4, 5, 6]].max() < 1e-20


# ---- the torch network


def test_new_units_for_the_value_leave_the_value_unchanged():
    net = make_net(make_spec(), CONFIGS[1])
    obs = torch.from_numpy(make_obs(net.spec, 30, np.random.default_rng(8)))
    legal = torch.ones(30, 7, dtype=torch.bool)
    with torch.no_grad():
        before = net(obs, legal)[1]
        net.rescale_value(torch.tensor(100.0), torch.tensor(0.5))
        after = net(obs, legal)[1]
    assert net.value_mean == 100 and net.value_std == 0.5
    torch.testing.assert_close(after, before, rtol=1e-4, atol=1e-3)


def test_a_new_network_plays_nearly_evenly():
    torch.manual_seed(0)
    net = Net(make_spec(), NetConfig(hidden=(64, 64)))
    obs = torch.from_numpy(make_obs(net.spec, 50, np.random.default_rng(9)))
    chances = net(obs, torch.ones(50, 7, dtype=torch.bool))[0].softmax(1)
    assert (chances - 1 / 7).abs().max() < 0.05


@pytest.mark.parametrize("config", CONFIGS[:2], ids=["shared", "two"])
def test_weights_survive_the_trip_through_one_vector(config):
    spec = make_spec(dtype=FLOAT32)
    net, other = make_net(spec, config, seed=1), make_net(spec, config, seed=2)
    unflatten(other, vector_of(net))
    for name, tensor in net.state_dict().items():
        assert torch.equal(tensor, other.state_dict()[name]), name


@pytest.mark.parametrize("shape", [(4, 36, 28), (36, 28, 4)], ids=["channels first", "channels last"])
def test_images_are_read_by_convolutions_whichever_way_round(shape):
    spec, config = make_spec(shape, kind="image"), NetConfig(hidden=(16,))
    assert image_shape(shape) == (4, 36, 28)
    assert config.reads_images(spec) and not config.is_plain(spec)
    net = make_net(spec, config)
    obs = make_obs(spec, 6, np.random.default_rng(10))
    logits, value = net(torch.from_numpy(obs), torch.ones(6, 7, dtype=torch.bool))
    assert logits.shape == (6, 7) and value.shape == (6,)
    policy = TorchPolicy(spec, config)
    policy.load(vector_of(net))
    actions, _, _ = policy.act(obs, np.eye(7, dtype=bool)[[1, 3, 5, 0, 2, 4]], np.random.default_rng(1))
    assert actions.tolist() == [1, 3, 5, 0, 2, 4]
    np.testing.assert_allclose(policy.value(obs), value.detach().numpy(), rtol=1e-5)


def test_both_ways_round_of_an_image_give_the_same_numbers():
    first, last = (make_spec(shape, kind="image") for shape in ((4, 36, 28), (36, 28, 4)))
    nets = [make_net(spec, NetConfig(hidden=(16,))) for spec in (first, last)]
    obs = torch.from_numpy(make_obs(first, 6, np.random.default_rng(10)))
    legal = torch.ones(6, 7, dtype=torch.bool)
    a, b = nets[0](obs, legal), nets[1](obs.permute(0, 2, 3, 1), legal)
    torch.testing.assert_close(a[0], b[0])
    torch.testing.assert_close(a[1], b[1])


def test_small_boards_are_not_taken_for_images():
    def shown(shape) -> Spec:
        return Spec("made up", 1, 7, obs_form(spaces.Box(0, 255, shape, np.uint8), "made up").parts)

    assert NetConfig().is_plain(shown((3, 8, 8))) and not NetConfig().is_plain(shown((4, 36, 28)))
    assert NetConfig(trunk="mlp").is_plain(shown((4, 36, 28)))


@pytest.mark.parametrize("shape", [(3,), (2, 2)], ids=str)
def test_continuous_actions_are_normal_around_the_networks_choice(shape):
    low = np.full(shape, -1, np.float32)
    spec = make_spec((5,), FLOAT32, actions=0, box=(low, -low))
    config = NetConfig(hidden=(8,))
    net, policy = make_net(spec, config), TorchPolicy(spec, config)
    with torch.no_grad():
        net.log_std.copy_(torch.linspace(-1, 0.5, low.size))
    policy.load(vector_of(net))
    obs = np.repeat(make_obs(spec, 1, np.random.default_rng(11)), 20_000, 0)
    no_mask = np.zeros((20_000, 0), bool)
    actions, logp, _ = policy.act(obs, no_mask, np.random.default_rng(12))
    assert actions.shape == (20_000, *shape) and actions.dtype == np.float32
    with torch.no_grad():
        mean, value = net(torch.from_numpy(obs), torch.from_numpy(no_mask))
        expected, _ = log_prob(net, mean, torch.from_numpy(actions))
    np.testing.assert_allclose(logp, expected.numpy(), atol=1e-4)
    np.testing.assert_allclose(actions.reshape(20_000, -1).mean(0), mean[0].numpy(), atol=0.05)
    np.testing.assert_allclose(actions.reshape(20_000, -1).std(0), net.log_std.exp().detach(), rtol=0.03)
    assert value.shape == (20_000,)
