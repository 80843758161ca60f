"""Try every defect of the table: ``python -m model_tests.defects``."""

import sys

from model_tests.defects.campaign import main

if __name__ == "__main__":
    sys.exit(main())
