"""The golden requests and answers of proto/examples: each file is replayed in order against a fresh process.

A file is {"description", "settings"?, "steps": [{"method", "path", "headers"?, "body"?, "status", "answer"?,
"answer_headers"?}]} or a list of steps. Strings in an answer may be "<any>": there, but not compared.
"""
import glob
import json
import os

import pytest

from dd.client import body_of
from dd.dedupd import ROOT

FILES = sorted(glob.glob(os.path.join(ROOT, "proto", "examples", "*.json")))


def matches(expected, got):
    if expected == "<any>":
        return True
    if isinstance(expected, dict) and isinstance(got, dict):
        return expected.keys() == got.keys() and all(matches(expected[k], got[k]) for k in expected)
    if isinstance(expected, list) and isinstance(got, list):
        return len(expected) == len(got) and all(map(matches, expected, got))
    return expected == got and isinstance(expected, bool) == isinstance(got, bool)


def test_there_are_examples():
    assert FILES


@pytest.mark.parametrize("path", FILES, ids=[os.path.basename(p) for p in FILES])
def test_example(bench, path):
    with open(path, encoding="utf-8") as f:
        example = json.load(f)
    steps = example if isinstance(example, list) else example["steps"]
    it = bench.dedupd(settings={} if isinstance(example, list) else example.get("settings"))
    assert steps
    for step in steps:
        answer = it.http.request(step["method"], step["path"], body_of(step), step.get("headers"))
        assert answer.status == step["status"], (step, answer)
        if "answer" in step:
            assert matches(step["answer"], answer.json), (step, answer)
        for name, value in step.get("answer_headers", {}).items():
            assert answer.headers[name] == value, (step, name, answer.headers[name])
