"""``python -m ackfsm.cli``."""

import sys

from ackfsm.cli import main

if __name__ == "__main__":
    sys.exit(main())
