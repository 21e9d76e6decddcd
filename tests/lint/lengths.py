#!/usr/bin/python3
"""Lengths: functions of at most 60 lines, files of at most 500, nesting of at most 3 below the function.

Reads formatted C: a function is what stands between a `{` and a `}` in column 0 after a line that ends in `)`.
usage: lengths.py FILE...     prints one line for each breach; exit status 1 if there was one
"""
import re
import sys

MAX_FUNCTION = 60
MAX_FILE = 500
MAX_NESTING = 3

STRING = re.compile(r'"(\\.|[^"\\])*"|\'(\\.|[^\'\\])*\'')
OPENS_BLOCK = re.compile(r"^(\s*)(\}\s*)?(else|if|for|while|do|switch)\b.*$")


def functions(lines):
    """(name line, first line, last line) of each function, counted from 1; the braces are included."""
    start = None
    for number, line in enumerate(lines, 1):
        if line.startswith("{") and number > 1 and start is None:
            start = number
        elif line.startswith("}") and start is not None:
            if not line.startswith("};") and is_function(lines, start):
                yield name_line(lines, start), start, number
            start = None


def is_function(lines, brace):
    return lines[brace - 2].rstrip().endswith(")")


def name_line(lines, brace):
    """The signature may take several lines: it begins at the last line in column 0 before the brace."""
    number = brace - 1
    while number > 1 and lines[number - 1][:1] in (" ", "\t"):
        number -= 1
    return number


def nesting(lines, first, last):
    """The deepest control structure, by indentation of 4, and its line."""
    deepest, where = 0, first
    for number in range(first, last):
        line = STRING.sub('""', lines[number])
        found = OPENS_BLOCK.match(line)
        if found:
            depth = len(found.group(1)) // 4
            if depth > deepest:
                deepest, where = depth, number + 1
    return deepest, where


def breaches(path):
    lines = open(path, encoding="utf-8").read().split("\n")[:-1]
    if len(lines) > MAX_FILE:
        yield 1, "%d lines; a file has at most %d" % (len(lines), MAX_FILE)
    if not path.endswith(".c"):
        return
    for name, first, last in functions(lines):
        if last - first - 1 > MAX_FUNCTION:
            yield name, "%d lines; a function has at most %d" % (last - first - 1, MAX_FUNCTION)
        depth, where = nesting(lines, first, last)
        if depth > MAX_NESTING:
            yield where, "nested %d deep; at most %d" % (depth, MAX_NESTING)


def main():
    failed = False
    for path in sys.argv[1:]:
        for number, why in breaches(path):
            print("%s:%d: %s" % (path, number, why))
            failed = True
    return 1 if failed else 0


sys.exit(main())
