"""What the page's worker processes do: rules, bots, networks and searches. Nothing here runs in the server.

A game is its deal and the actions so far, so that any worker can go on with it, and a worker that died loses
nothing. Workers keep what is expensive to make: opened games, bots and positions.
"""

import functools
from collections import OrderedDict
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

import numpy as np

from ludus import algos, games, match, records, switches
from ludus.algos.agent import LookAhead, PolicyBot
from ludus.analysis import Idea, ideas_of, read_moves, start
from ludus.core import seeds
from ludus.core.errors import Failure, Usage
from ludus.core.game import CHAMPION, RANDOM, NativeGame
from ludus.core.rules import Bot, Remembers, Rules, States, Streams, legal_actions
from ludus.core.screen import BoardScreen
from ludus.core.view import BoardView, Json, Move, View, as_text
from ludus.search import Thinker
from ludus.search.bot import SEARCH, bot_names, player_names, warm_up
from ludus.store.player import full_name, parse_player
from ludus.store.run import peek_config, read_config
from ludus.ui.web import table_engine
from ludus.ui.web.deal import THINKING, Deal

HINT_THINKING, HINT_ROLLOUTS, HINTS, HEAT = "1 s", 32, 5, 60
"""How long hints take, futures of a policy's, moves that are listed, and moves that a heat map adds up."""
MOST_LINES = 64
"""Games whose positions a worker remembers."""
MOST_WHOLE = 1000
"""The largest whole number of a rule switch, so that nobody asks for an endless game."""
ONLY = np.zeros(1, np.int64)


@functools.lru_cache(16)
def _game(name: str, words: tuple[str, ...]) -> NativeGame:
    game = games.open(name, **switches.parsed(name, list(words))).native("played here")
    for switch, value in asdict(game.options).items():
        if isinstance(value, int) and not 0 <= value <= MOST_WHOLE:
            raise Usage(f"{switch} is from 0 to {MOST_WHOLE}, not {value}")
    warm_up(game)
    return game


@functools.lru_cache(16)
def _view(name: str, words: tuple[str, ...]) -> View:
    return _game(name, words).make_view()


# ---- who can play


def describe(name: str, words: tuple[str, ...], runs: tuple[tuple[str, str], ...]) -> Json:
    """What a page needs to know of a game before it begins. runs: names and folders"""
    if games.find(name).page != "rules":
        return table_engine.describe(name, runs)
    game = _game(name, words)
    native = game.spec
    view = _view(name, words)
    return {
        "title": game.description().partition(":")[0],
        "about": game.description(),
        "page": game.page,
        "seats": native.seats,
        "hidden": native.hidden,
        "bots": bot_names(game),
        "champion": game.champion is not None and _fits(game, CHAMPION),
        "runs": [run for run, folder in runs if _fits(game, folder)],
        "switches": [_switch(game, switch) for switch in switches.listed(game.options_type)],
        "script": "own" if game.web_script else "board" if isinstance(view, BoardView) else "plain",
        "marks": list(screen.marks) if isinstance(screen := game.make_screen(), BoardScreen) else [],
        "colours": list(screen.colours) if isinstance(screen, BoardScreen) else [],
    }


def _switch(game: NativeGame, switch: switches.Switch) -> Json:
    choices: tuple[Any, ...] = ()
    if get_origin(switch.kind) is Literal:
        choices = get_args(switch.kind)
    elif switch.kind is bool:
        choices = (False, True)
    value = getattr(game.options, switch.name)
    return {"name": switch.name, "help": switch.help, "choices": list(map(str, choices)), "value": str(value)}


def _fits(game: NativeGame, player: str) -> bool:
    """Whether an agent's network can play by these rules."""
    try:
        found = parse_player(player, game.champion)
        if found.run is None or peek_config(found.run).game != game.name:
            return False
        match.refuse_other_rules(found, game)
    except Failure:
        return False
    return True


# ---- positions

_lines: OrderedDict[tuple[Any, ...], tuple[tuple[int, ...], list[tuple[States, Streams]]]] = OrderedDict()


def _played(deal: Deal, actions: tuple[int, ...]) -> list[tuple[States, Streams]]:
    """The position before each action, and the one after the last, with the stream of its chance."""
    rules, key = _game(deal.game, deal.switches).rules, (deal.game, deal.switches, deal.seed, deal.row)
    known, line = _lines.pop(key, ((), []))
    if not line:
        line = [start(rules, deal.seed, deal.row)]
    same = 0
    while same < min(len(known), len(actions)) and known[same] == actions[same]:
        same += 1
    line = line[: same + 1]
    for action in actions[same:]:
        states, rng = line[-1][0].copy(), line[-1][1].copy()
        rules.play(states, np.array([action], np.int32), rng)
        line.append((states, rng))
    _lines[key] = actions, line
    if len(_lines) > MOST_LINES:
        _lines.popitem(last=False)
    return line


def position(deal: Deal, actions: tuple[int, ...]) -> Json:
    """The game as the persons in it may see it, or as who looks on does."""
    game, view = _game(deal.game, deal.switches), _view(deal.game, deal.switches)
    rules, line = game.rules, _played(deal, actions)
    states = line[-1][0]
    over = bool(rules.over(states)[0])
    movers = [int(rules.seat(states)[0]) for states, _ in line]
    seat = _viewer(deal, movers)
    since = _since(movers, len(actions), seat)
    recent = [Move(line[number][0][0], actions[number]) for number in range(since, len(actions))]
    shown = view.show(states[0], seat, recent[-1:] if seat is None else recent)
    settled = _settled(view, line, actions, max(0, since - 1), seat)
    return {
        **shown,
        "number": len(actions),
        "hidden": game.spec.hidden,
        "over": over,
        "turn": None if over else movers[-1],
        "score": _score(rules, states),
        "log": [[movers[n], _said(game, line[n][0][0], action, seat in (None, movers[n]))]
                for n, action in enumerate(actions)],
        "settled": settled,
        "ending": _ending(deal, rules, states, settled) if over else "",
        "text": _text(deal, game, line, actions, over),
    }  # fmt: skip


def _viewer(deal: Deal, movers: list[int]) -> int | None:
    """The seat whose view is shown: the person's who is to move, or who moved last."""
    persons = deal.persons
    return next((seat for seat in reversed(movers) if seat in persons), persons[0] if persons else None)


def _since(movers: list[int], count: int, seat: int | None) -> int:
    """The number of the first move after the seat's last one."""
    own = [number for number in range(count) if movers[number] == seat]
    return own[-1] + 1 if own else 0


def _settled(
    view: View, line: list[tuple[States, Streams]], actions: tuple[int, ...], first: int, seat: int | None
) -> list[Json]:
    found = []
    for number in range(first if seat is not None else max(0, len(actions) - 1), len(actions)):
        before, after = line[number][0][0], line[number + 1][0][0]
        said = view.settled(before, actions[number], after, seat)
        if said:
            found.append({"number": number + 1, **said})
    return found


def _score(rules: Rules, states: States) -> list[float]:
    score = np.zeros((1, rules.spec.seats), np.float32)
    rules.score(states, score)
    return [float(points) for points in score[0]]


def _said(game: NativeGame, state: np.void, action: int, open_to_all: bool) -> str:
    """A move in the list of moves, without what is hidden."""
    if open_to_all or not game.spec.hidden:
        return game.rules.action_text(state, action)
    return as_text(game.make_screen().told(state, action)).strip()


def _result(deal: Deal, rules: Rules, states: States) -> str:
    points = _score(rules, states)
    return ", ".join(f"{name} {one:+g}" for name, one in zip(deal.names, points, strict=True))


def _ending(deal: Deal, rules: Rules, states: States, settled: list[Json]) -> str:
    told = "" if not settled else f"{settled[-1]['text']} "
    return f"{told}Final score: {_result(deal, rules, states)}."


def _text(
    deal: Deal, game: NativeGame, line: list[tuple[States, Streams]], actions: tuple[int, ...], over: bool
) -> str:
    """The record of a game that hides nothing, or nothing any more."""
    if game.spec.hidden and not over:
        return ""
    rules, persons = game.rules, deal.persons
    seat = persons[0] if persons else 0
    others = {name for other, name in enumerate(deal.names) if other != seat}
    moves = [rules.action_text(line[n][0][0], action) for n, action in enumerate(actions)]
    against = others.pop() if len(others) == 1 else ""
    result = _result(deal, rules, line[-1][0]) if over else "unfinished"
    told = asdict(game.options)
    return records.Record(deal.game, deal.seed, seat, against, told, moves, result, deal.row).line()


# ---- moves


def play(deal: Deal, actions: tuple[int, ...], action: int) -> Json:
    """The position after a person's move."""
    rules, states = _game(deal.game, deal.switches).rules, _played(deal, actions)[-1][0]
    if rules.over(states)[0] or action not in legal_actions(rules, states[0]):
        raise Usage("this move is not possible now")
    return position(deal, (*actions, action))


def answer(deal: Deal, actions: tuple[int, ...]) -> tuple[int, Json]:
    """What the bot or agent whose turn it is does, and the position after it."""
    action = _answer(deal, actions)
    return action, position(deal, (*actions, action))


def _answer(deal: Deal, actions: tuple[int, ...]) -> int:
    game, line = _game(deal.game, deal.switches), _played(deal, actions)
    movers = [int(game.rules.seat(states)[0]) for states, _ in line]
    bot = _bot(deal.game, deal.switches, deal.players[movers[-1]], deal.think)
    number = len(actions)
    if not isinstance(bot, Remembers):
        return int(bot.choose(line[number][0].copy(), _choice(deal, number))[0])
    bot.start(1)
    chosen = np.zeros(1, np.int32)
    for n in range(number + 1):
        if deal.players[movers[n]] == deal.players[movers[-1]]:  # all that it saw until now
            chosen = bot.choose_in(ONLY, line[n][0].copy(), _choice(deal, n))
    return int(chosen[0])


def _choice(deal: Deal, number: int) -> Streams:
    return seeds.rows(deal.seed, 1, "choice", number)


@functools.lru_cache(4)  # a search may take a hundred megabytes
def _bot(name: str, words: tuple[str, ...], player: str, think: str) -> Bot:
    game = _game(name, words)
    if not Path(player).is_absolute() and player not in player_names(game):
        raise Usage(f"{name} has no player {player!r}")  # a folder that merely has this name is none
    found = parse_player(player, game.champion)
    if found.run is None:
        warm_up(game, [found.name])
        time = THINKING[think][0] if found.name == SEARCH else ""
    else:
        config = read_config(found.run)
        searches = algos.find(config.algo).searches
        time = "" if config.net.memory else THINKING[think][0 if searches else 1]
    return match.player(full_name(found.name, found.at, time), game)


# ---- thoughts


def advise(deal: Deal, actions: tuple[int, ...], adviser: str) -> Json:
    """What a player thinks of the position: its moves, the best first, with their shares and values."""
    game, (states, _) = _game(deal.game, deal.switches), _played(deal, actions)[-1]
    if game.rules.over(states)[0]:
        return {"ideas": [], "heat": [], "values": []}
    bot, rng = (
        _bot(deal.game, deal.switches, adviser, HINT_THINKING),
        seeds.rows(deal.seed, 1, "hint", len(actions)),
    )
    values: Sequence[float] = ()
    if isinstance(bot, Thinker):
        found = bot.think(states.copy(), rng)
        ideas, values = ideas_of(found), found.value[0].tolist()
    elif isinstance(bot, PolicyBot):
        ahead = LookAhead(game.rules, bot.policy, HINT_ROLLOUTS)
        weighed = zip(*ahead.weigh(states.copy(), rng), strict=True)
        ideas = [Idea(int(a), HINT_ROLLOUTS, float(share), float(value)) for a, share, value in weighed]
        ideas.sort(key=lambda idea: -idea.value)
    elif isinstance(bot, Remembers):
        raise Usage("an agent with memory can't say what it thinks: choose another for hints")
    else:
        ideas = [Idea(int(bot.choose(states.copy(), rng)[0]), 0, 1.0, 0.0)]
    ideas = ideas[:1] + [idea for idea in ideas[1:] if idea.visits]
    return {
        "ideas": [_idea(game.rules, states[0], idea) for idea in ideas[:HINTS]],
        "heat": [[idea.action, round(idea.share, 4)] for idea in ideas[:HEAT] if idea.share > 0],
        "values": [round(value, 3) for value in values],
    }


def _idea(rules: Rules, state: np.void, idea: Idea) -> Json:
    return {
        "action": idea.action,
        "text": rules.action_text(state, idea.action),
        "share": round(idea.share, 4),
        "value": round(idea.value, 3) if idea.visits else None,
        "visits": idea.visits,
    }


# ---- recorded games


def read_record(line: str) -> tuple[Deal, tuple[int, ...]]:
    """A game that was recorded as one line of text, to be looked at."""
    record = records.parse(line, "this text", games.native_names())
    words = tuple(f"{name}={value}" for name, value in record.switches.items())
    rules = _game(record.game, words).rules
    actions = tuple(read_moves(rules, record.moves, record.seed, record.row))
    names = _names(record, rules.spec.seats)
    nobody = (RANDOM,) * rules.spec.seats  # nobody's view: all is shown
    deal = Deal(record.game, words, record.seed, nobody, names, row=record.row)
    return deal, actions


def _names(record: records.Record, seats: int) -> tuple[str, ...]:
    """Who played: the result names everybody in the order of seats, once there is one."""
    told = [part.strip().rpartition(" ")[0] for part in record.result.split(",")]
    if len(told) == seats and all(told):
        return tuple(told)
    return tuple("you" if seat == record.seat else record.against or f"seat {seat}" for seat in range(seats))
