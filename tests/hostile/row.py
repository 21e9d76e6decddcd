"""A row: a name, the expected answer in words, and a function that plays the client. What it returns is printed."""


class Row:
    def __init__(self, group, name, expected, run, peak_mb, grow_mb):
        self.group, self.name, self.expected, self.run = group, name, expected, run
        self.peak_mb = peak_mb  # how far the server's memory may rise above its level meanwhile
        self.grow_mb = grow_mb  # and stay above it afterwards


ROWS = []


def row(group, name, expected, peak_mb=16, grow_mb=16):
    """Decorates run(server). Rows run in the order of their definition; those of a group share a server."""
    def add(run):
        ROWS.append(Row(group, name, expected, run, peak_mb, grow_mb))
        return run
    return add


class Skip(Exception):
    """The machine cannot do this; the text says what is missing."""
