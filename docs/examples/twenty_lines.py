"""A broker of some twenty lines, without a disk, and the few lines by which `ackfsm conform` drives it."""

import json
import sys


class Broker:
    def begin(self, **_):
        self.ready, self.flying, self.gone, self.up = [], {}, set(), True

    def send(self, message, **_):
        self.ready.append((message, False))
        return {"outcome": "confirmed"}

    def receive(self, client, **_):
        if not self.ready:
            return {"message": None}
        message, again = self.ready.pop(0)
        self.flying.setdefault(client, []).append((message, True))
        return {"message": message, "redelivered": again}

    def acknowledge(self, client, **_):
        self.flying.pop(client, None)
        return {"outcome": "acknowledged"}

    def close(self, client, **_):
        self.gone.add(client)
        self.ready = self.flying.pop(client, []) + self.ready

    def fault(self, fault, client=None):
        if fault == "consumer_crash":
            return self.close(client)
        self.gone |= self.flying.keys()
        self.ready, self.flying, self.up = [], {}, False

    def restart(self):
        self.up = True

    def depth(self, **_):
        return {"ready": len(self.ready), "unacknowledged": sum(map(len, self.flying.values()))}


CLAIMS = {
    "protocol": 1,
    "name": "twenty lines",
    "profile": "jms",
    "ack_modes": ["CLIENT_ACKNOWLEDGE"],
    "delivery_modes": ["PERSISTENT", "NON_PERSISTENT"],
    "faults": ["broker_kill", "consumer_crash"],
    "operations": ["acknowledge", "close"],
}

broker = Broker()
for line in sys.stdin:
    request = json.loads(line)
    number, op = request.pop("id"), request.pop("op")
    if op == "hello":
        answer = CLAIMS
    elif op not in {"begin", "restart"} and not broker.up:
        answer = {"error": "down"}
    elif op not in {"begin", "fault"} and request.get("client") in broker.gone:
        answer = {"error": "closed"}
    else:
        answer = getattr(broker, op)(**request) or {}
    print(json.dumps({"id": number, **answer}), flush=True)
