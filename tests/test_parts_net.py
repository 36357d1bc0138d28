"""Networks of several parts: with and without torch they say the same, with the gradients of plain layers."""

import numpy as np
import pytest
import torch
from torch import nn

from ludus.core.spec import Part, Spec
from ludus.nets import NetConfig, make_policy
from ludus.nets.parts import Tokens, as_tensor
from ludus.nets.plain import PlainPolicy, shapes
from ludus.nets.policy import TorchPolicy
from test_nets import make_net, vector_of

INT16, FLOAT32, UINT8 = (np.dtype(kind) for kind in (np.int16, np.float32, np.uint8))
UNITS = Part("units", (4, 3), INT16, "tokens", vocabulary=(9, 5, 30))
SPEC = Spec(
    "made up", 2, 7,
    (
        Part("clock", (2,), FLOAT32),
        UNITS,
        Part("health", (4, 2), FLOAT32, of="units"),
        Part("cards", (5, 1), UINT8, "tokens", vocabulary=(6,)),  # without numbers of their own
        Part("board", (2, 3, 3), UINT8, "board"),
        Part("orders", (4, 1), UINT8, of="units"),
    ),
)  # fmt: skip
CONFIGS = [NetConfig(hidden=(16, 8), embedding=3, token=6, shared=shared) for shared in (True, False)]


def make_obs(n: int) -> np.ndarray:
    rng = np.random.default_rng(2)
    obs = np.zeros(n, SPEC.obs_dtype)
    for part in SPEC.parts:
        if part.kind == "tokens":
            obs[part.name] = rng.integers(0, part.vocabulary, (n, *part.shape))
        else:
            obs[part.name] = rng.normal(2, 2, (n, *part.shape)).clip(0)
    obs["clock"][0] = 1000  # beyond what a normalised number may be
    return obs


@pytest.mark.parametrize("config", CONFIGS, ids=["shared", "two"])
def test_without_torch_the_numbers_are_the_same(config):
    net, plain, other = make_net(SPEC, config), PlainPolicy(SPEC, config), TorchPolicy(SPEC, config)
    plain.load(vector_of(net))
    other.load(vector_of(net))
    obs = make_obs(40)
    assert other.logits(obs).std() > 0.1 and other.value(obs).std() > 1  # else there is nothing to compare
    np.testing.assert_allclose(plain.logits(obs), other.logits(obs), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(plain.value(obs), other.value(obs), rtol=1e-4, atol=1e-3)
    np.testing.assert_allclose(plain.logits(obs[7:8]), other.logits(obs)[7:8], rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize("config", CONFIGS, ids=["shared", "two"])
def test_weights_have_the_order_of_the_state_dictionary(config):
    expected = [(name, tuple(array.shape)) for name, array in make_net(SPEC, config).state_dict().items()]
    assert shapes(SPEC, config) == expected


def test_what_needs_torch_gets_it():
    assert isinstance(make_policy(SPEC, CONFIGS[0]), PlainPolicy)
    for config in (NetConfig(attention=1), NetConfig(memory=8)):
        assert isinstance(make_policy(SPEC, config), TorchPolicy)
    seen = Spec("made up", 2, 7, (UNITS, Part("screen", (3, 24, 24), UINT8, "image")))
    assert isinstance(make_policy(seen, CONFIGS[0]), TorchPolicy)


def test_gradients_of_tokens_are_those_of_embeddings_and_one_layer():
    torch.manual_seed(1)
    tokens, obs = Tokens(UNITS, 2, CONFIGS[0]), make_obs(20)
    ids, numbers = torch.from_numpy(obs["units"]), torch.from_numpy(obs["health"])
    embeddings: nn.ModuleList = tokens.embeddings
    columns = [embed(ids[:, :, k].int()) for k, embed in enumerate(embeddings)]
    plain = torch.relu(tokens.layer(torch.cat([*columns, numbers], 2))).flatten(1)
    found = tokens(ids, [numbers])
    torch.testing.assert_close(found, plain)
    weights = list(tokens.parameters())
    ends = torch.randn_like(plain)
    for mine, other in zip(
        torch.autograd.grad(found, weights, ends), torch.autograd.grad(plain, weights, ends), strict=True
    ):
        torch.testing.assert_close(mine, other)
        assert mine.abs().sum() > 0


def test_records_become_bytes_without_a_copy():
    obs = make_obs(3)
    assert as_tensor(obs).data_ptr() == obs.ctypes.data
