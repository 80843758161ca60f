"""What all tests share: how Hypothesis runs."""

import os

from hypothesis import settings

# No deadline: a first call may compile a kernel.  On CI (which sets CI) the examples are the same in every run.
settings.register_profile("ackfsm", deadline=None, derandomize="CI" in os.environ, print_blob=True)
settings.load_profile("ackfsm")
