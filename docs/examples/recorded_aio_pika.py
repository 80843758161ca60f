"""A producer and a consumer of aio-pika, recorded: recorded_aio_pika.py HISTORY [PORT]."""

import asyncio
import sys

import aio_pika

from ackfsm.recorder import Recorder
from ackfsm.recorder.aio_pika import recorded

CONFIG = {"profile": "rabbitmq", "ack_mode": "INDIVIDUAL_ACKNOWLEDGE", "consumption": "listener", "prefetch": 0}


async def main():
    recorder = Recorder(sys.argv[1], "shop", config=CONFIG)
    port = sys.argv[2] if sys.argv[2:] else 5672
    async with recorded(await aio_pika.connect(f"amqp://127.0.0.1:{port}"), recorder) as connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("async-orders", durable=True)
        for body in (b"first", b"second", b"last"):
            message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(message, "async-orders")
        async for message in queue:
            async with message.process():
                pass
            if message.body == b"last":
                break
    recorder.drained("async-orders")


asyncio.run(main())
