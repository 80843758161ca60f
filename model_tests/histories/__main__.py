"""Verify legal histories and damaged ones: ``python -m model_tests.histories``."""

import sys

from model_tests.histories.campaign import main

if __name__ == "__main__":
    sys.exit(main())
