"""The broker, links and client libraries, run by the tables; knows nothing of the JMS face around it.

Stable for tools that follow an engine event by event: an observer (:meth:`ackfsm.engine.Broker.observe`) is called with
a :class:`BoundEvent` and with the :class:`Copy` or :class:`Link` to which it happened.
"""

from ackfsm.engine.core.instances import Copy, Link, MachineGroup, ReceiverLink, SenderLink
from ackfsm.engine.core.model import BoundEvent, EngineModel, Role
from ackfsm.engine.core.scheduler import Scheduler
from ackfsm.engine.core.stepper import Observer
from ackfsm.tables.names import Agent, Event, Machine

__all__ = [
    "Agent",
    "BoundEvent",
    "Copy",
    "EngineModel",
    "Event",
    "Link",
    "Machine",
    "MachineGroup",
    "Observer",
    "ReceiverLink",
    "Role",
    "Scheduler",
    "SenderLink",
]
