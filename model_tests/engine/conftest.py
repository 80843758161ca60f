"""What all tests of the engine share."""

from model_tests.support.engine.calls import shared_wiring

__all__ = ["shared_wiring"]
