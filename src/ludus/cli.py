"""The command line: what can be asked, and how errors are told. What is done lives in `commands` and `ui`.

Commands import what they need when they run, so that `ludus --help` is instant.
"""

import functools
import os
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import tyro
from tyro.conf import Positional, UseAppendAction, arg
from tyro.extras import SubcommandApp

from ludus import __version__
from ludus.core.errors import Failure, Usage

DESCRIPTION = (
    "Ludus trains agents for games in parallel, and lets people watch and play them. "
    "Add --debug to any command to see the traceback of an error."
)
GAME = "A game of `ludus games`, gym:ID, zoo:ID, module:Class of an environment, or the module of a game."
INTERRUPTED = 130

Game = Annotated[Positional[str], arg(metavar="GAME", help=GAME)]
Switches = Annotated[
    tuple[tuple[str, ...], ...],
    UseAppendAction,
    arg(
        name="set",
        metavar="SWITCH=VALUE",
        help="Rule switches, as in `--set seats=2 jokers=0`; `ludus games GAME` lists them.",
    ),
]
Trust = Annotated[
    bool, arg(help="Let the run import the code of its game, from now on. Your own runs may do so anyway.")
]


class Commands(SubcommandApp):
    """Reads a command's arguments without running it: mistakes in flags are told apart from its own."""

    names: tuple[str, ...] = ()

    def command(self, func: Any = None, *, name: str | None = None, **options: Any) -> Any:
        if func is None:
            return functools.partial(self.command, name=name, **options)

        @functools.wraps(func)
        def read(*args: Any, **given: Any) -> Callable[[], None]:
            return functools.partial(func, *args, **given)

        name = name or func.__name__
        self.names += (name,)
        super().command(name=name, **options)(read)
        return func


app = Commands()


@app.command
def games(
    name: Annotated[Positional[str | None], arg(metavar="[GAME]")] = None,
    /,
    check: bool = False,
) -> None:
    """What can be played. With a game: its rule switches and bots.

    Args:
        name: A game of the list, or the module of your own.
        check: Check that the game keeps every promise of the Rules contract.
    """
    from ludus.commands import games as command

    command.show(name, check)


@app.command
def play(
    game: Game,
    /,
    *,
    seat: int = 0,
    against: str | None = None,
    run: str | None = None,
    think: str = "",
    seed: int | None = None,
    row: int = 0,
    record: str | None = None,
    server: str = "",
    user: str = "",
    challenge: str = "",
    ladder: bool = False,
    battles: int = 1,
    switches: Switches = (),
) -> None:
    """Play in the terminal against bots, or the agent of a run. With --server, bot or agent play there.

    Args:
        seat: Your seat.
        against: The bot in the other seats, or `champion`, the agent that comes with some games. Default: the
            strongest bot.
        run: The folder of a run whose agent takes the other seats, under the rules it was trained on.
        think: How far the opponent looks ahead, as 400 (positions or futures), or how long, as 100ms;
            0 turns look-ahead off: the network's first choice is played.
        seed: The same seed deals the same game.
        row: Which deal of the seed, as recorded games of `ludus eval` say it.
        record: A file to which the game is added as one line; `ludus analyze --file` reads it, and the page
            of `ludus web` shows those that end in .games in the folder of the runs. Of Pokémon it is the
            replay, by default GAME-SEED.html. For console games FILE.bk2: one game of the agent of --run, or
            of the bot of --against, to be played again, also by that page.
        server: A server of the game on which the agent or bot plays against whoever is there, as in
            ws://127.0.0.1:8000/showdown/websocket. Pokémon has such servers.
        user: Its name there; $SHOWDOWN_PASSWORD has the password, if it needs one. Default: a new name.
        challenge: Whom it challenges there. Default: it takes all challenges.
        ladder: Have the server find opponents.
        battles: How many it plays there.
    """
    if server:
        from ludus.core.game import Visit
        from ludus.ui import table_play

        visit = Visit(server, user, table_play.password(), challenge, ladder, battles)
        opened = table_play.opened(game, run, _flat(switches))
        return table_play.play_online(opened, against, run, visit, seed)
    if record is not None and record.endswith(".bk2"):
        from ludus.commands import film

        return film.record(game, run, against, seed or 0, record, _flat(switches))
    from ludus.ui.play import play_in_terminal

    play_in_terminal(game, seat, against, run, think, seed, record, _flat(switches), row)


@app.command(name="eval")
def evaluate(
    game: Game,
    /,
    *,
    run: str | None = None,
    bots: tuple[str, ...] = (),
    against: tuple[str, ...] = (),
    at: str = "",
    think: str = "",
    hands: int | None = None,
    games: int | None = None,
    opening: int | None = None,
    engine: str = "",
    seed: int = 0,
    record: str | None = None,
    trust: Trust = False,
    switches: Switches = (),
) -> None:
    """Matches on mirrored deals: a run's agent against bots, or a tournament between a game's bots.

    Args:
        run: The folder of a run of GAME: `ludus eval GAME --run RUN` is the same as `ludus eval RUN`.
        bots: Who plays the tournament. `champion` and a run's folder count as bots. Default: all bots of the
            game.
        against: The opponents of a run's agent, or of each of the bots. Default: all bots of the game. Some
            games also know programs that play them, such as `gtp:COMMAND` (see the page of the game).
        at: Which checkpoint of the run: `best`, or a milestone by its decisions. Default: the newest.
        think: How far the run's agent, or each of the bots, looks ahead, as 400, or how long, as 100ms;
            0 turns look-ahead off: the network's first choice is played. For agents among the opponents too,
            unless they say how far, as `champion+400`.
        hands: Hands of each match, for games that are sessions of hands. Default: 10,000.
        games: Games of each match. Default: 1,000, or 200 if somebody searches.
        opening: First moves that are made at random, the same for each seat. Default: as the game says, or
            2 if it has no chance, so that no two games are the same.
        engine: The program of such an opponent, if it is not on the PATH.
        seed: The same seed deals the same cards.
        record: A file to which every game is added as one line, as of `ludus play --record`.
    """
    from ludus import games as opened_games
    from ludus.commands import eval as command
    from ludus.match import MatchOptions, refuse_unknown_run
    from ludus.store.run import is_run, read_config, trust_run
    from ludus.switches import parsed

    words, how = _flat(switches), MatchOptions(hands, games, seed, opening, engine, record)
    if run is not None:
        read_config(Path(run), game)  # fails if it is another game's
        game = run
    if is_run(Path(game)):
        if trust:
            trust_run(Path(game))
        return command.evaluate_run(Path(game), at, list(against), think, words, how)
    refuse_unknown_run(game)
    opened = opened_games.open(game, **parsed(game, words))
    command.run_tournament(opened, list(bots), list(against), think, how)


@app.command
def gtp(
    game: Game,
    /,
    *,
    run: str | None = None,
    bot: str | None = None,
    think: str = "",
    seed: int = 0,
    switches: Switches = (),
) -> None:
    """Play a game by the Go Text Protocol (GTP) on stdin and stdout, for other programs. Blokus knows it.

    Args:
        run: The folder of a run whose agent plays.
        bot: The bot that plays, or `champion`. Default: the strongest bot.
        think: How far it looks ahead, as 400 (positions), or how long, as 100ms;
            0 turns look-ahead off: the network's first choice is played.
        seed: The same seed and the same commands give the same replies.
    """
    from ludus.commands import gtp as command

    command.serve(game, run, bot, think, seed, _flat(switches))


@app.command
def analyze(
    game: Game,
    /,
    *,
    run: str | None = None,
    bot: str = "search",
    think: str = "",
    moves: str | None = None,
    file: str | None = None,
    png: str | None = None,
    seed: int = 0,
    switches: Switches = (),
) -> None:
    """What a search thinks of each move of a game: its best moves, what they are worth, what a move lost.

    Args:
        run: The folder of a run whose agent thinks.
        bot: The bot that thinks, or `champion`, without a run.
        think: How long it thinks about a position: `400` positions ahead, or `100ms`.
        moves: The game, as moves with blanks between them; without one, the thinker plays against itself.
        file: A file with the moves, with blanks or lines between them; # begins a comment. Of a file of
            `ludus play --record`, the last game.
        png: A folder for pictures: the board before each move, and the values over the game.
        seed: The same seed deals and thinks the same.
    """
    from ludus.commands import analyze as command

    command.analyze(game, run, bot, think, moves, file, png, seed, _flat(switches))


@app.command
def bench(game: Game, /, *, rows: int = 1024, seconds: float = 3.0, switches: Switches = ()) -> None:
    """Measure the speed of a table on one core, with random legal actions.

    Args:
        rows: Games side by side.
        seconds: How long to measure.
    """
    from ludus.commands import bench as command

    command.measure(game, rows, seconds, _flat(switches))


@app.command
def train(words: Annotated[tuple[str, ...], Positional, arg(metavar="GAME [FLAGS]")] = (), /) -> None:
    """Train an agent. `ludus train GAME --help` lists every flag with the game's own values."""
    from ludus.commands import train as command

    command.run(list(words))


@app.command
def resume(
    words: Annotated[tuple[str, ...], Positional, arg(metavar="RUN|latest|URL [FLAGS]")] = (), /
) -> None:
    """Go on with a run from its newest checkpoint or mirror. `ludus resume --help` lists the flags."""
    from ludus.commands import train as command

    command.resume(list(words))


@app.command
def sweep(words: Annotated[tuple[str, ...], Positional, arg(metavar="GAME [FLAGS]")] = (), /) -> None:
    """Search settings by training many runs. `ludus sweep GAME --help` lists the flags."""
    from ludus import processes

    # Trials fork from it. It imports while we do.
    processes.start_fork_server(["ludus.sweep.process_place"])
    from ludus.commands import sweep as command

    command.run(list(words))


@app.command
def runs(
    place: Annotated[Positional[str], arg(metavar="[FOLDER]")] = "runs",
    /,
    *,
    prune: bool = False,
    yes: bool = False,
) -> None:
    """All trainings: state, progress and best.

    Args:
        place: Where they are.
        prune: List those that never learned anything and have no weights, and remove them if you say yes.
        yes: Remove them without asking.
    """
    from ludus.commands import runs as command

    command.show(Path(place), prune, yes)


@app.command
def export(
    run: Annotated[Positional[str], arg(metavar="RUN")],
    /,
    *,
    csv: bool = False,
    onnx: bool = False,
    video: str | None = None,
    at: str = "",
    seed: int = 0,
    trust: Trust = False,
) -> None:
    """Take the metrics, the policy or a video of it out of a run.

    Args:
        run: Its folder.
        csv: All metrics as metrics.csv.
        onnx: The policy as policy.onnx, checked against torch by onnxruntime.
        video: A file that ends with .mp4 or .gif: one game of the agent, of a game that has pictures.
        at: Which checkpoint plays in the video: `best`, or a milestone by its decisions. Default: the newest.
        seed: The same seed gives the same video.
    """
    from ludus.commands import runs as command
    from ludus.store.run import trust_run

    if trust:
        trust_run(Path(run))
    if video is not None:
        from ludus.commands import film

        film.export_video(Path(run), Path(video), at, seed)
    if csv or onnx or video is None:
        command.export(Path(run), csv, onnx)


@app.command
def web(*, runs: str = "runs", host: str = "127.0.0.1", port: int = 8484) -> None:
    """A page in the browser: watch and compare runs, play the games, look into an agent's thoughts.

    Args:
        runs: The folder that holds the runs.
        host: The address to listen at. Any but this machine's own asks visitors for a token, which it prints.
        port: 0 takes one that is free.
    """
    from ludus.commands import web as command

    command.show(Path(runs), host, port)


@app.command
def doctor() -> None:
    """What this machine has, what is missing, and how to get it."""
    from ludus.commands import doctor as command

    command.examine()


def _flat(switches: tuple[tuple[str, ...], ...]) -> list[str]:
    return [word for words in switches for word in words]


def main(args: list[str] | None = None) -> None:
    """Run a command and exit: 0 done, 1 failed, 2 can't be done as written, 130 interrupted."""
    # How long torch's threads spin before they sleep. Milliseconds by default, which takes the cores from
    # workers; without any, an update of a small network takes almost twice as long.
    if "OMP_WAIT_POLICY" not in os.environ:
        os.environ.setdefault("GOMP_SPINCOUNT", "2000")
    args = list(sys.argv[1:] if args is None else args)
    debug = "--debug" in args
    args = [word for word in args if word != "--debug"]
    try:
        own = {"train": train, "resume": resume, "sweep": sweep}  # flags' defaults depend on game or run
        if args and args[0] in own:
            return own[args[0]](tuple(args[1:]))
        if args[:1] == ["--version"]:
            return print(f"ludus {__version__}")
        (_command(args) if args[:1] == ["--help"] or not _is_game(args) else _game_command(args))()
    except (KeyboardInterrupt, BrokenPipeError):
        _leave_quietly()
    except Failure as failure:
        _tell(str(failure), failure.exit_code, debug)
    except ModuleNotFoundError as error:
        from ludus.core.extras import explain

        said = explain(error, f"ludus {args[0]}") or _unexpected(error)
        _tell(str(said), said.exit_code, debug)
    except Exception as error:
        _tell(str(_unexpected(error)), Failure.exit_code, debug)


def _unexpected(error: Exception) -> Failure:
    what = f"unexpected {type(error).__name__}: {error}"
    if isinstance(error, OSError) and error.strerror:  # the system's own words, as of a full disk
        from ludus.store.disk import described

        what = described(error)
    return Failure(f"{what}; run again with --debug for the traceback")


def _command(args: list[str]) -> Callable[[], None]:
    """The command that was asked for, ready to run."""
    from ludus.commands.flags import reading

    name = args[0] if args and args[0] in app.names else ""
    try:
        with reading(f"ludus {name}".rstrip()):
            return app.cli(
                prog="ludus", description=DESCRIPTION, args=args, config=(tyro.conf.FlagCreatePairsOff,)
            )
    except Usage as problem:
        for word in args:
            if word.startswith("-") and Path(word).is_dir():
                raise Usage(f"{problem}; the folder {word} is written ./{word}") from None
        raise


def _is_game(args: list[str]) -> bool:
    """Whether this is a game's own command; those of Ludus come first."""
    if not args or args[0] in app.names or args[0].startswith("-"):
        return False
    from ludus import games as found

    return args[0] in found.names()


def _game_command(args: list[str]) -> Callable[[], None]:
    """`ludus GAME COMMAND ...`, ready to run."""
    from ludus import games as found
    from ludus.commands.flags import reading
    from ludus.core.errors import Usage

    game, own = args[0], Commands()
    commands = found.find(game).commands()
    if not commands:
        raise Usage(f"{game} has no commands of its own: `ludus games {game}` describes it")
    for name, function in commands.items():
        own.command(function, name=name)
    with reading(f"ludus {game}"):
        return own.cli(prog=f"ludus {game}", args=args[1:], config=(tyro.conf.FlagCreatePairsOff,))


def _tell(message: str, exit_code: int, debug: bool) -> None:
    if debug:
        traceback.print_exc()
    lines = (line.strip() for line in message.splitlines())
    print(f"ludus: {' '.join(line for line in lines if line)}", file=sys.stderr)
    sys.exit(exit_code)


def _leave_quietly() -> None:
    # Python flushes stdout when it ends and would complain if nobody reads it any more.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    sys.exit(INTERRUPTED)


if __name__ == "__main__":
    main()
