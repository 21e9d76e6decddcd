#!/usr/bin/python3
"""Include rules: which module may see which, and which foreign header may appear where.

The truth is DEPS_<module> in the Makefile, handed over in the environment as DEPS="module:dep,dep module:...".
usage: DEPS=... layers.py FILE...     prints one line for each breach; exit status 1 if there was one
"""
import os
import re
import sys

INCLUDE = re.compile(r'^\s*#\s*include\s*(["<])([^">]+)[">]')

# Foreign header (by its beginning) -> the modules and folders it may appear in.
FENCES = {
    "event2/": {"loop", "http", "hot"},
    "event.h": set(),
    "hiredis": {"hot"},
    "hiredis/": {"hot"},
    "rocksdb/": {"store"},
    "jansson.h": {"config", "api", "cmd/dedupctl"},
    "xxhash.h": {"base", "filter"},
    "systemd/": {"cmd/dedupd"},
    "check.h": {"tests"},
}


def module_of(path):
    """lib/x/... and tests/unit/x/... belong to module x; cmd/y/... to "cmd/y"; the rest to its first folder."""
    parts = path.split("/")
    if parts[0] == "lib" and len(parts) > 2:
        return parts[1]
    if parts[0] == "cmd":
        return "/".join(parts[:2])
    return parts[0]


def allowed(path, deps):
    """Modules that the file may include, or None when it may include any."""
    parts = path.split("/")
    if parts[0] == "lib" and len(parts) > 2:
        return {parts[1], *deps[parts[1]]}
    if path.startswith("tests/unit/") and len(parts) > 3 and parts[2] in deps:
        return {parts[2], *deps[parts[2]], *(d for m in deps[parts[2]] for d in deps[m])}
    return None


def breaches(path, deps):
    may = allowed(path, deps)
    module = module_of(path)
    for number, line in enumerate(open(path, encoding="utf-8"), 1):
        found = INCLUDE.match(line)
        if not found:
            continue
        header = found.group(2)
        top = header.split("/")[0]
        if header.startswith("cmd/") and not path.startswith("cmd/"):
            yield number, "nothing includes cmd"
        if found.group(1) == '"' and "/" in header and top in deps and may is not None and top not in may:
            yield number, "%s may not include \"%s\" (DEPS_%s in the Makefile)" % (module, header, module)
        if header.endswith(".c"):
            yield number, "a .c file is compiled, not included"
        for begin, where in FENCES.items():
            if header.startswith(begin) and module not in where and module != "tests":
                yield number, "<%s> belongs in %s only" % (header, ", ".join(sorted(where)) or "no module")
                break


def main():
    deps = {}
    for word in os.environ["DEPS"].split():
        module, _, list_ = word.partition(":")
        deps[module] = [d for d in list_.split(",") if d]
    failed = False
    for path in sys.argv[1:]:
        for number, why in breaches(path, deps):
            print("%s:%d: %s" % (path, number, why))
            failed = True
    return 1 if failed else 0


sys.exit(main())
