"""Advice: the needs, the guarantees of each legal configuration, and its cost.

:func:`advise` tries the configurations of a system in the order of what they cost, has each guarantee decided by
exhaustive searches, and tells the first that give what is needed, with what fails of those that would cost less.
The question, the choices and what is left out: ``docs/decisions/advice.md``.
"""

from ackfsm.surveys.advice._advise import RATE, Advice, Failure, GivenUp, Proposal, advise
from ackfsm.surveys.advice._answers import Answer, AnswerCache, Question
from ackfsm.surveys.advice._candidates import Candidate, all_candidates
from ackfsm.surveys.advice._front import Front, Point, front
from ackfsm.surveys.advice._needs import Need, needs_of, read_needs
from ackfsm.surveys.advice._request import Request
from ackfsm.surveys.advice._snippets import CANNOT, UNSAID, Snippet, Snippets, snippets_of

__all__ = [
    "CANNOT",
    "RATE",
    "UNSAID",
    "Advice",
    "Answer",
    "AnswerCache",
    "Candidate",
    "Failure",
    "Front",
    "GivenUp",
    "Need",
    "Point",
    "Proposal",
    "Question",
    "Request",
    "Snippet",
    "Snippets",
    "advise",
    "all_candidates",
    "front",
    "needs_of",
    "read_needs",
    "snippets_of",
]
