"""A history for people: the story of each message, the events around a time, and the whole picture.

Nothing is decided here: what was found, and whether it is allowed, stands in the result tables of :mod:`ackfsm.verify`.
"""

from ackfsm.showing.views.history.excuses import FaultSpan, WhyNot
from ackfsm.showing.views.history.moments import BROKER, Moment, Side
from ackfsm.showing.views.history.picture import Band, Marks, Picture, Shown, picture_of
from ackfsm.showing.views.history.stories import Stories, stories_of
from ackfsm.showing.views.history.told import Around, Cause, Chapter, Found, Open, Pending, Story

__all__ = [
    "BROKER",
    "Around",
    "Band",
    "Cause",
    "Chapter",
    "FaultSpan",
    "Found",
    "Marks",
    "Moment",
    "Open",
    "Pending",
    "Picture",
    "Shown",
    "Side",
    "Stories",
    "Story",
    "WhyNot",
    "picture_of",
    "stories_of",
]
