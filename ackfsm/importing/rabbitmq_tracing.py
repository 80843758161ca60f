"""The log of RabbitMQ's plugin ``rabbitmq_tracing``: see :mod:`ackfsm.importing.rabbitmq`."""

from ackfsm.importing.rabbitmq import tracing as importer

__all__ = ["importer"]
