"""Requests that are not HTTP/1.1 as dedupd speaks it, each with a second request hidden behind it: the answer is one
refusal and the end of the connection, so that what is hidden is never taken for a request. And the legal ones beside
them."""
from row import ROWS, Row
from wire import HOST, LIVE, Wire, post

G = "strict"
BODY = b'{"user":"u","candidates":["a"]}'
N = b"%d" % len(BODY)


def head(*lines, line=b"POST /filter HTTP/1.1", host=HOST):
    return line + b"\r\n" + host + b"".join(x + b"\r\n" for x in lines) + b"\r\n"


CL = b"Content-Length: "
CHUNKED = b"Transfer-Encoding: chunked"
GET = b"GET /health/live HTTP/1.1"

# name, bytes (LIVE follows), status
REFUSED = [
    ("two different Content-Length", head(CL + b"0", CL + N) + BODY, 400),
    ("two equal Content-Length", head(CL + N, CL + N) + BODY, 400),
    ("Content-Length list \"2, 2\"", head(CL + b"2, 2") + b"{}", 400),
    ("Content-Length with a blank before the colon", head(b"Content-Length : " + N) + BODY, 400),
    ("Content-Length +2", head(CL + b"+2") + b"{}", 400),
    ("Content-Length -1", head(CL + b"-1"), 400),
    ("Content-Length 0x2", head(CL + b"0x2") + b"{}", 400),
    ("Content-Length of 2^64 + 2", head(CL + b"18446744073709551618") + b"{}", 413),
    ("Content-Length empty", head(b"Content-Length:"), 400),
    ("Content-Length above the limit", head(CL + b"1048577"), 413),
    ("Content-Length and chunked", head(CL + N, CHUNKED) + b"0\r\n\r\n", 400),
    ("chunked and Content-Length", head(CHUNKED, CL + N) + b"0\r\n\r\n", 400),
    ("Transfer-Encoding: chunked", head(CHUNKED) + b"2\r\n{}\r\n0\r\n\r\n", 411),
    ("chunk size 0x2", head(CHUNKED) + b"0x2\r\n{}\r\n0\r\n\r\n", 411),
    ("chunk size +2", head(CHUNKED) + b"+2\r\n{}\r\n0\r\n\r\n", 411),
    ("chunk size -0", head(CHUNKED) + b"-0\r\n\r\n", 411),
    ("chunk extension with a blank", head(CHUNKED) + b"2 ;a=b\r\n{}\r\n0\r\n\r\n", 411),
    ("chunk extension", head(CHUNKED) + b"2;a=b\r\n{}\r\n0\r\n\r\n", 411),
    ("chunk without CR LF after its data", head(CHUNKED) + b"2\r\n{}0\r\n\r\n", 411),
    ("chunks with trailers", head(CHUNKED) + b"2\r\n{}\r\n0\r\nX: y\r\n\r\n", 411),
    ("Transfer-Encoding: gzip", head(b"Transfer-Encoding: gzip") + BODY, 400),
    ("Transfer-Encoding: xchunked", head(b"Transfer-Encoding: xchunked") + BODY, 400),
    ("Transfer-Encoding: gzip, chunked", head(b"Transfer-Encoding: gzip, chunked") + b"0\r\n\r\n", 400),
    ("Transfer-Encoding twice", head(CHUNKED, CHUNKED) + b"0\r\n\r\n", 400),
    ("Transfer-Encoding folded", head(b"Transfer-Encoding:", b" chunked") + b"0\r\n\r\n", 400),
    ("Transfer-Encoding with a blank before the colon", head(b"Transfer-Encoding : chunked") + b"0\r\n\r\n", 400),
    ("chunked on HTTP/1.0", head(CHUNKED, line=b"POST /filter HTTP/1.0") + b"0\r\n\r\n", 400),
    ("chunked on GET", head(CHUNKED, line=GET) + b"0\r\n\r\n", 411),
    ("GET with a body", head(CL + b"%d" % len(LIVE), line=GET), 400),
    ("HEAD with a body", head(CL + b"%d" % len(LIVE), line=b"HEAD /health/live HTTP/1.1"), 400),
    ("TRACE", head(line=b"TRACE / HTTP/1.1"), 501),
    ("TRACE with a body", head(CL + b"%d" % len(LIVE), line=b"TRACE / HTTP/1.1"), 501),
    ("CONNECT", head(line=b"CONNECT a:80 HTTP/1.1"), 501),
    ("bare LF after the request line", b"GET /health/live HTTP/1.1\nHost: a\r\n\r\n", 400),
    ("bare LF after a header", GET + b"\r\nHost: a\n\r\n", 400),
    ("bare LF as the empty line", GET + b"\r\nHost: a\r\n\n", 400),
    ("bare CR in a header", head(b"X: a\rb", line=GET), 400),
    ("bare CR as line end", GET + b"\rHost: a\r\r", 400),
    ("folded header", head(b"X: a", b" b", line=GET), 400),
    ("folded header with a tab", head(b"X: a", b"\tb", line=GET), 400),
    ("header without a colon", head(b"nonsense", line=GET), 400),
    ("header name empty", head(b": x", line=GET), 400),
    ("header name with a blank", head(b"X Y: z", line=GET), 400),
    ("header name of no token", head(b"X(): z", line=GET), 400),
    ("NUL in a header value", head(b"X: a\0b", line=GET), 400),
    ("NUL in a header name", head(b"X\0: a", line=GET), 400),
    ("NUL in the request line", head(line=b"GET /health/live\0 HTTP/1.1"), 400),
    ("no Host", GET + b"\r\n\r\n", 400),
    ("two Hosts", head(b"Host: b", line=GET), 400),
    ("Host of no host", head(line=GET, host=b"Host: a b\r\n"), 400),
    ("HTTP/0.9", b"GET /health/live\r\n", 400),
    ("HTTP/2.0", head(line=b"GET /health/live HTTP/2.0"), 505),
    ("the preface of HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
    ("HTTP/1.2", head(line=b"GET /health/live HTTP/1.2"), 505),
    ("HTTP/1.99999999999", head(line=b"GET /health/live HTTP/1.99999999999"), 400),
    ("http/1.1 in lower case", head(line=b"GET /health/live http/1.1"), 400),
    ("two blanks in the request line", head(line=b"GET  /health/live HTTP/1.1"), 400),
    ("a tab in the request line", head(line=b"GET\t/health/live HTTP/1.1"), 400),
    ("no target", head(line=b"GET HTTP/1.1"), 400),
    ("a target that is no path", head(line=b"GET health/live HTTP/1.1"), 400),
    ("a raw byte above 127 in the target", head(line=b"GET /\xc3\xa9 HTTP/1.1"), 400),
    ("a TLS hello", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\0" * 100, 400),
    ("a header of 9 KB", head(b"X: " + b"a" * 9000, line=GET), 431),
    ("70 headers", head(*[b"X-%d: y" % i for i in range(70)], line=GET), 431),
    ("8 KB of target", head(line=b"GET /" + b"a" * 8200 + b" HTTP/1.1"), 431),
    ("Connection that is no list", head(b"Connection: a b", line=GET), 400),
    ("two Content-Type", head(b"Content-Type: application/json", b"Content-Type: text/plain", CL + N) + BODY, 400),
    ("two Authorization", head(b"Authorization: Bearer x", b"Authorization: Bearer y", line=GET), 400),
]

# name, bytes, status, whether the connection stays
ANSWERED = [
    ("a plain POST", post(b"/filter", BODY), 200, True),
    ("a plain GET", LIVE, 200, True),
    ("an empty line before the request", b"\r\n" + LIVE, 200, True),
    ("the absolute form", head(line=b"GET http://b:1/health/live HTTP/1.1"), 200, True),
    ("blanks around a header's value", head(b"X: \t a \t ", line=GET), 200, True),
    ("Content-Length 0 on GET", head(CL + b"0", line=GET), 200, True),
    ("Content-Length with leading zeros", head(CL + b"0000" + N) + BODY, 200, True),
    ("Connection: close, x", head(b"Connection: close, x", line=GET), 200, False),
    ("Connection: x,close", head(b"Connection: x,close", line=GET), 200, False),
    ("Upgrade: h2c, which is ignored", head(b"Upgrade: h2c", b"Connection: Upgrade", line=GET), 200, True),
    ("HTTP/1.0", head(line=b"GET /health/live HTTP/1.0"), 200, False),
    ("HTTP/1.0 without Host", head(line=b"GET /health/live HTTP/1.0", host=b""), 200, False),
    ("HTTP/1.0 with keep-alive", head(b"Connection: keep-alive", line=b"GET /health/live HTTP/1.0"), 200, True),
    ("BREW, an unknown method", head(line=b"BREW /health/live HTTP/1.1"), 405, True),
    ("get in lower case", head(line=b"get /health/live HTTP/1.1"), 405, True),
    ("PUT on a path that takes POST", head(CL + b"0", line=b"PUT /filter HTTP/1.1"), 405, True),
    ("a POST without a body", head(), 400, True),
    ("a body of no bytes", head(CL + b"0"), 400, True),
    ("an unknown path", head(line=b"GET /x/../health HTTP/1.1"), 404, True),
    ("an encoded path is another path", head(line=b"GET /%68ealth/live HTTP/1.1"), 404, True),
    ("a body of another type", head(b"Content-Type: text/plain", CL + N) + BODY, 415, True),
    ("OPTIONS *", head(line=b"OPTIONS * HTTP/1.1"), 404, True),
]


def refused(data, status):
    def run(server):
        with Wire(server.address) as w:
            w.send(data + LIVE)
            r = w.expect(status, no_body=data.startswith(b"HEAD"))
            assert r.headers.get("connection") == "close", r.headers
            w.half_close()
            w.expect_end()
        return "%d, closed" % status
    return run


def answered(data, status, stays):
    def run(server):
        with Wire(server.address) as w:
            w.send(data)
            r = w.expect(status)
            assert status != 405 or r.headers.get("allow"), r.headers
            if stays:
                w.send(LIVE)
                w.expect(200)
            else:
                assert r.headers["connection"] == "close"
                w.expect_end()
        return "%d, %s" % (status, "kept" if stays else "closed")
    return run


for name_, data_, status_ in REFUSED:
    ROWS.append(Row(G, name_, "%d, closed, nothing behind it read" % status_, refused(data_, status_), 16, 16))
for name_, data_, status_, stays_ in ANSWERED:
    ROWS.append(Row(G, name_, "%d, %s" % (status_, "kept" if stays_ else "closed"), answered(data_, status_, stays_),
                    16, 16))


def head_has_no_body(server):
    with Wire(server.address) as w:
        w.send(head(line=b"HEAD /health/live HTTP/1.1"))
        r = w.expect(200, no_body=True)
        assert int(r.headers["content-length"]) > 0
        w.send(LIVE)
        w.expect(200)
    return "200, length without body"


ROWS.append(Row(G, "HEAD", "200, length without body, kept", head_has_no_body, 16, 16))
