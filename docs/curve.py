"""Draws a run's learning curve for docs/results: curve.csv and curve.png in a folder.

python docs/curve.py runs/gemfall docs/results/gemfall game/score --line random=32 --line scripted=228
"""

import argparse
import csv
from pathlib import Path

from ludus.store.reader import RunReader

MOST_LINES = 200
ALWAYS = ("seconds", "decisions", "speed/now", "policy/entropy", "policy/kl", "value/explained")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("run", type=Path)
    parser.add_argument("folder", type=Path)
    parser.add_argument("metric", help="what the curve shows, by its name in metrics.jsonl")
    parser.add_argument("--line", action="append", default=[], help="NAME=VALUE, a level to compare with")
    args = parser.parse_args()
    lines = [line for line in RunReader(args.run).metrics() if args.metric in line]
    if not lines:
        parser.error(f"{args.run} has no metric {args.metric!r}")
    lines = lines[:: -(-len(lines) // MOST_LINES)]
    args.folder.mkdir(parents=True, exist_ok=True)
    with (args.folder / "curve.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, [*ALWAYS, args.metric], extrasaction="ignore")
        writer.writeheader()
        writer.writerows(lines)
    levels = [(name, float(value)) for name, _, value in (text.partition("=") for text in args.line)]
    draw(args.folder / "curve.png", lines, args.metric, levels)


def draw(file: Path, lines: list[dict], metric: str, levels: list[tuple[str, float]]) -> None:
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 3.5), dpi=100)
    minutes = [line["seconds"] / 60 for line in lines]
    axes.plot(minutes, [line[metric] for line in lines], label=metric)
    for name, value in levels:
        axes.axhline(value, linestyle="--", linewidth=1, color="grey")
        axes.annotate(name, (minutes[-1], value), ha="right", va="bottom", color="grey")
    axes.set_xlabel("minutes")
    axes.set_ylabel(metric)
    figure.tight_layout()
    figure.savefig(file)


if __name__ == "__main__":
    main()
