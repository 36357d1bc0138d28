"""Every game that comes with Ludus trains, whatever it lives in, and shows itself on the command line."""

import pytest

from commandline import one_line
from ludus import games
from ludus.switches import listed
from pokemon_setup import needs_simulator

FAST = {"decisions": 1, "log_s": 60.0, "workers": "0", "eval_every": "0"}


@pytest.mark.parametrize("game", games.names())
def test_every_game_trains_is_saved_and_goes_on(game, trained):
    if game == "pokemon":
        needs_simulator()
    folder, readings = trained(game, **FAST)
    first = readings[-1]["decisions"]
    _, readings = trained(game, **{**FAST, "decisions": first + 1, "run": str(folder)})
    assert readings[-1]["decisions"] > first > 0


@pytest.mark.parametrize("game", games.names())
def test_a_games_own_commands_are_found(game, ludus):
    code, out, err = ludus(game, "--help")
    commands = games.find(game).commands()
    if not commands:
        assert code == 2 and "has no commands of its own" in one_line(err)
    else:
        assert code == 0 and all(name in out for name in commands)


def test_an_unknown_command_of_a_game_is_one_line(ludus):
    code, _, err = ludus("retro", "impotr", ".")
    assert code == 2 and "impotr" in one_line(err)


@pytest.mark.parametrize("game", [name for name in games.names() if games.find(name).options_type])
def test_every_switch_says_what_it_does(game):
    assert all(switch.help for switch in listed(games.find(game).options_type))
