"""The real simulator for tests, installed once. They are skipped where there is no Node, and say so."""

import functools
import warnings

import numpy as np
import pytest

from ludus.core.errors import Failure
from ludus.games.pokemon import install
from ludus.games.pokemon.server import Server, free_port


@functools.cache
def problem() -> str:
    """Why the simulator can't be used here, or nothing."""
    try:
        install.find_node()
    except Failure as error:
        return str(error)
    install.install()  # if this fails, so shall the tests
    return ""


def needs_simulator() -> None:
    if problem():
        warnings.warn(f"the Pokémon simulator is NOT tested: {problem()}", stacklevel=2)
        pytest.skip(problem())


@pytest.fixture(scope="module")
def showdown():
    """The address of a Showdown server, for a whole module."""
    needs_simulator()
    with Server(free_port()) as server:
        yield server.address


def random_choice(legal: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """legal: bool [N, A]"""
    return (rng.random(legal.shape) * legal).argmax(1).astype(np.int32)
