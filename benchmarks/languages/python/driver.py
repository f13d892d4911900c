"""A client process of `bench languages`: redis-py's Lock on one task, which is the only argument."""

import asyncio
import json
import os
import sys
import time
import uuid

from redis.asyncio import Redis

POLL_S = 0.01
COMPARE_AND_DELETE = (
    "if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0"
)


def now() -> float:
    """Milliseconds on the machine's monotonic clock."""
    return time.monotonic_ns() / 1e6


def opened(task, client):
    ttl_ms = task["ttlMs"]
    if task["library"] == "redis-py":

        async def take(name):
            lock = client.lock(name, timeout=ttl_ms / 1000)
            await lock.acquire()
            return lock.release

        return take
    compare_and_delete = client.register_script(COMPARE_AND_DELETE)

    async def take_raw(name):
        value = uuid.uuid4().hex
        while not await client.set(name, value, nx=True, px=ttl_ms):
            await asyncio.sleep(POLL_S)
        return lambda: compare_and_delete(keys=[name], args=[value])

    return take_raw


async def loop(task, take, name_of):
    entries = []
    waiting = {}

    await (await take(f"{task['name']}:warm-up:{os.getpid()}"))()
    # It is ready, and reads when to begin and to end.
    print("ready", flush=True)
    start_at, stop_at = map(float, sys.stdin.readline().split())

    async def lane(index):
        while now() < stop_at:
            asked = now()
            waiting[index] = asked
            release = await take(name_of(index))
            entered = now()
            if task["sectionMs"] > 0:
                await asyncio.sleep(task["sectionMs"] / 1000)
            left = now()
            await release()
            del waiting[index]
            entries.append([index, asked, entered, left])

    await asyncio.sleep(max(0, start_at - now()) / 1000)
    lanes = [asyncio.create_task(lane(index)) for index in range(task["lanes"])]
    await asyncio.wait(lanes, timeout=(stop_at - now() + 200) / 1000)
    print(json.dumps({"entries": entries, "unserved": list(waiting.items())}), flush=True)
    os._exit(0)


async def hold(task, take, name_of):
    """Takes its locks, says so, and keeps them until it is killed."""
    at_once = asyncio.Semaphore(16)

    async def one(index):
        async with at_once:
            await take(name_of(index))

    await asyncio.gather(*(one(index) for index in range(task["lanes"])))
    print("held", flush=True)
    await asyncio.Event().wait()


async def main():
    task = json.loads(sys.argv[1])
    host, port = task["address"].split(":")
    take = opened(task, Redis(host=host, port=int(port)))

    def name_of(index):
        return f"{task['name']}:{index}" if task["own"] else task["name"]

    await (hold if task["op"] == "hold" else loop)(task, take, name_of)


asyncio.run(main())
