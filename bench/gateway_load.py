"""A steady load on a worker of the gateway, as a process of its own: `bench.gateway_load PORT`.

Says `ready`, asks until its standard input ends, and says which share of its pace it kept.
"""

import asyncio
import sys
import time
from typing import Final

from bench.gateway import CARRIED, CONNECTIONS, RECORD, answer, v3

RECORDS_PER_S: Final = 20_000


async def main(port: int) -> None:
    request = v3(RECORD * CARRIED)
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    print("ready", flush=True)  # noqa: T201 - what the caller waits for
    began = time.monotonic()
    asking = [asyncio.create_task(ask(port, request, began, place)) for place in range(CONNECTIONS)]
    await reader.read()
    seconds = time.monotonic() - began
    for task in asking:
        task.cancel()
    await asyncio.gather(*asking, return_exceptions=True)
    print(sum(DONE) * CARRIED / seconds / RECORDS_PER_S)  # noqa: T201 - the answer


# Requests of each connection.
DONE: Final = [0] * CONNECTIONS


async def ask(port: int, request: bytes, began: float, place: int) -> None:
    """Ask at fixed times; who is late asks at once."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    pause = CONNECTIONS * CARRIED / RECORDS_PER_S
    while True:
        due = began + (DONE[place] + place / CONNECTIONS) * pause
        await asyncio.sleep(max(0.0, due - time.monotonic()))
        writer.write(request)
        await answer(reader)
        DONE[place] += 1


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
