"""`python -m submerge_lab.demo.broker PORT`: aMQTT on loopback, in a process of its own.

For the demo only: it speaks MQTT 3.1.1 without TLS or user names, and keeps nothing on disk. A
real fleet needs a broker like Mosquitto. aMQTT 0.12 hangs up a new connection if another client
subscribes at the same moment; nodes then connect again, after a second or two.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys

from amqtt.broker import Broker

from submerge_lab.demo.site import LOOPBACK


async def serve(port: int) -> None:
    """Serve until SIGTERM; log "serving" once clients can connect."""
    broker = Broker(
        {
            "listeners": {"default": {"type": "tcp", "bind": f"{LOOPBACK}:{port}"}},
            "plugins": {"amqtt.plugins.authentication.AnonymousAuthPlugin": {}},
        }
    )
    await broker.start()
    over = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, over.set)
    sys.stderr.write('{"what": "serving"}\n')
    sys.stderr.flush()
    await over.wait()
    await broker.shutdown()


if __name__ == "__main__":
    logging.disable()
    asyncio.run(serve(int(sys.argv[1])))
