"""Settings for all tests."""

import atexit
import gc
import os
import shutil
import tempfile

from hypothesis import settings

from ludus import machine

pytest_plugins = ["commandline", "trainings", "browser", "pokemon_setup"]

# Tests run side by side: torch's threads must not spin while they wait for each other (10 times slower).
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

# And each of them has its share of the cores, also in the processes that it starts.
if side_by_side := os.environ.get("PYTEST_XDIST_WORKER_COUNT"):
    os.environ.setdefault(machine.CORES, str(max(1, machine.usable_cores() // int(side_by_side))))

# A GPU would choose other pools and give up exact resumes; bench/gpu_check.py is for GPUs.
os.environ["CUDA_VISIBLE_DEVICES"] = ""

# Compiling inside a test breaks any deadline; fixed examples keep every run the same.
settings.register_profile("ludus", deadline=None, derandomize=True, database=None, max_examples=200)
settings.load_profile("ludus")

# Runs that tests begin are not noted among those that the user trusts.
os.environ["XDG_STATE_HOME"] = tempfile.mkdtemp(prefix="ludus-test-state-")
atexit.register(shutil.rmtree, os.environ["XDG_STATE_HOME"], ignore_errors=True)


def pytest_collection_finish() -> None:
    """What is imported by now stays, so collecting garbage, as every console game does, need not look at it:
    that takes 0.6 s."""
    gc.collect()
    gc.freeze()
