"""A relay on a Unix socket between dedupd and Redis that can cut or hold one connection and let the others pass: the way to
make one loop blind while another sees."""
import os
import select
import socket
import threading


class Link:
    """One connection through the relay. kind: "loop" once it has introduced itself as a loop of dedupd, else "other"."""

    def __init__(self, client, server):
        self.client = client
        self.server = server
        self.held = False
        self.kind = "other"

    def close(self):
        for s in (self.client, self.server):
            try:
                s.shutdown(socket.SHUT_RDWR)
            except OSError:
                pass
            s.close()


class Proxy:
    """url is what dedupd is given. One thread relays."""

    def __init__(self, directory, redis, name="proxy"):
        self.path = os.path.join(directory, name + ".sock")
        self.target = redis.socket
        self.links = []
        self.refusing = False  # new connections are closed at once
        self.lock = threading.Lock()
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(self.path)
        self.listener.listen(64)
        self.wake, self.waker = socket.socketpair()
        self.stopped = False
        self.thread = threading.Thread(target=self.run, daemon=True)
        self.thread.start()

    @property
    def url(self):
        return "unix://" + self.path

    def loops(self):
        """The connections of dedupd's loops that stand."""
        with self.lock:
            return [link for link in self.links if link.kind == "loop"]

    def hold(self, link):
        """Nothing passes any more, in either direction; the connection stands."""
        link.held = True
        self.waker.send(b"x")

    def cut(self, link):
        with self.lock:
            self.drop(link)
        self.waker.send(b"x")

    def restore(self, everything=False):
        """New connections are taken again, and what was held (or everything) is cut, so that it is made anew."""
        self.refusing = False
        with self.lock:
            for link in [x for x in self.links if x.held or everything]:
                self.drop(link)
        self.waker.send(b"x")

    def stop(self):
        self.stopped = True
        self.waker.send(b"x")
        self.thread.join()
        with self.lock:
            for link in list(self.links):
                self.drop(link)
        self.listener.close()

    # ---- the thread

    def drop(self, link):
        if link in self.links:
            self.links.remove(link)
            link.close()

    def accept(self):
        client, _ = self.listener.accept()
        server = socket.socket(socket.AF_UNIX)
        try:
            if self.refusing:
                raise ConnectionRefusedError
            server.connect(self.target)
        except OSError:
            client.close()
            server.close()
            return
        self.links.append(Link(client, server))

    def relay(self, link, source):
        other = link.server if source is link.client else link.client
        try:
            data = source.recv(1 << 16)
            if source is link.client and b"SETNAME" in data:
                link.kind = "loop"
            if data:
                other.sendall(data)
        except OSError:
            data = b""
        if not data:
            self.drop(link)

    def run(self):
        while not self.stopped:
            with self.lock:
                of = {s: link for link in self.links if not link.held for s in (link.client, link.server)}
            ready, _, _ = select.select([self.listener, self.wake, *of], [], [], 1)
            with self.lock:
                for s in ready:
                    if s is self.listener:
                        self.accept()
                    elif s is self.wake:
                        s.recv(100)
                    elif of[s] in self.links and not of[s].held:
                        self.relay(of[s], s)
