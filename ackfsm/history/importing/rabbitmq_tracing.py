"""The log of RabbitMQ's plugin ``rabbitmq_tracing``: see :mod:`ackfsm.history.importing.rabbitmq`."""

from ackfsm.history.importing.rabbitmq import tracing as importer

__all__ = ["importer"]
