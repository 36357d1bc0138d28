"""Games for one: agents and bots, each in games of their own."""

import pytest

from commandline import ludus, one_line  # noqa: F401
from ludus import games, match
from ludus.config import resolve
from ludus.core.errors import Usage
from trainings import trained  # noqa: F401

GEMFALL = "retro:Gemfall-Nes-v0"


def rows(out: str) -> dict[str, list[str]]:
    return {words[0]: words[1:] for words in map(str.split, out.splitlines()) if words}


def test_bots_are_evaluated_beside_an_agent(trained, ludus):  # noqa: F811
    pytest.importorskip("stable_retro")
    sizes = {"rows": 2, "steps": 8, "decisions": 32, "workers": "0"}
    folder, _ = trained(GEMFALL, **sizes, switches={"max_steps": 40, "size": 24})
    code, out, _ = ludus("eval", str(folder), "--against", "scripted", "random", "--games", "4")
    shown = rows(out)
    assert code == 0 and list(shown) == ["agent", folder.name, "scripted", "random"]
    assert all(shown[name][0] == "4" for name in (folder.name, "scripted", "random"))
    code, out, _ = ludus(
        "eval", GEMFALL, "--bots", "scripted", "--games", "4", "--set", "max_steps=40", "size=24"
    )
    assert code == 0 and rows(out)["scripted"] == shown["scripted"]  # the same games
    code, _, err = ludus("eval", str(folder), "--against", "greedy")
    assert code == 2 and "has no bot 'greedy': choose --against random or scripted" in one_line(err)


def test_scripted_knows_one_game_and_needs_its_buttons():
    pytest.importorskip("stable_retro")
    assert games.open("retro:Airstriker-Genesis-v0").bots == ["random"]
    with pytest.raises(Usage, match="needs the buttons A, LEFT\\+A, RIGHT\\+A"):
        match.bot_alone(games.open(GEMFALL, buttons=["LEFT"]), "scripted", 2, 0)


def test_scores_of_console_games_leave_out_what_is_paid_to_learn_by():
    paid = {"life_lost": -5.0, "time": -0.1, "size": 24}
    assert games.open(GEMFALL, **paid).for_evaluation().switches == {"size": 24}
    alone = games.open(GEMFALL, integration=0.0, **paid)
    assert alone.for_evaluation() is alone  # nothing else is paid


def test_atari_has_a_preset_and_counts_scores_in_full():
    pytest.importorskip("ale_py")
    config = resolve("gym:ALE/Pong-v5")
    assert config.switches == {"clip_rewards": True} and config.settings.epochs == 4 and config.rows == 8
    game = games.open(config.game, **config.switches)
    assert not game.for_evaluation().switches["clip_rewards"]
    other = resolve("gym:CartPole-v1")
    assert other.switches == {} and other.settings.epochs == 10
    plain = games.open("gym:CartPole-v1")
    assert plain.for_evaluation() is plain
