"""
Moto that carries out one request at a time. By itself it checks the condition of a write in one step and writes in another, each request in
a thread of its own: of eight writes with the same condition it let two succeed in one race of a hundred, which no S3 does.
"""

import functools
import io
import threading

from moto import server
from moto.moto_server.werkzeug_app import DomainDispatcherApplication

one_at_a_time = threading.Lock()
carry_out = DomainDispatcherApplication.__call__


def in_turn(self, environ, start_response):
    length = environ.get("CONTENT_LENGTH")
    if length:
        # A client that stands still within its request must not hold up the others.
        environ["wsgi.input"] = io.BytesIO(environ["wsgi.input"].read(int(length)))
    with one_at_a_time:
        return carry_out(self, environ, start_response)


DomainDispatcherApplication.__call__ = in_turn
# Moto lists its own folders, twice for each request, to find the service of a host: a third of a request's processor time.
DomainDispatcherApplication.get_backend_for_host = functools.cache(
    DomainDispatcherApplication.get_backend_for_host
)
server.main()
