"""A broker of about twenty lines: queues in memory, and everything in flight comes back when its client is gone."""

import json
import sys


class Broker:
    def begin(self, **_):
        self.ready, self.flying, self.gone, self.up = [], {}, set(), True

    def send(self, message, **_):
        self.ready.append([message, 0])
        return {"outcome": "confirmed"}

    def receive(self, client, **_):
        if not self.ready:
            return {"message": None}
        entry = self.ready.pop(0)
        entry[1] += 1
        self.flying.setdefault(client, []).append(entry)
        return {"message": entry[0], "redelivered": entry[1] > 1, "delivery_count": entry[1]}

    def acknowledge(self, client, **_):
        self.flying.pop(client, None)
        return {"outcome": "acknowledged"}

    def close(self, client, **_):
        self.gone.add(client)
        self.ready = self.flying.pop(client, []) + self.ready
        return {}

    def fault(self, fault, client=None):
        if fault == "consumer_crash":
            return self.close(client)
        self.up, self.gone = False, self.gone | set(self.flying)
        self.ready, self.flying = [], {}  # it keeps nothing on a disk
        return {}

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
    elif request.get("client") in getattr(broker, "gone", ()) and op != "fault":
        answer = {"error": "closed"}
    elif not getattr(broker, "up", True) and op not in {"begin", "restart"}:
        answer = {"error": "down"}
    else:
        answer = getattr(broker, op)(**request) or {}
    print(json.dumps({"id": number, **answer}), flush=True)
