"""Draw command lines, files and calls: ``python -m model_tests.fuzz``."""

import sys

from model_tests.fuzz.campaign import main

if __name__ == "__main__":
    sys.exit(main())
