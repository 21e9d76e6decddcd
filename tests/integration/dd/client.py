"""A small HTTP client: keep-alive connections, one a thread; JSON in and out; nothing is retried."""
import base64
import http.client
import json
import socket
import threading

from .wait import PATIENCE


class Answer:
    def __init__(self, status, headers, body):
        self.status = status
        self.headers = headers
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)

    @property
    def error(self):
        """The error object, with "code", "message" and perhaps "field"; {} when the body has none."""
        try:
            return self.json.get("error", {})
        except ValueError:
            return {}

    def __repr__(self):
        return "%d %s" % (self.status, self.body[:300])


class Client:
    def __init__(self, address, timeout=30.0 * PATIENCE):
        self.host, port = address.rsplit(":", 1)
        self.host = self.host.strip("[]")
        self.port = int(port)
        self.timeout = timeout
        self.local = threading.local()

    def connection(self):
        """The connection of this thread: (it, whether it was used before)."""
        c = getattr(self.local, "connection", None)
        if c is not None and c.sock is not None:
            return c, True
        c = http.client.HTTPConnection(self.host, self.port, timeout=self.timeout)
        c.connect()
        c.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.local.connection = c
        return c, False

    def close(self):
        c = getattr(self.local, "connection", None)
        if c is not None:
            c.close()
            self.local.connection = None

    def request(self, method, path, body=None, headers=None):
        """body: bytes, or anything that becomes JSON. Raises OSError when no answer comes."""
        headers = dict(headers or {})
        if body is not None and not isinstance(body, bytes):
            body = json.dumps(body).encode()
        if body is not None:
            headers.setdefault("Content-Type", "application/json")
        while True:
            c, used = self.connection()
            try:
                return self.once(c, method, path, body, headers)
            except http.client.RemoteDisconnected:
                # The server may close an idle connection at any time; on a fresh one it is a failure.
                self.close()
                if not used:
                    raise
            except (OSError, http.client.HTTPException) as e:
                self.close()
                if isinstance(e, OSError):
                    raise
                raise OSError("%s %s: %r" % (method, path, e)) from e

    def once(self, c, method, path, body, headers):
        c.request(method, path, body=body, headers=headers)
        r = c.getresponse()
        answer = Answer(r.status, r.headers, r.read())
        if r.will_close:
            self.close()
        return answer

    def get(self, path):
        return self.request("GET", path)

    def post(self, path, body):
        return self.request("POST", path, body)


def body_of(case):
    """The body of a case in a JSON table: "body" (text, or JSON to be dumped), "body_text", "body_base64", or "body_parts"
    ([text, how often] in a row); None without any."""
    if "body_text" in case:
        return case["body_text"].encode()
    if "body_base64" in case:
        return base64.b64decode(case["body_base64"])
    if "body_parts" in case:
        return "".join(text * times for text, times in case["body_parts"]).encode()
    body = case.get("body")
    if body is None:
        return None
    return body.encode() if isinstance(body, str) else json.dumps(body).encode()
