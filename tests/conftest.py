"""Settings for all tests."""

import os

from hypothesis import settings

pytest_plugins = ["trainings", "commands"]

# Tests run side by side: torch's threads must not spin while they wait for each other (10 times slower).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# Compiling inside a test breaks any deadline; fixed examples keep every run the same.
settings.register_profile("ludus", deadline=None, derandomize=True, database=None, max_examples=200)
settings.load_profile("ludus")
