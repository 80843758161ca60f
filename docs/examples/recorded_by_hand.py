"""A client of anything, recorded by context managers: recorded_by_hand.py HISTORY."""

import collections
import sys

from ackfsm.recorder import Recorder

CONFIG = {"profile": "jms", "ack_mode": "CLIENT_ACKNOWLEDGE", "consumption": "receive", "send_mode": "blocking"}
orders = collections.deque()  # stands for a broker

recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
for number in range(3):
    with recorder.send(f"order-{number}", queue="orders", session="shop.1", delivery_mode="PERSISTENT"):
        orders.append(f"order-{number}")

worker = recorder.as_process("worker")
while orders:
    message = orders.popleft()
    with worker.processing(message, queue="orders", session="worker.1", redelivered=False, delivery_count=1):
        print(message)
    with worker.acknowledge("session", session="worker.1", answered=True):
        pass
worker.closing("worker.1")
recorder.drained("orders")
