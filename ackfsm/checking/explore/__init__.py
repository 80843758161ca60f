"""The model checker: exhaustive exploration of the states of a system, and the questions about them.

``questions`` are what a check asks (anomalies, liveness, equality), ``search`` is the search of a state space,
``symbolic`` the same with sets of states, ``reduction`` what need not be searched, ``replay`` performs what was found.
Other packages import from here, and three modules that need NumPy: ``search.distributed``, a search in many processes,
and ``search.reached`` and ``search.successors``, for what is asked of every state.
"""

from ackfsm.checking.explore.questions.check import (
    Answer,
    Finding,
    SearchFunction,
    check,
    stand_of_confirmed,
    without_effect,
)
from ackfsm.checking.explore.questions.equivalence import Comparison, compare, compare_after
from ackfsm.checking.explore.questions.liveness import LivenessFailure, LivenessFinding
from ackfsm.checking.explore.questions.small_bounds import SmallBound, small_bounds
from ackfsm.checking.explore.reduction.columns import bits
from ackfsm.checking.explore.reduction.slice import Origin, SlicedNetwork, Slicer, slice_network
from ackfsm.checking.explore.replay.interpreter import Hook, Interpreter, Refused
from ackfsm.checking.explore.replay.witness import (
    CandidateWitness,
    Change,
    NotReplayedError,
    Step,
    Witness,
    replay,
    replay_all,
    steps_of,
)
from ackfsm.checking.explore.search.encode import PackedNetwork, pack
from ackfsm.checking.explore.search.explore import Exploration, explore, explore_packed, explore_sliced
from ackfsm.checking.explore.search.graph import StateGraph
from ackfsm.checking.explore.search.options import Reduction, SearchEngine, SearchOptions
from ackfsm.checking.explore.search.self_check import successors_by_tables
from ackfsm.checking.explore.symbolic.engine import explore_by_size, explore_with_diagrams
from ackfsm.checking.explore.symbolic.search import SymbolicExploration, SymbolicOptions, explore_symbolically

__all__ = [
    "Answer",
    "CandidateWitness",
    "Change",
    "Comparison",
    "Exploration",
    "Finding",
    "Hook",
    "Interpreter",
    "LivenessFailure",
    "LivenessFinding",
    "NotReplayedError",
    "Origin",
    "PackedNetwork",
    "Reduction",
    "Refused",
    "SearchEngine",
    "SearchFunction",
    "SearchOptions",
    "SlicedNetwork",
    "Slicer",
    "SmallBound",
    "StateGraph",
    "Step",
    "SymbolicExploration",
    "SymbolicOptions",
    "Witness",
    "bits",
    "check",
    "compare",
    "compare_after",
    "explore",
    "explore_by_size",
    "explore_packed",
    "explore_sliced",
    "explore_symbolically",
    "explore_with_diagrams",
    "pack",
    "replay",
    "replay_all",
    "slice_network",
    "small_bounds",
    "stand_of_confirmed",
    "steps_of",
    "successors_by_tables",
    "without_effect",
]
