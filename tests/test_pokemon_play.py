"""A person in the terminal, an agent with a memory, and what rewards are worth."""

import re
from pathlib import Path

import numpy as np
import pytest

from commandline import one_line
from ludus.games.pokemon import story
from ludus.games.pokemon.rewards import PARTS, Normaliser, Rewards
from ludus.games.pokemon.table import PokemonTable
from pokemon_setup import needs_simulator, random_choice


def test_a_person_plays_a_whole_battle(ludus):
    needs_simulator()
    code, out, err = ludus("play", "pokemon", "--against", "max_power", "--seed", "3", typed="1\n" * 300)
    assert code == 0, err
    assert "you have seat 0, max_power the other; seed 3" in out
    assert re.search(r"1  .* \(about \d+ %\)", out), "moves with what they do"
    assert "switch to " in out and "comes in (100 %)." in out and "Turn 5" in out
    assert out.count("faints.") >= 6
    shown = "You win." if "You won." in out else "You lose."
    assert shown in out
    assert out.endswith("saved as pokemon-3.html\n")
    log = Path("pokemon-3.html").read_text(encoding="utf-8")
    assert log.count("|win|") == 1 and "|move|p1a: " in log
    first = out.partition("moves seen")[2].partition("your team")[0]
    assert len(re.findall(r" L\d+ ", first)) == 1, "the opponent's bench is not known"


def test_a_person_asks_errs_and_resigns(ludus):
    needs_simulator()
    typed = "?\nnonsense\n99\n\n2\nresign\n"
    code, out, err = ludus(
        "play", "pokemon", "--seat", "1", "--seed", "1", "--record", "mine.html", typed=typed
    )
    assert code == 0, err
    assert "you have seat 1, heuristic the other" in out, "the strongest bot is the default"
    assert "Type the number of a move" in out and "99 is not one of the numbers 1 to" in out
    assert "You resigned." in out and Path("mine.html").exists()
    code, _, err = ludus("play", "pokemon", "--seed", "1", typed="1\n")
    one_line(err)
    assert code == 1 and "input ended before the game was over" in err
    code, _, err = ludus("play", "pokemon", "--against", "nobody")
    assert code == 2 and "pokemon has no bot 'nobody': choose from random, max_power, heuristic" in err


@pytest.mark.parametrize(
    "line, words",
    [
        ("|move|p1a: Ditto|Pound|p2a: Mew", "your Ditto uses Pound."),
        ("|-damage|p2a: Mew|57/100 brn|[from] item: Life Orb", "  the opponent's Mew: 57 % brn (Life Orb)"),
        ("|-sidestart|p1: me|move: Stealth Rock", "  Stealth Rock is on your side."),
        ("|-weather|RainDance|[upkeep]", None),
        ("|win|p1", "You win."),
        ("|cant|p2a: Mew|slp", "the opponent's Mew can't move (slp)."),
    ],
)
def test_lines_in_words(line, words):
    assert story.told([line], "p1") == ([] if words is None else [words])


def test_a_memory_trains_and_plays(ludus):
    """An LSTM, with the teacher and the bots of the preset, in one process."""
    needs_simulator()
    code, _, err = ludus(
        "train", "pokemon", "--preset", "test", "--run", "runs/x", "--decisions", "192", "--workers", "0",
        "--net.memory", "8", "--eval-every", "0", "--set", "normalise=true",
    )  # fmt: skip
    assert code == 0, err
    code, out, err = ludus("eval", "runs/x", "--against", "random", "--games", "2")
    assert code == 0 and "random" in out, err
    code, out, err = ludus("play", "pokemon", "--run", "runs/x", "--seed", "1", typed="1\n1\nq\n")
    assert code == 0 and "runs/x the other" in out and "You resigned." in out, err


def test_normalised_parts_are_as_large_as_their_weights():
    weights = Rewards(win=1, knock_out=0.5, hit_points=0.1, turn=0.01, normalise=True)
    rng, normaliser = np.random.default_rng(0), Normaliser(weights.weights())
    sizes = np.array([1, 0.5, 0, 0.03, 0, 0.01, 0])  # of what the parts usually pay, before
    for _ in range(200):
        raw = sizes * rng.choice([-1.0, 0.0, 1.0], (8, 2, len(PARTS)))
        paid = normaliser.scaled(raw)
        assert np.array_equal(np.sign(paid), np.sign(raw))
    found = np.sqrt(np.square(paid).sum((0, 1)) / np.maximum((paid != 0).sum((0, 1)), 1))
    np.testing.assert_allclose(found, [1, 0.5, 0, 0.1, 0, 0.01, 0], rtol=1e-6)


def test_normalised_rewards_add_up_and_cancel():
    needs_simulator()
    table = PokemonTable(4, rewards=Rewards(hit_points=0.1, knock_out=0.1, normalise=True))
    rng, paid, seen = np.random.default_rng(3), np.zeros((4, 2)), 0
    try:
        turn = table.reset(3)
        while seen < 3:
            turn = table.step(random_choice(turn.legal, rng))
            paid += turn.reward
            np.testing.assert_allclose(turn.reward.sum(1), 0, atol=1e-5)
            if turn.finished is None:
                continue
            for row, stats in zip(turn.finished.rows, turn.finished.stats, strict=True):
                np.testing.assert_allclose(paid[row], stats[:, -len(PARTS) :].sum(1), atol=1e-4)
                paid[row], seen = 0, seen + 1
    finally:
        table.close()
