"""A producer and a consumer of stomp.py, recorded: recorded_stomp.py HISTORY [PORT]."""

import sys
import threading

import stomp

from ackfsm.recorder import Recorder
from ackfsm.recorder.stomp import recorded

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "listener", "prefetch": 10}
done = threading.Event()


class Work(stomp.ConnectionListener):
    def on_message(self, frame):
        connection.ack(frame.headers["ack"])
        if frame.body == "last":
            done.set()


recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
port = int(sys.argv[2]) if sys.argv[2:] else 61613
connection = recorded(stomp.Connection12([("127.0.0.1", port)], vhost="/"), recorder)
connection.set_listener("work", Work())
connection.connect("guest", "guest", wait=True)
connection.subscribe("/queue/stomp-orders", "1", ack="client-individual", headers={"prefetch-count": "10"})
for body in ("first", "second", "last"):
    connection.send("/queue/stomp-orders", body, persistent="true")
if done.wait(10):
    connection.disconnect(receipt="bye")
    recorder.drained("stomp-orders")
