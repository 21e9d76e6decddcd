"""The table of bad requests (bad_requests.json): status, error code and field of each, in a fresh process, after which
an ordinary request still works and nothing was written."""
import json
import os

import pytest

from dd.client import body_of
from dd.dedupd import Dedupd

PATH = os.path.join(os.path.dirname(__file__), "bad_requests.json")


def table():
    with open(PATH, encoding="utf-8") as f:
        return json.load(f)


CASES = table()


@pytest.fixture(scope="module")
def target(tmp_path_factory):
    it = Dedupd(tmp_path_factory.mktemp("bad"))
    try:
        yield it.start()
        it.stop()
    finally:
        it.kill9()


def test_the_table_is_large_enough():
    assert len(CASES) >= 60
    names = [c["name"] for c in CASES]
    assert len(names) == len(set(names)), "names are unique"


@pytest.mark.parametrize("case", CASES, ids=[c["name"] for c in CASES])
def test_bad_request(target, case):
    answer = target.http.request(case["method"], case["path"], body_of(case), case.get("headers"))
    assert answer.status == case["status"], answer
    if case["method"] == "HEAD":
        assert answer.body == b""
        return
    if case.get("code"):
        assert answer.error["code"] == case["code"], answer
    if "field" in case:
        assert answer.error.get("field", "") == (case["field"] or ""), answer
    assert answer.error["message"], "an error says what is wrong"
    assert target.running()


def test_nothing_was_written(target):
    """Every case used users of its own or u1; the process still serves and u1 has seen nothing."""
    assert target.unseen("u1", ["a", "b", 1, 2]) == ["a", "b", 1, 2]
    assert target.http.get("/health").json
