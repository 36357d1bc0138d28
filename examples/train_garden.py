"""Train the garden from Python, then use the agent. About two minutes; it finds nearly every plant."""

import gymnasium
from garden import Garden

import ludus


def show(metrics: dict) -> bool:
    """Called with every line of metrics; True ends the training."""
    score = metrics.get("game/score", 0.0)
    print(f"{metrics['decisions']:>7,} decisions, score {score:+.2f}")
    return score > 1.25


def main() -> None:
    run = ludus.train("garden:Garden", run="runs/garden", decisions=150_000, on_report=show)
    agent = ludus.load(run)
    env: gymnasium.Env = Garden()
    found = 0
    for seed in range(100):
        seen, info = env.reset(seed=seed)
        over = False
        while not over:
            seen, _, ended, cut, info = env.step(int(agent.act(seen, info["action_mask"])))
            over = ended or cut
        found += ended
    print(f"it finds the plant in {found} of 100 gardens")


if __name__ == "__main__":
    main()
