"""What a person sees on a terminal.

Each screen is in a module of its own, imported where it is shown: the screen of ``verify``
needs what reading histories needs.
"""

__all__: list[str] = []
