"""Takes and frees locks of redis-py as it is told: the protocol is in ../lock-process.ts."""

import sys

from redis import Redis
from redis.exceptions import LockError

host, port = sys.argv[1].split(":")
client = Redis(host=host, port=int(port))
timeout = int(sys.argv[2]) / 1000
lock = None


def take(name, wait_ms):
    global lock
    lock = client.lock(name, timeout=timeout)
    return "taken" if lock.acquire(blocking_timeout=int(wait_ms) / 1000) else "failed: held"


def free():
    try:
        lock.release()
    except LockError as error:
        return f"failed {error}"
    return "freed"


print("ready", flush=True)
for line in sys.stdin:
    command, *arguments = line.split()
    print(take(*arguments) if command == "take" else free(), flush=True)
