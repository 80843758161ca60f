"""What was decided of each message of a history, and not only how many there are of a kind."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np
import numpy.typing as npt

from ackfsm.history.arrays import Ints, Mask
from ackfsm.terms import Anomaly
from ackfsm.verify.conformance.explain import Contradicted, Explained, Explainer, Needs
from ackfsm.verify.conformance.explain_pairs import PairExplainer

__all__ = ["NO", "OPEN", "YES", "Accusation", "Decided", "Having", "Judged"]

YES, NO, OPEN = 1, 0, -1
"""An answer in a column of numbers; :data:`OPEN` stands for ``None``."""

_NOTHING: Ints = np.empty(0, np.int64)


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Judged:
    """Those that have one anomaly, messages or of ``torn_transaction`` transactions: a column for each thing decided.

    Attributes:
        codes: which they are.
        allowed: whether it is allowed: :data:`YES`, :data:`NO` or :data:`OPEN`.
        unexplained: whether nothing explains it; :data:`OPEN` where no model decides it.
        undecided: whether the model decided nothing.
        by_kind: whether what the kind of the anomaly is allowed decides.
        doubted: whether it may be of the recording.
    """

    codes: Ints
    allowed: npt.NDArray[np.int8]
    unexplained: npt.NDArray[np.int8]
    undecided: Mask
    by_kind: Mask
    doubted: Mask


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Having(Judged):
    """The same, and what explains those that are not ``unexplained``."""

    needs: Needs


@dataclasses.dataclass(frozen=True, slots=True)
class Accusation:
    """What is impossible of a message; ``unnamed`` if no anomaly that nothing explains says so."""

    message: int
    why: Contradicted
    unnamed: bool


@dataclasses.dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Decided:
    """What was decided of the messages that one configuration judges; all by code.

    Attributes:
        messages: for each message whether it is one of them.
        configured: whether a configuration is known.
        found: of every anomaly those that have it (of ``torn_transaction``: transactions).
        doubted: of some anomalies those of which it may be of the recording.
        unrested: of every anomaly those that would have it if they were at rest, which nobody saw.
        unrecorded: of some anomalies those that may have it, for want of what nobody recorded.
        settled: of every anomaly that is held against single messages or pairs what was decided of them.
        by_anomaly: the same before it was asked whether they were seen at rest.
        explainer, pairs: what says why; ``None`` where no message, or no pair, was held to the model.
    """

    messages: Mask
    configured: bool
    found: Mapping[Anomaly, Ints]
    doubted: Mapping[Anomaly, Ints]
    unrested: Callable[[], Mapping[Anomaly, Ints]]
    unrecorded: Mapping[Anomaly, Ints]
    settled: Mapping[Anomaly, Explained]
    by_anomaly: Mapping[Anomaly, Explained]
    explainer: Explainer | None
    pairs: PairExplainer | None

    def having(self, anomaly: Anomaly, kind: bool | None) -> Having:  # noqa: FBT001 - an answer of three values
        """As :meth:`judged`, with what explains them, which is searched for."""
        its = self.judged(anomaly, kind)
        columns = {field.name: getattr(its, field.name) for field in dataclasses.fields(its)}
        return Having(**columns, needs=self._needs(anomaly, its.codes[its.unexplained != YES]))

    def judged(self, anomaly: Anomaly, kind: bool | None) -> Judged:  # noqa: FBT001 - an answer of three values
        """Those that have an ``anomaly`` of which ``kind`` is what the configuration allows in any number."""
        codes, its = self.found[anomaly], self.settled.get(anomaly)
        of_kind = _answer(kind)
        doubted = np.isin(codes, self.doubted.get(anomaly, _NOTHING))
        if its is None:
            allowed, unexplained = np.full(len(codes), of_kind, np.int8), np.full(len(codes), OPEN, np.int8)
            undecided, by_kind = np.zeros(len(codes), bool), np.ones(len(codes), bool)
        else:
            bad, undecided, by_kind = (np.isin(codes, each) for each in (its.unexplained, its.undecided, its.by_kind))
            allowed = np.select([bad, undecided, by_kind], [NO, OPEN, of_kind], YES).astype(np.int8)
            unexplained = bad.astype(np.int8)
        allowed[doubted] = YES if kind else OPEN
        return Judged(
            codes=codes,
            allowed=allowed,
            unexplained=unexplained,
            undecided=undecided,
            by_kind=by_kind,
            doubted=doubted,
        )

    def _needs(self, anomaly: Anomaly, codes: Ints) -> Needs:
        if anomaly in {Anomaly.TORN_TRANSACTION, Anomaly.REORDER}:
            return Needs.joined(()) if self.pairs is None else self.pairs.needs(anomaly, codes)
        if self.explainer is None or anomaly not in self.settled:
            return Needs.joined(())
        return self.explainer.needs(codes)

    def accusations(self) -> Iterator[Accusation]:
        """Why messages are no runs of the model, by themselves and then with another one."""
        if self.explainer is None:
            return
        unnamed = set(self.unnamed().tolist())
        for message in self.explainer.contradicted.tolist():
            yield Accusation(message, self.explainer.contradiction(message), message in unnamed)
        if self.pairs is not None:
            yield from (Accusation(*each) for each in self.pairs.accusations(self.by_anomaly))

    def unnamed(self) -> Ints:
        """The messages that are no runs of the model by themselves, and have no anomaly that nothing explains."""
        if self.explainer is None:
            return _NOTHING
        of_messages = (each for name, each in self.by_anomaly.items() if name is not Anomaly.TORN_TRANSACTION)
        return self.explainer.unnamed(of_messages)

    def undecided(self) -> Ints:
        """The messages of which the model decided nothing."""
        return _NOTHING if self.explainer is None else self.explainer.undecided()


def _answer(value: Any) -> int:
    return OPEN if value is None else YES if value else NO
