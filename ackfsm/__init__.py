"""Executable, formally specified reference of message acknowledgement."""

__all__ = ["__version__"]

__version__ = "0.1.0"
