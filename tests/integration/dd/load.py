"""Clients that expose and ask without pause, and the oracle: what was acknowledged, kept outside the processes that may
be killed. Every item is new; an item of which no acknowledgement came may be there or not."""
import random
import threading

from .wait import wait_until

PIECE = 5000  # candidates of one question


class Load:
    """threads clients with users_each users of their own each. Requests go to `it` (a Dedupd), which may be killed and
    started again meanwhile; those that fail are forgotten."""

    def __init__(self, it, threads=4, users_each=10, seed=0, prefix="u"):
        self.it = it
        self.rng = random.Random(seed)
        self.requests = 0  # acknowledged
        self.violations = []  # (user, items): a question after their acknowledgement did not see them
        self.broken = []  # answers that no client should get
        self.stop_ = threading.Event()
        self.clients = [threading.Thread(target=self.client, args=(n, users_each, self.rng.random()), daemon=True)
                        for n in range(threads)]
        self.users_all = ["%s%d-%d" % (prefix, n, k) for n in range(threads) for k in range(users_each)]
        self.acked = {u: [] for u in self.users_all}  # items

    def start(self):
        for c in self.clients:
            c.start()
        return self

    def stop(self):
        self.stop_.set()
        for c in self.clients:
            if c.ident:
                c.join()

    @property
    def items(self):
        """How many are acknowledged."""
        return sum(map(len, self.acked.values()))

    def more(self, n, seconds=20):
        """Waits for n more acknowledgements."""
        until = self.requests + n
        wait_until(lambda: self.requests >= until or self.stop_.is_set(), seconds, "%d more acknowledgements" % n)
        assert not self.broken, self.broken

    # ---- the clients

    def client(self, n, users_each, seed):
        rng = random.Random(seed)
        mine = self.users_all[n * users_each:(n + 1) * users_each]
        count = 0
        while not self.stop_.is_set():
            count += 1
            try:
                if rng.random() < .75:
                    self.expose(rng, mine, "%d.%d" % (n, count))
                else:
                    self.ask(rng.choice(mine))
            except OSError:
                self.stop_.wait(.003)  # it is being started again
            except (AssertionError, ValueError, KeyError) as e:
                self.broken.append(repr(e))
                self.stop_.set()

    def expose(self, rng, mine, name):
        users = rng.sample(mine, rng.choice([1, 1, 1, 3]))
        events = [{"user": u, "items": ["%s.%d" % (name, i) for i in range(rng.randrange(1, 12))]} for u in users]
        body = {"events": events} if len(events) > 1 else events[0]
        answer = self.it.http.post("/exposed", body)
        if answer.status != 200:
            return
        assert answer.json["accepted"] == sum(len(e["items"]) for e in events), answer
        for e in events:
            self.acked[e["user"]] += e["items"]
        self.requests += 1

    def ask(self, user):
        """The newest of the user: an answer that says full must have dropped all."""
        asked = self.acked[user][-200:]
        if not asked:
            return
        answer = self.it.http.post("/filter", {"user": user, "candidates": asked})
        if answer.status == 200 and answer.json["history"] == "full" and answer.json["items"]:
            self.violations.append((user, answer.json["items"]))
            self.stop_.set()

    # ---- the oracle

    def missing(self):
        """What a full answer offers although it was acknowledged before the question, as (user, item). Of each user all
        is asked."""
        found = []
        for user in self.users_all:
            known = list(self.acked[user])
            for at in range(0, len(known), PIECE):
                piece = known[at:at + PIECE]
                found += [(user, item) for item in self.full_answer(user, piece)["items"]]
        return found + [(user, item) for user, items in self.violations for item in items]

    def full_answer(self, user, candidates):
        def ask():
            answer = self.it.filter(user, candidates)
            return answer if answer["history"] == "full" else None
        return wait_until(ask, 20, "a full answer")
