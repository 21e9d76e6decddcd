"""The golden requests and answers of proto/examples: each file is replayed in order against a fresh process.

A file is a list of {"name", "request": {"method", "path", "headers"?, "body"?}, "response": {"status", "headers"?,
"body"?}}. A string in angle brackets in an answer stands for any value.
"""
import glob
import json
import os

import pytest

from dd.client import body_of
from dd.dedupd import ROOT

FILES = sorted(glob.glob(os.path.join(ROOT, "proto", "examples", "*.json")))
ADMIN = sorted(glob.glob(os.path.join(ROOT, "proto", "examples", "admin", "*.json")))


def matches(expected, got):
    if isinstance(expected, str) and expected.startswith("<") and expected.endswith(">"):
        return True
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(matches(expected[k], got[k]) for k in expected)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(matches, expected, got))
    return expected == got and isinstance(expected, bool) == isinstance(got, bool)


def test_there_are_examples():
    assert FILES and ADMIN


@pytest.mark.parametrize("with_redis", [False, True], ids=["embedded", "redis"])
@pytest.mark.parametrize("path", FILES + ADMIN, ids=[os.path.basename(p) for p in FILES + ADMIN])
def test_example(bench, path, with_redis):
    it = bench.dedupd(redis=bench.redis() if with_redis else None)
    with open(path, encoding="utf-8") as f:
        examples = json.load(f)
    assert examples
    for example in examples:
        ask, expected = example["request"], example["response"]
        on = it.admin if ask.get("listener", "admin" if path in ADMIN else "data") == "admin" else it.http
        answer = on.request(ask["method"], ask["path"], body_of(ask), ask.get("headers"))
        assert answer.status == expected["status"], (example["name"], answer)
        if "body" in expected:
            assert matches(expected["body"], answer.json), (example["name"], answer)
        for name, value in expected.get("headers", {}).items():
            assert answer.headers[name] == value, (example["name"], name, answer.headers[name])
