#!/usr/bin/env python3
"""trail export --to=otlp --endpoint, against a collector that answers as a test wants it to. TAP.

usage: export_push.py TRAIL SOURCE_ROOT
"""

import http.server
import json
import os
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, ROOT, TRAIL, equal  # noqa: E402
from tap import Skip, main, test

TRACE = os.path.join(ROOT, "examples", "traces", "shop-c.trace")


class Collector:
    """Answers with the next of `answers`: a status, headers and a body; then with 200."""

    def __init__(self, *answers):
        collector = self
        self.requests, self.answers = [], list(answers)

        class Handler(http.server.BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["Content-Length"]))
                collector.requests.append((self.path, dict(self.headers), body))
                status, headers, answer = collector.answers.pop(0) if collector.answers else (200, {}, b"{}")
                self.send_response(status)
                for key, value in {**headers, "Content-Length": len(answer)}.items():
                    self.send_header(key, value)
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *args):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def __enter__(self):
        return self

    def __exit__(self, *args):
        self.server.shutdown()
        self.server.server_close()


def export(*args, env=None):
    p = subprocess.run([TRAIL, "export", "--to=otlp", *args, TRACE], capture_output=True, text=True, timeout=120,
                       env={**ENV, "no_proxy": "127.0.0.1", **(env or {})})  # fmt: skip
    if "needs libcurl" in p.stderr:
        raise Skip("no libcurl.so.4")
    return p


@test
def what_would_be_written_is_sent():
    with Collector() as collector:
        p = export(f"--endpoint={collector.url}")
        assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
    (path, headers, body), = collector.requests
    equal((path, headers["Content-Type"]), ("/v1/traces", "application/json"))
    equal(body.decode() + "\n", export().stdout)


@test
def an_address_with_a_path_and_headers_are_as_given():
    with Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret,x-tenant=shop"}
        equal(export(f"--endpoint={collector.url}/otlp", env=env).returncode, 0)
    (path, headers, _), = collector.requests
    equal((path, headers["authorization"], headers["x-tenant"]), ("/otlp", "Bearer secret", "shop"))


@test
def a_busy_collector_is_asked_again():
    with Collector((503, {"Retry-After": "1"}, b"busy"), (429, {}, b"")) as collector:
        p = export(f"--endpoint={collector.url}")
        equal((p.returncode, p.stderr), (0, f"trail: {collector.url}/v1/traces: HTTP status 503: busy; trying again for half a minute\n"))
    bodies = [body for _, _, body in collector.requests]
    assert len(bodies) == 3 and len(set(bodies)) == 1, len(bodies)


@test
def what_a_collector_refuses_is_reported_and_not_sent_again():
    with Collector((400, {}, b"no spans of yours\r\n")) as collector:
        p = export(f"--endpoint={collector.url}")
        assert p.returncode == 3 and "HTTP status 400: no spans of yours" in p.stderr, p
    equal(len(collector.requests), 1)
    with Collector((200, {}, b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}')) as collector:
        p = export(f"--endpoint={collector.url}")
        assert p.returncode == 3 and "not all spans were accepted" in p.stderr and "too old" in p.stderr, p
    with Collector((200, {}, b'{"partialSuccess":{"rejectedSpans":"0"}}')) as collector:
        equal(export(f"--endpoint={collector.url}").returncode, 0)


def resource(*args, env=None):
    line = export(*args, env=env).stdout.splitlines()[0]
    items = json.loads(line)["resourceSpans"][0]["resource"]["attributes"]
    return {item["key"]: item["value"]["stringValue"] for item in items}


@test
def attributes_of_the_resource_come_from_options_and_the_environment():
    equal(resource(), {"service.name": "shop-c.trace"})
    equal(resource("--resource=service.name=shop,a=1"), {"service.name": "shop", "a": "1"})
    env = {"OTEL_SERVICE_NAME": "web", "OTEL_RESOURCE_ATTRIBUTES": 'service.name=x,host.name=a%2Cb, q="\u00e9'}
    equal(resource(env=env), {"service.name": "web", "host.name": "a,b", "q": '"\u00e9'})
    equal(resource("--resource=service.name=shop", env=env), {"service.name": "shop", "host.name": "a,b", "q": '"\u00e9'})


@test
def mistakes_are_reported():
    for args, text in {
        ("--resource=nonsense",): "KEY=VALUE",
        ("--resource==x",): "KEY=VALUE",
        ("--endpoint=localhost:4318",): "an address like http://",
        ("--endpoint=http://127.0.0.1:4318", "-o", "x.otlp.json"): "not both",
    }.items():
        p = export(*args)
        assert p.returncode in (2, 3) and text in p.stderr, (args, p)
    p = subprocess.run([TRAIL, "export", "--to=chrome", "--endpoint=http://x", TRACE], capture_output=True, text=True)
    assert p.returncode == 2 and "for otlp" in p.stderr, p


sys.exit(main())
