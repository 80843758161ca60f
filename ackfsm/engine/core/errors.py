"""The exceptions of the API, by their JMS names."""

from __future__ import annotations

from ackfsm.terms import AckfsmError


class JMSException(AckfsmError):  # noqa: N818 - the names of JMS
    """Something went wrong at the provider (JMS 3.1, 7.2); the session may still be used."""


class IllegalStateException(JMSException):
    """The call does not fit the state of its object: closed, transacted, nothing to acknowledge."""


class OutcomeUnknown(JMSException):
    """The call failed with unknown outcome (JMS 3.1, 7.3.2): a send, an acknowledgement or a commit."""


class MessageFormatException(JMSException):
    """The body of a message is not of the type that was asked for."""


class MessageRejected(JMSException):
    """The broker refused the message."""


class TransactionRolledBackException(JMSException):
    """``commit()`` could not be executed, or the transaction went with its connection; it is rolled back."""


class BrokerStopped(JMSException):
    """The broker is down and is not started again."""


class Stuck(JMSException):
    """The call can never return: nothing that could happen would let it."""


class JournalInconsistent(AckfsmError):  # noqa: N818 - what the journal is found to be
    """The journal has lost a synced entry, or has kept a removed one."""
