"""Measure RabbitMQ, Artemis and Broker-J behind a slow line: ``python -m model_tests.reality``."""

import sys

from model_tests.reality.campaign import main

if __name__ == "__main__":
    sys.exit(main())
