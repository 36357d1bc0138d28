"""Teams from files: whatever text the simulator's own team editor exports, one team in each file."""

from pathlib import Path

from ludus.core.errors import Usage

ENDINGS = ("", ".txt", ".team")


def given(team: str) -> tuple[tuple[str, str], ...]:
    """Teams of the switch `team`; none if the format makes them."""
    return () if team == "random" else read(team)


def read(path: str) -> tuple[tuple[str, str], ...]:
    """Name and text of every team: of a file, or of all files in a folder."""
    place = Path(path)
    if place.is_file():
        files = [place]
    elif place.is_dir():
        files = sorted(file for file in place.iterdir() if file.is_file() and file.suffix in ENDINGS)
    else:
        raise Usage(f"{path} is neither a file nor a folder of teams: give `random`, a file or a folder")
    try:
        teams = tuple((file.name, text) for file in files if (text := file.read_text().strip()))
    except (OSError, UnicodeDecodeError) as error:
        raise Usage(f"{path} can't be read as teams: {error}") from None
    if not teams:
        raise Usage(f"{path} has no teams: put each into a .txt file, as the simulator exports it")
    return teams
