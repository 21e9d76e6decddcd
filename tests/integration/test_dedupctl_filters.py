"""dedupctl filters: what its tables say must hold, whatever the machine; no times are judged."""
import json
import os
import shutil
import signal
import subprocess

import pytest

from dd.dedupd import BINARY
from dd.wait import PATIENCE, wait_until

DEDUPCTL = os.path.join(os.path.dirname(BINARY), "dedupctl")
KINDS = ("bloom", "counting", "cuckoo", "compact")
CLASSIC = ("chain 5 x 1,000", "double array 2 x 2,500", "queue")
EXACT = ("hash set", "list")


def run(*args, status=0, **kw):
    done = subprocess.run([DEDUPCTL, "filters", *args], stdin=subprocess.DEVNULL, capture_output=True, text=True,
                          timeout=120 * PATIENCE, **kw)
    assert done.returncode == status, "%s: %d\n%s%s" % (args, done.returncode, done.stdout[-2000:], done.stderr[-4000:])
    return done


def report(*args, **kw):
    answer = json.loads(run(*args, "--json", **kw).stdout)
    assert set(answer) == {"report", "rows", "notes"}
    return answer["rows"]


def by(rows, *keys):
    """Rows by the values of some columns, which no two of them share."""
    found = {tuple(r[k] for k in keys) if len(keys) > 1 else r[keys[0]]: r for r in rows}
    assert len(found) == len(rows)
    return found


@pytest.fixture(scope="module")
def compared():
    rows = report("--items", "60,1000,6000", "--users", "4", "--probes", "60000")
    return by(rows, "structure", "items")


def test_all_structures_in_all_sizes(compared):
    assert set(compared) == {(s, n) for s in KINDS + CLASSIC + EXACT for n in (60, 1000, 6000)}
    for row in compared.values():
        for cost in ("add_ns", "growth_ns", "test_ns", "merge_us"):
            assert row[cost] > 0, row


def test_rates_keep_the_promise(compared):
    """The promise lies above the lower end of the measured rate's interval, and the interval holds the rate."""
    for (name, items), row in compared.items():
        if name in EXACT or name == "queue":
            assert row["fpr"] == 0 and row["promise"] is None
            continue
        assert row["fpr_low"] <= row["fpr"] <= row["fpr_high"] <= 0.01, row
        assert row["fpr_low"] <= row["promise"], row
        assert row["promise"] == pytest.approx({"chain 5 x 1,000": 5e-3, "double array 2 x 2,500": 2e-3}.get(
            name, 0.001 / 3), rel=1e-3)
    assert compared["bloom", 6000]["fpr"] > 0, "60,000 probes at 1/3,000 hit something"


def test_only_those_that_rotate_forget(compared):
    for (name, items), row in compared.items():
        if name in CLASSIC and items == 6000:
            assert 0.1 < row["forgotten"] < 0.6, row
        else:
            assert row["forgotten"] == 0, row


def test_sizes(compared):
    for name in KINDS + EXACT:
        sizes = [compared[name, n]["bytes_per_user"] for n in (60, 1000, 6000)]
        assert sizes == sorted(sizes) and sizes[0] < sizes[2]
    for (name, items), row in compared.items():
        assert row["bytes_per_item"] == pytest.approx(row["bytes_per_user"] / items)
        if name in KINDS:
            bits = 8 * row["bytes_per_item"]
            assert row["ratio"] == pytest.approx(bits / 11.5507, rel=1e-3), "log2(3000) is 11.55"
            assert row["ratio"] > 1, "nothing beats the information limit"
            assert row["hinted_bytes_per_user"] > 0
        else:
            assert row["ratio"] is None
    assert compared["list", 1000]["bytes_per_user"] == 18000, "ids of 16 bytes, 2 for the length"
    assert compared["compact", 1000]["ratio"] <= 1.6
    assert compared["bloom", 60]["bytes_per_user"] <= 4 * 60 + 32
    assert compared["bloom", 6000]["hinted_bytes_per_user"] < compared["bloom", 6000]["bytes_per_user"]


def test_a_looser_promise_takes_less():
    strict, loose = (by(report("--items", "1000", "--users", "1", "--probes", "1000", "--fpr", f), "structure")
                     for f in ("0.001", "0.05"))
    for name in KINDS:
        assert loose[name]["bytes_per_user"] < strict[name]["bytes_per_user"]


def test_words_are_the_same_table():
    args = ("--items", "50", "--users", "1", "--probes", "1000")
    lines = run(*args).stdout.split("\n")
    assert lines[0].split()[:4] == ["structure", "users", "items", "bytes/user"]
    names = [r["structure"] for r in report(*args)]
    assert [line[:len(name)] for line, name in zip(lines[1:], names)] == names


def test_same_seed_same_sizes_and_rates():
    args = ("--items", "700", "--users", "2", "--probes", "20000", "--seed")
    steady = ("structure", "bytes_per_user", "fpr", "forgotten")
    a, b, c = ([[r[k] for k in steady] for r in report(*args, seed)] for seed in ("7", "7", "8"))
    assert a == b
    assert a != c


# ---- a file


def test_file_of_user_and_item(tmp_path):
    """Users may come in any order, items may repeat, lines may end in CR LF."""
    lines = ["u%d\titem-%d" % (i % 3, i // 3) for i in range(900)]
    lines += ["u1\titem-5\r"] * 10
    path = tmp_path / "seen.tsv"
    path.write_text("\n".join(lines) + "\n")
    rows = by(report("--file", str(path), "--probes", "3000"), "structure")
    assert set(rows) == set(KINDS + CLASSIC + EXACT)
    for name, row in rows.items():
        assert row["users"] == 3
        assert row["items"] == 300, "repeats do not count"
        assert row["forgotten"] == 0
    assert rows["list"]["bytes_per_user"] > rows["queue"]["bytes_per_user"] * 0.99


@pytest.mark.parametrize("text,where", [
    ("", "no lines"),
    ("u\ti\nno tab here\n", ":2:"),
    ("u\ti\n\n", ":2:"),
    ("\titem\n", ":1:"),
    ("user\t\n", ":1:"),
    ("u\t%s\n" % ("i" * 257), ":1:"),
    ("%s\ti\n" % ("u" * 129), ":1:"),
    ("u\ta\tb\n", ":1:"),
    ("u\ta\0b\n", ":1:"),
])
def test_bad_file(tmp_path, text, where):
    path = tmp_path / "bad.tsv"
    path.write_text(text)
    done = run("--file", str(path), status=1)
    assert "--file" in done.stderr and where in done.stderr
    assert not done.stdout


def test_no_such_file(tmp_path):
    assert "No such file" in run("--file", str(tmp_path / "none"), status=1).stderr


# ---- presets


def test_preset_articles():
    rows = by(report("--preset", "articles", "--users", "1", "--probes", "20000"), "structure")
    assert rows["list"]["bytes"] == 70000 and rows["list"]["stated_kb"] == 70
    chain = rows["chain 5 x 1,000, 0.001 each"]
    assert 8500 < chain["bytes"] < 10240 and chain["stated_kb"] == 10
    assert 0.003 < chain["fpr"] < 0.007, "five blocks at 0.001"
    assert rows["chain 5 x 1,000, 0.001 in all"]["fpr_low"] <= 0.001
    assert (rows["list"]["stated_check_us"], chain["stated_check_us"]) == (570, 180)


def test_preset_memory():
    rows = by(report("--preset", "memory", "--items", "500,4000,9000", "--users", "1", "--probes", "2000"),
              "structure", "items")
    for name in CLASSIC:
        assert rows[name, 4000]["forgotten"] == 0
        assert rows[name, 9000]["forgotten"] > 0.3
    assert rows["queue", 9000]["bytes_per_user"] == 90000, "it holds 5,000"
    assert rows["chain 5 x 1,000", 9000]["bytes_per_user"] < 10240
    assert rows["compact", 9000]["forgotten"] == 0


def test_preset_scale():
    rows = by(report("--preset", "scale", "--users", "1"), "structure")
    assert rows["ids alone"]["tb"] == 25 and rows["ids alone"]["share"] == 1
    for name in KINDS:
        known, guessed = rows[name + ", size known"], rows[name]
        assert known["tb"] == pytest.approx(known["bytes_per_user"] * 1e8 / 1e12)
        assert known["bytes_per_user"] < guessed["bytes_per_user"]
    assert rows["compact"]["share"] < 0.1


# ---- plots


@pytest.mark.skipif(not shutil.which("gnuplot"), reason="needs gnuplot (Debian package gnuplot-nox)")
@pytest.mark.parametrize("suffix,begin,has", [(".svg", b"<?xml", b"</svg>"), (".png", b"\x89PNG", b"IEND")])
def test_plot(tmp_path, suffix, begin, has):
    path = tmp_path / ("it's \"one\"" + suffix)
    run("--items", "50,800", "--users", "1", "--probes", "5000", "--plot", str(path))
    data = path.read_bytes()
    assert data.startswith(begin) and has in data
    if suffix == ".svg":
        assert b"double array" in data and b"bytes of a user" in data


def test_plot_without_gnuplot(tmp_path):
    path = tmp_path / "x.svg"
    done = run("--plot", str(path), status=1, env=dict(os.environ, PATH=str(tmp_path)))
    assert "gnuplot-nox" in done.stderr
    assert not done.stdout, "it is found before anything is measured"
    assert not path.exists()


def test_plot_with_a_gnuplot_that_fails(tmp_path):
    bad = tmp_path / "gnuplot"
    bad.write_text("#!/bin/sh\nexit 3\n")
    bad.chmod(0o755)
    path = tmp_path / "x.svg"
    done = run("--items", "20", "--users", "1", "--probes", "1000", "--plot", str(path), status=1,
               env=dict(os.environ, PATH="%s:/usr/bin:/bin" % tmp_path))
    assert "gnuplot did not draw it" in done.stderr
    assert not path.exists()


def test_plot_in_no_directory(tmp_path):
    done = run("--plot", str(tmp_path / "none" / "x.png"), status=1)
    assert "--plot" in done.stderr and "No such file" in done.stderr and not done.stdout


# ---- population


def test_population(tmp_path):
    rows = by(report("--population", "--users", "150", "--probes", "15000", "--dir", str(tmp_path)), "kind", "hints")
    assert set(rows) == {(k, h) for k in KINDS for h in ("no", "yes")}
    for row in rows.values():
        assert row["fpr_low"] <= 0.001 and row["fpr_low"] <= row["fpr"] <= row["fpr_high"]
        assert row["forgotten"] == 0
        assert row["set_bytes_per_user"] < row["disk_bytes_per_user"] < row["set_bytes_per_user"] * 1.5 + 200
        assert 0 < row["sparse_users"] <= row["sparse_sets"] < 1
        if shutil.which("redis-server"):
            # Each set carries a header of 25 bytes there, and the key is more than a hundred.
            assert row["redis_bytes_per_user"] > row["set_bytes_per_user"] + 3 * 25 + 100
    for kind in ("bloom", "cuckoo", "compact"):
            # Of so few users a few large ones decide; what hints save shows in larger populations.
            assert rows[kind, "yes"]["ratio"] < rows[kind, "no"]["ratio"] * 1.1
    assert rows["compact", "yes"]["ratio"] < rows["bloom", "yes"]["ratio"] < rows["counting", "yes"]["ratio"]
    assert not os.listdir(tmp_path), "stores and sockets are gone"


def test_population_without_redis(tmp_path):
    answer = json.loads(run("--population", "--users", "20", "--kind", "bloom", "--json", "--dir", str(tmp_path),
                            env=dict(os.environ, PATH=str(tmp_path))).stdout)
    assert [r["redis_bytes_per_user"] for r in answer["rows"]] == [None, None]
    assert any("redis-server could not be started" in n for n in answer["notes"])


def test_population_is_stopped_cleanly(tmp_path):
    child = subprocess.Popen([DEDUPCTL, "filters", "--population", "--users", "50000", "--dir", str(tmp_path)],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    try:
        wait_until(lambda: list(tmp_path.glob("dedupctl-filters-*/bloom-0/db/CURRENT")), 20, "a store is there")
        child.send_signal(signal.SIGINT)
        out, err = child.communicate(timeout=20 * PATIENCE)
    finally:
        child.kill()
        child.wait()
    assert child.returncode == 1, err
    assert b"shutting down" in err and not out
    assert not os.listdir(tmp_path), "the store is removed"


def test_population_in_no_directory(tmp_path):
    assert "--dir" in run("--population", "--users", "5", "--dir", str(tmp_path / "none"), status=1).stderr


# ---- targets


def test_targets_are_printed():
    rows = by(report("--targets", "--users", "100"), "target")
    for row in rows.values():
        assert row["verdict"] == ("pass" if row["measured"] <= row["limit"] else "MISS")
        if row["unit"] != "us":
            assert row["verdict"] == "pass", row
    limits = {(r["unit"], r["limit"]) for r in rows.values()}
    assert {("x limit", 1.6), ("x optimum", 1.5), ("bytes", 32), ("us", 6), ("us", 12)} <= limits


# ---- usage


@pytest.mark.parametrize("args,named", [
    (["--items", "0"], "--items"),
    (["--items", "-5"], "--items"),
    (["--items", ""], "--items"),
    (["--items", "10,"], "--items"),
    (["--items", "10,,20"], "--items"),
    (["--items", "200001"], "--items"),
    (["--items", "1e3"], "--items"),
    (["--items", "18446744073709551616"], "--items"),
    (["--items", ",".join(["1"] * 33)], "--items"),
    (["--items"], "--items"),
    (["--items", "150000", "--fpr", "0.0001"], "--items"),
    (["--fpr", "0"], "--fpr"),
    (["--fpr", "1"], "--fpr"),
    (["--fpr", "2"], "--fpr"),
    (["--fpr", "-0.1"], "--fpr"),
    (["--fpr", "nan"], "--fpr"),
    (["--fpr", "0.01x"], "--fpr"),
    (["--users", "0"], "--users"),
    (["--users=many"], "--users"),
    (["--id-bytes", "7"], "--id-bytes"),
    (["--probes", "1"], "--probes"),
    (["--seed", "-1"], "--seed"),
    (["--preset", "all"], "--preset"),
    (["--preset", "scale", "--items", "5"], "--items"),
    (["--preset", "scale", "--population"], "--population"),
    (["--population", "--plot", "x.svg"], "--plot"),
    (["--population", "--kind", "xor"], "--kind"),
    (["--kind", "bloom"], "--kind"),
    (["--plot", "x.gif"], "--plot"),
    (["--plot", ".svg"], "--plot"),
    (["--file", "f", "--items", "5"], "--file"),
    (["--file", "f", "--users", "5"], "--file"),
    (["--file", "f", "--plot", "x.svg"], "--plot"),
    (["--itmes", "5"], "--itmes"),
    (["--json=yes"], "--json=yes"),
    (["10"], "10"),
])
def test_wrong_usage(args, named):
    done = run(*args, status=2)
    assert named in done.stderr and done.stderr.startswith("dedupctl: filters: ")
    assert done.stderr.count("\n") == 1 and not done.stdout


def test_help():
    text = run("--help").stdout
    for option in ("--items", "--users", "--fpr", "--file", "--preset", "--population", "--targets", "--plot", "--json",
                   "--seed", "--dir", "--kind", "--probes", "--id-bytes"):
        assert option in text
    examples = [line.split() for line in text[text.index("examples:"):].split("\n")[1:] if line.strip()]
    assert len(examples) >= 5 and all(e[:2] == ["dedupctl", "filters"] for e in examples)


def test_no_standard_output_is_an_error():
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = subprocess.run([DEDUPCTL, "filters", "--items", "10", "--users", "1", "--probes", "1000"], stdout=full,
                              stderr=subprocess.PIPE, timeout=60 * PATIENCE, check=False)
    assert done.returncode == 1 and done.stderr
