"""A producer and a consumer of Qpid Proton (AMQP 1.0), recorded: recorded_proton.py HISTORY [PORT].

RabbitMQ needs its plugin rabbitmq_amqp1_0 and the queue; other brokers know the queue by its name alone, and count.
"""

import sys

from proton import Message
from proton.utils import BlockingConnection

from ackfsm.recorder import Recorder
from ackfsm.recorder.proton import recorded

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "receive", "prefetch": 1}
ADDRESS = "/amq/queue/amqp-orders"

recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
url = f"amqp://guest:guest@127.0.0.1:{sys.argv[2] if sys.argv[2:] else 5672}"
connection = recorded(
    BlockingConnection(url, allowed_mechs="PLAIN"),
    recorder,
    queue_of=lambda address: address.removeprefix("/amq/queue/"),
    redelivered=lambda message: not message.first_acquirer,
)
sender = connection.create_sender(ADDRESS)
for body in ("first", "second", "last"):
    sender.send(Message(body=body, durable=True))
receiver = connection.create_receiver(ADDRESS, credit=1)
for _ in range(3):
    print(receiver.receive(timeout=10).body)
    receiver.accept()
connection.close()
recorder.drained("amqp-orders")
