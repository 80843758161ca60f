"""Run many drawn application programs: ``python -m model_tests.applications``."""

import sys

from model_tests.applications.campaign import main

if __name__ == "__main__":
    sys.exit(main())
