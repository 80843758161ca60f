"""Every screen, page and JSON document that shows a result.

A view decides nothing: what it shows, and the exit code, are decided where the result is made.  Each is in a module
of its own, imported where it is shown: the screen of ``verify`` needs what reading histories needs.
"""

__all__: list[str] = []
