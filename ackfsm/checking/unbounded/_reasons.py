"""Why something is not proved: what ends a computation before it can say that an anomaly is impossible."""

from __future__ import annotations


class NotProvedError(Exception):
    """The proof is not possible, or was not finished: the sentence says why.  Never a statement about the system."""
