"""proto/openapi.yaml against the other truths: its own examples, the golden examples, the table of bad requests, and
what a real server answers. The validator below knows the part of JSON Schema that the file uses, and fails on any other
word, so that nothing in it goes unchecked."""
import glob
import json
import os
import re

import pytest
import yaml

from dd.client import body_of
from dd.dedupd import ROOT

with open(os.path.join(ROOT, "proto", "openapi.yaml"), encoding="utf-8") as f:
    DOC = yaml.safe_load(f)

TYPES = {"object": dict, "array": list, "string": str, "boolean": bool, "integer": int, "number": (int, float)}
KNOWN = {"type", "description", "default", "format", "enum", "oneOf", "properties", "required", "additionalProperties",
         "items", "minItems", "maxItems", "minLength", "maxLength", "minimum", "maximum", "nullable"}


def resolve(node):
    while "$ref" in node:
        at = DOC
        for part in node["$ref"].lstrip("#/").split("/"):
            at = at[part]
        node = at
    return node


def is_any(value):
    """A string in angle brackets stands for any value (golden examples)."""
    return isinstance(value, str) and value.startswith("<") and value.endswith(">")


def check_number(schema, value, where):
    assert schema.get("minimum", value) <= value <= schema.get("maximum", value), (where, value)
    assert schema.get("format") != "int64" or -2**63 <= value < 2**63, (where, value)


def check_array(schema, value, where):
    assert schema.get("minItems", 0) <= len(value) <= schema.get("maxItems", len(value)), where
    for i, one in enumerate(value):
        check(schema["items"], one, "%s[%d]" % (where, i))


def check_object(schema, value, where):
    properties, more = schema.get("properties", {}), schema.get("additionalProperties", True)
    for name in schema.get("required", ()):
        assert name in value, (where, "lacks", name)
    for name, one in value.items():
        if name in properties:
            check(properties[name], one, "%s.%s" % (where, name))
        elif isinstance(more, dict):
            check(more, one, "%s.%s" % (where, name))
        else:
            assert more, (where, "has unknown", name)


def fits(schema, value):
    try:
        check(schema, value, "")
    except AssertionError:
        return False
    return True


def check(schema, value, where):
    schema = resolve(schema)
    assert set(schema) <= KNOWN, (where, set(schema) - KNOWN)
    if is_any(value) or (value is None and schema.get("nullable")):
        return
    if "oneOf" in schema:
        assert sum(fits(one, value) for one in schema["oneOf"]) == 1, (where, value)
        return
    kind = schema["type"]
    assert isinstance(value, TYPES[kind]), (where, kind, value)
    assert kind == "boolean" or not isinstance(value, bool), (where, kind, value)
    assert value in schema.get("enum", [value]), (where, value)
    if kind == "string":
        size = len(value.encode("utf-8"))
        assert schema.get("minLength", 0) <= size <= schema.get("maxLength", size), (where, value)
    elif kind in ("integer", "number"):
        check_number(schema, value, where)
    elif kind == "array":
        check_array(schema, value, where)
    elif kind == "object":
        check_object(schema, value, where)


def media_of(node):
    return (resolve(node).get("content") or {}).get("application/json")


def operations():
    for path, item in DOC["paths"].items():
        for method, op in item.items():
            if method != "parameters":
                yield path, method.upper(), op


def template(path):
    """The path as openapi.yaml has it: without a query, with {names} for segments that vary."""
    path = path.split("?")[0]
    for known in DOC["paths"]:
        if re.fullmatch(re.sub(r"\{\w+\}", "[^/]+", known), path):
            return known
    return path


def operation(path, method):
    return DOC["paths"].get(template(path), {}).get(("GET" if method == "HEAD" else method).lower())


def response_media(op, status):
    assert str(status) in op["responses"], status
    return media_of(op["responses"][str(status)])


def golden():
    for path in sorted(glob.glob(os.path.join(ROOT, "proto", "examples", "**", "*.json"), recursive=True)):
        with open(path, encoding="utf-8") as examples:
            for one in json.load(examples):
                yield pytest.param(one, id="%s: %s" % (os.path.basename(path), one["name"]))


def bad_requests():
    with open(os.path.join(os.path.dirname(__file__), "bad_requests.json"), encoding="utf-8") as rows:
        return json.load(rows)


CODES = DOC["components"]["schemas"]["Error"]["properties"]["error"]["properties"]["code"]["enum"]


def test_every_operation_has_a_name_and_answers():
    names = [op["operationId"] for _, _, op in operations()]
    assert len(names) == len(set(names)) >= 10
    assert all(op["responses"] and op["summary"] for _, _, op in operations())


def test_own_examples_fit_their_schemas():
    seen = 0
    for path, method, op in operations():
        nodes = [op["requestBody"]] if "requestBody" in op else []
        for node in nodes + list(op["responses"].values()):
            media = media_of(node)
            for name, example in ((media or {}).get("examples") or {}).items():
                check(media["schema"], example["value"], "%s %s %s" % (method, path, name))
                seen += 1
    assert seen >= 30


@pytest.mark.parametrize("example", golden())
def test_golden_examples_fit(example):
    ask, answer = example["request"], example["response"]
    op = operation(ask["path"], ask["method"])
    if answer["status"] == 405 or (answer["status"] == 404 and op is None):
        assert op is None
        check({"$ref": "#/components/schemas/Error"}, answer["body"], "answer")
        return
    assert op, "the path is in openapi.yaml"
    if answer["status"] == 200 and ask["method"] == "POST":
        check(media_of(op["requestBody"])["schema"], json.loads(body_of(ask)), "request")
    if "body" in answer:
        check(response_media(op, answer["status"])["schema"], answer["body"], "answer")


def test_every_post_and_get_has_a_golden_example():
    played = {(p.values[0]["request"]["method"], template(p.values[0]["request"]["path"])) for p in golden()}
    for path, method, _ in operations():
        assert path.startswith("/admin/") or (method, path) in played, (method, path)


def test_codes_of_bad_requests_are_documented():
    for row in bad_requests():
        if row["code"]:
            assert row["code"] in CODES, row["name"]
        op = operation(row["path"], row["method"])
        assert op is None or row["status"] == 405 or str(row["status"]) in op["responses"], row["name"]


def test_bad_requests_do_not_fit():
    """What the server refuses, the description must not allow, as far as a schema can tell."""
    beyond = {"ts", "scene", "window", "limit", "max_seen", "events[1].ts", "events[2].ts", "events", "events[1].items"}
    for row in bad_requests():
        op = operation(row["path"], row["method"])
        if row["status"] != 400 or row["code"] == "invalid_json" or row.get("field") in beyond:
            continue
        try:
            body = json.loads(body_of(row))
        except RecursionError:
            continue
        assert not fits(media_of(op["requestBody"])["schema"], body), row["name"]


@pytest.mark.parametrize("with_redis", [False, True], ids=["embedded", "redis"])
def test_a_real_server_answers_as_described(bench, with_redis):
    it = bench.dedupd(redis=bench.redis() if with_redis else None)
    it.http.request("POST", "/exposed", b'{"user":"u","items":[1]}')
    for path, method, op in operations():
        if method != "GET" or path.startswith(("/admin/", "/users/")) or path == "/metrics":
            continue
        answer = it.http.request("GET", path)
        check(response_media(op, answer.status)["schema"], answer.json, path)
