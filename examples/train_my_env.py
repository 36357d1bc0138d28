"""Train your own environment from Python. About 5 seconds; the score ends near +0.9."""

import ludus


def show(metrics: dict) -> None:
    print(f"{metrics['decisions']:>7,} decisions, score {metrics.get('game/score', 0.0):+.2f}")


def main() -> None:
    folder = ludus.train(
        "my_env:Corridor",
        preset="test",
        run="runs/corridor",
        decisions=40_000,
        switches={"length": 4},  # what the class is made with
        ppo={"learning_rate": 3e-3},
        log_s=0.5,
        on_report=show,
    )
    print(f"the weights are in {folder}")


if __name__ == "__main__":
    main()
