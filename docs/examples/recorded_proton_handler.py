"""A handler of Qpid Proton (AMQP 1.0) that is called by events, recorded: recorded_proton_handler.py HISTORY [PORT].

RabbitMQ needs its plugin rabbitmq_amqp1_0 and the queue; other brokers know the queue by its name alone, and count.
"""

import sys

from proton import Message
from proton.handlers import MessagingHandler
from proton.reactor import Container

from ackfsm.recorder import Recorder
from ackfsm.recorder.proton import recorded_handler

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "listener", "prefetch": 10}
URL = f"amqp://guest:guest@127.0.0.1:{sys.argv[2] if sys.argv[2:] else 5672}"
ADDRESS = "/amq/queue/amqp-orders"


class Shop(MessagingHandler):
    """Sends three orders, and accepts each that comes."""

    def __init__(self):
        super().__init__()
        self.bodies, self.left = ["first", "second", "last"], 6

    def on_start(self, event):
        """Connect."""
        connection = event.container.connect(URL, allowed_mechs="PLAIN")
        event.container.create_sender(connection, ADDRESS)
        event.container.create_receiver(connection, ADDRESS)

    def on_sendable(self, event):
        """Send what is left."""
        while self.bodies and event.sender.credit:
            event.sender.send(Message(body=self.bodies.pop(0), durable=True))

    def on_accepted(self, event):
        """The broker has an order."""
        self.done(event)

    def on_message(self, event):
        """Work; the handler accepts the message when this returns."""
        print(event.message.body)
        self.done(event)

    def done(self, event):
        """Close when each order is at the broker and worked on."""
        self.left -= 1
        if not self.left:
            event.connection.close()


recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
handler = recorded_handler(
    Shop(),
    recorder,
    queue_of=lambda address: address.removeprefix("/amq/queue/"),
    redelivered=lambda message: not message.first_acquirer,
)
Container(handler).run()
recorder.drained("amqp-orders")
