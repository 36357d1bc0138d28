"""Battles on a real Showdown server: agents that play there, and tables whose battles are there."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from commandline import one_line
from ludus.core.errors import Usage
from ludus.games.pokemon import layout
from ludus.games.pokemon.rewards import FACTS
from ludus.games.pokemon.server import addresses, free_port
from ludus.games.pokemon.table import STATS, PokemonTable
from pokemon_setup import needs_simulator, random_choice

pytest.importorskip("poke_env", reason="the extra `pokemon` is not installed")


def test_a_table_of_battles_on_a_server(showdown):
    table = PokemonTable(3, servers=(showdown,), max_turns=8)
    rng, cut, steps = np.random.default_rng(1), 0, 0
    try:
        turn = table.reset(1)
        assert (turn.seat == 0).all() and turn.obs["field"][:, 0].max() == pytest.approx(0.01)
        while cut < 3:
            turn = table.step(random_choice(turn.legal, rng))
            steps += 1
            assert turn.legal.any(1).all() and steps < 200
            if turn.finished is None:
                continue
            for row, score, stats in zip(*turn.finished[:3], strict=True):
                stat = dict(zip(STATS, stats.T, strict=True))
                if turn.truncated[row]:
                    cut += 1
                    assert stat["turns"].tolist() == [9, 9] and not score.any()
                    assert sorted(turn.last_obs.seats[turn.last_obs.rows == row]) == [0, 1]
                else:
                    assert turn.ended[row] and sorted(score) == [-1, 1]
                    assert stat["fainted"][score < 0] == 6
        meters = table.pool.meters
        assert meters.invalid == meters.defaults == 0 and not meters.lost
    finally:
        table.close()


def test_both_backends_show_and_pay_the_same(showdown, tmp_path):
    """A battle without luck, by the same actions: fixed damage to both, then one switches."""
    pokemon = "{} (M)\nAbility: {}\nEVs: 4 HP\n- Seismic Toss\n- Rest\n\n"
    (tmp_path / "team.txt").write_text(
        pokemon.format("Snorlax", "Immunity") + pokemon.format("Machamp", "Guts")
    )
    seen = []
    for servers in ((), (showdown,)):
        table = PokemonTable(1, "gen3customgame", team=str(tmp_path / "team.txt"), servers=servers)
        try:
            turn, turns = table.reset(1), []
            for action in (0, 0, 9, 0, 0, 0):
                turn = table.step(np.array([action]))
                turns.append((turn.obs.copy(), turn.legal.copy(), turn.seat.copy()))
            seen.append((turns, table._facts[0].copy()))
        finally:
            table.close()
    (ours, our_facts), (theirs, their_facts) = seen
    for one, other in zip(ours, theirs, strict=True):
        for name in layout.OBS.names:
            np.testing.assert_array_equal(one[0][name], other[0][name], err_msg=name)
        np.testing.assert_array_equal(one[1], other[1])
        np.testing.assert_array_equal(one[2], other[2])
    assert our_facts[FACTS.index("lost")].min() > 0.4 and our_facts[FACTS.index("switched")].tolist() == [
        1,
        0,
    ]
    np.testing.assert_allclose(our_facts, their_facts, atol=1e-3)


def test_a_lost_connection_is_made_again(showdown):
    table = PokemonTable(2, servers=(showdown,))
    try:
        turn = table.reset(1)
        turn = table.step(turn.legal.argmax(1))
        connection = table.pool._servers[0].clients[1]._connection
        asyncio.run_coroutine_threadsafe(connection.websocket.close(), connection.loop).result(10)
        turn = table.step(turn.legal.argmax(1))
        assert turn.truncated.all() and (turn.seat == 0).all() and turn.legal.any(1).all()
        assert table.pool.meters.lost == {"the connection to the server is lost": 1}
    finally:
        table.close()


def test_bots_meet_on_a_server(showdown, ludus):
    """One waits for challenges in a process of its own, the other challenges it."""
    told = [sys.executable, "-m", "ludus.cli", "play", "pokemon", "--server", showdown, "--battles", "2"]
    host = subprocess.Popen(
        [*told, "--user", "ann", "--against", "random"], stdout=subprocess.PIPE, text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )  # fmt: skip
    try:
        lines = [host.stdout.readline(), host.stdout.readline()]
        assert lines == [f"ann is on {showdown}\n", "ann waits for challenges to gen9randombattle\n"]
        code, out, err = ludus(*told[3:], "--user", "bob", "--challenge", "ann", "--seed", "1")
        assert code == 0, err
        rest = host.communicate(timeout=30)[0]
    finally:
        host.kill()
        host.wait()
    won = [line.split(" ")[2] for line in out.splitlines() if " against ann in " in line]
    lost = [line.split(" ")[2] for line in rest.splitlines() if " against bob in " in line]
    assert len(won) == 2 and [{"won": "lost", "lost": "won"}[one] for one in won] == lost
    assert "battle 1 begins: http://127.0.0.1:" in out and host.returncode == 0


def test_training_on_a_server_of_its_own(ludus):
    needs_simulator()
    code, _, err = ludus(
        "train", "pokemon", "--preset", "test", "--run", "runs/x", "--decisions", "64", "--workers", "0",
        "--eval-every", "0", "--set", "backend=websocket",
    )  # fmt: skip
    assert code == 0, err
    assert 'backend = "websocket"' in Path("runs/x/config.toml").read_text()


def test_mistakes_are_told_in_a_line(showdown, ludus):
    play = ("play", "pokemon", "--against", "random", "--server")
    code, _, err = ludus(*play, f"ws://127.0.0.1:{free_port()}/showdown/websocket")
    one_line(err)
    assert code == 1 and "there is no Showdown server at ws://127.0.0.1:" in err
    code, _, err = ludus(*play, "127.0.0.1:8000")
    assert code == 2 and "'127.0.0.1:8000' is no server: write it as in ws://" in err
    code, _, err = ludus(*play, showdown, "--challenge", "nobody here")
    assert code == 2 and "the server says: " in err
    code, _, err = ludus("play", "tictactoe", "--server", showdown)
    assert code == 2 and "tictactoe has no servers to play on: leave out --server" in err


def test_ranges_of_ports():
    assert addresses("") == ("",)
    assert addresses("ws://a:8000-8001/x, ws://b:9/x") == ("ws://a:8000/x", "ws://a:8001/x", "ws://b:9/x")
    with pytest.raises(Usage, match="has no range of ports"):
        addresses("ws://a:8001-8000/x")
