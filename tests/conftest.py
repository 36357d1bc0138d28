"""Settings for all tests."""

from hypothesis import settings

# Compiling inside a test breaks any deadline; fixed examples keep every run the same.
settings.register_profile("ludus", deadline=None, derandomize=True, database=None, max_examples=200)
settings.load_profile("ludus")
