"""A producer and a consumer of pika, recorded: recorded_pika.py HISTORY [PORT]."""

import sys

import pika

from ackfsm.recorder import Recorder
from ackfsm.recorder.pika import recorded

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "listener", "prefetch": 10}


def work(channel, method, properties, body):
    channel.basic_ack(method.delivery_tag)
    if body == b"last":
        channel.stop_consuming()


recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
parameters = pika.ConnectionParameters("127.0.0.1", int(sys.argv[2]) if sys.argv[2:] else 5672)
connection = recorded(pika.BlockingConnection(parameters), recorder)
channel = connection.channel()
channel.queue_declare("orders", durable=True)
channel.confirm_delivery()
for body in (b"first", b"second", b"last"):
    channel.basic_publish("", "orders", body, pika.BasicProperties(delivery_mode=2), mandatory=True)
channel.basic_qos(prefetch_count=10)
channel.basic_consume("orders", work)
channel.start_consuming()
left = channel.queue_declare("orders", passive=True).method.message_count
connection.close()
if not left:
    recorder.drained("orders")
