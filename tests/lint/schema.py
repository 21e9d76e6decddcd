#!/usr/bin/python3
"""Data files parse: proto/openapi.yaml, proto/examples/*.json, config/*.json, other .json and .yaml of the tree."""
import glob
import json
import sys

import yaml


def parse(path):
    with open(path, encoding="utf-8") as f:
        if path.endswith(".json"):
            json.load(f)
        else:
            list(yaml.safe_load_all(f))


def openapi_problems(path):
    """Each operation has an id of its own and answers something."""
    with open(path, encoding="utf-8") as f:
        doc = yaml.safe_load(f)
    seen = set()
    for route, item in doc.get("paths", {}).items():
        for method, op in item.items():
            if method not in ("get", "post", "put", "delete", "head", "patch"):
                continue
            if not op.get("responses"):
                yield "%s %s: no responses" % (method, route)
            if op.get("operationId") in seen:
                yield "%s %s: operationId used twice" % (method, route)
            seen.add(op.get("operationId", method + route))


def main():
    bad = []
    patterns = ("proto/*.yaml", "proto/examples/*.json", "config/*.json", "deploy/**/*.yaml", "deploy/**/*.json",
                "tests/integration/*.json")
    for path in sorted({p for pattern in patterns for p in glob.glob(pattern, recursive=True)}):
        try:
            parse(path)
            if path.endswith("openapi.yaml"):
                bad += ["%s: %s" % (path, why) for why in openapi_problems(path)]
        except (ValueError, yaml.YAMLError) as e:
            bad.append("%s: %s" % (path, e))
    print("\n".join(bad))
    return 1 if bad else 0


sys.exit(main())
