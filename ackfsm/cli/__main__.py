"""``python -m ackfsm.cli``."""

import sys

from ackfsm.cli import main

sys.exit(main())
