#!/usr/bin/env python3
"""trail export and watch with --endpoint, against a collector whose answers each test chooses. TAP.

usage: export_push.py TRAIL SOURCE_ROOT
"""

import gzip
import http.server
import json
import os
import shutil
import subprocess
import sys
import threading

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from command import ENV, ROOT, TRAIL, WORK, assembled, equal  # noqa: E402
from tap import Skip, main, test

TRACE = os.path.join(ROOT, "examples", "traces", "shop-c.trace")
MODULES = os.path.join(os.environ.get("TRAIL_DUCKDB", ""), "node_modules")
PROTOBUF = "application/x-protobuf"
# An ExportTraceServiceResponse: partial_success = 1 { rejected_spans = 1: 3, error_message = 2: "too old" }
REJECTED = b"\x0a\x0b\x08\x03\x12\x07too old"


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


def export(*args, env=None, trace=TRACE, to="otlp"):
    p = subprocess.run([TRAIL, "export", f"--to={to}", *args, trace], capture_output=True, text=True, timeout=120,
                       env={**ENV, "no_proxy": "127.0.0.1", **(env or {})})  # fmt: skip
    if "needs libcurl" in p.stderr:
        raise Skip("no libcurl.so.4")
    return p


def decoded(*bodies, signal="trace"):
    """Requests as OTLP's JSON, through OpenTelemetry's own decoder; and its answer, like REJECTED."""
    if not os.path.isdir(os.path.join(MODULES, "@opentelemetry")) or not shutil.which("node"):
        raise Skip("nothing of npm: no @opentelemetry/otlp-transformer in TRAIL_DUCKDB")
    files = [os.path.join(WORK, f"{i}.pb") for i in range(len(bodies))]
    for file, body in zip(files, bodies):
        with open(file, "wb") as f:
            f.write(body)
    script = os.path.join(ROOT, "tests", "commands", "npm", "spans.mjs")
    p = subprocess.run(["node", script, MODULES, signal, *files], capture_output=True, text=True, timeout=120)
    equal((p.returncode, p.stderr), (0, ""))
    *requests, answer = p.stdout.splitlines()
    return [json.loads(line) for line in requests], bytes.fromhex(answer)


@test
def the_same_is_sent_in_protocol_buffers_as_is_written_in_json():
    for trace in (TRACE, os.path.join(ROOT, "examples", "traces", "load-go1.23.trace"), odd()):
        with Collector() as collector:
            p = export(f"--endpoint={collector.url}", trace=trace)
            assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
        equal({(path, h["Content-Type"]) for path, h, _ in collector.requests}, {("/v1/traces", PROTOBUF)})
        requests, answer = decoded(*(body for _, _, body in collector.requests))
        written = [json.loads(line) for line in export(trace=trace).stdout.splitlines()]
        assert written, trace
        equal(requests, written)
        equal(answer, REJECTED)


@test
def the_same_metrics_are_sent_in_protocol_buffers_as_are_written_in_json():
    for trace in (TRACE, os.path.join(ROOT, "examples", "traces", "load-go1.23.trace")):
        with Collector() as collector:
            p = export(f"--endpoint={collector.url}", trace=trace, to="otlp-metrics")
            assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
        equal({(path, h["Content-Type"]) for path, h, _ in collector.requests}, {("/v1/metrics", PROTOBUF)})
        requests, answer = decoded(*(body for _, _, body in collector.requests), signal="metrics")
        written = [json.loads(line) for line in export(trace=trace, to="otlp-metrics").stdout.splitlines()]
        equal((requests, len(written)), (written, 2))
        equal(answer, REJECTED)


@test
def metrics_have_variables_of_their_own_and_answers_of_their_own():
    with Collector((200, {}, b'{"partialSuccess":{"rejectedDataPoints":"3","errorMessage":"too old"}}')) as collector:
        env = {"OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": "http/json"}
        p = export(f"--endpoint={collector.url}", env=env, to="otlp-metrics")
        assert p.returncode == 3 and "not everything was accepted" in p.stderr and "too old" in p.stderr, p
    equal(collector.requests[0][1]["Content-Type"], "application/json")


@test
def watch_sends_the_waits_of_each_trace_once():
    traces, tables = os.path.join(WORK, "sent"), os.path.join(WORK, "tables")
    os.mkdir(traces)
    for name in ("a.trace", "b.trace"):
        shutil.copy(TRACE, os.path.join(traces, name))
    refuses = (400, {}, b"not yet")
    with Collector(refuses) as collector:
        command = [TRAIL, "watch", "--once", "--settle=0", f"--endpoint={collector.url}", traces, "-o", tables]
        env = {**ENV, "no_proxy": "127.0.0.1", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"}
        runs = [subprocess.run(command, capture_output=True, text=True, timeout=120, env=env) for _ in range(3)]
    if "DuckDB" in runs[0].stderr:
        raise Skip("no DuckDB")
    equal([p.returncode for p in runs], [3, 0, 0])
    equal([p.stdout.split() for p in runs], [[f"{traces}/b.trace"], [f"{traces}/a.trace"], []])
    names = [json.loads(body)["resourceMetrics"][0]["resource"]["attributes"][0]["value"]["stringValue"] for _, _, body in collector.requests]
    equal(names, ["a.trace", "b.trace", "b.trace", "a.trace", "a.trace"])  # two metrics each, in one message each
    equal({path for path, _, _ in collector.requests}, {"/v1/metrics"})


def odd():
    """A trace with a name that is not UTF-8, and an empty one."""
    return assembled("odd", ODD.replace("BYTES", "a\\xffb"))


ODD = """Trace Go1.26
EventBatch gen=1 m=18446744073709551615 time=1000 size=auto
Sync
Frequency freq=1000000000
ClockSnapshot dt=0 mono=64000 sec=1700000000 nsec=7
EventBatch gen=1 m=100 time=1000 size=auto
ProcStatus dt=1 p=0 pstatus=1
GoStatus dt=1 g=1 m=100 gstatus=2
UserTaskBegin dt=5 task=7 parent_task=18446744073709551615 name_string=1 stack=0
UserRegionBegin dt=5 task=7 name_string=2 stack=0
UserLog dt=2 task=7 key_string=2 value_string=1 stack=0
UserRegionEnd dt=5 task=7 name_string=2 stack=0
EventBatch gen=1 m=18446744073709551615 time=1001 size=auto
Strings
String id=1
	data="BYTES"
String id=2
	data=""
EndOfGeneration
"""


@test
def json_is_sent_if_the_environment_requests_it():
    for name in ("OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"):
        with Collector() as collector:
            p = export(f"--endpoint={collector.url}", env={name: "http/json"})
            assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
        (path, headers, body), = collector.requests
        equal((path, headers["Content-Type"]), ("/v1/traces", "application/json"))
        equal(body.decode(), export().stdout)
    with Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "http/json", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf"}
        equal(export(f"--endpoint={collector.url}", env=env).returncode, 0)
    equal(collector.requests[0][1]["Content-Type"], PROTOBUF)


@test
def messages_are_compressed_if_the_environment_requests_it():
    for name in ("OTEL_EXPORTER_OTLP_COMPRESSION", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION"):
        with Collector() as collector:
            p = export(f"--endpoint={collector.url}", env={name: "gzip", "OTEL_EXPORTER_OTLP_PROTOCOL": "http/json"})
            assert (p.returncode, p.stdout, p.stderr) == (0, "", ""), p
        (_, headers, body), = collector.requests
        equal((headers["Content-Encoding"], gzip.decompress(body).decode()), ("gzip", export().stdout))
    with Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_COMPRESSION": "gzip", "OTEL_EXPORTER_OTLP_TRACES_COMPRESSION": "none"}
        equal(export(f"--endpoint={collector.url}", env=env).returncode, 0)
    assert "Content-Encoding" not in collector.requests[0][1]


@test
def variables_that_ask_for_something_else_are_refused():
    for key, value, text in (("PROTOCOL", "grpc", "port 4318"), ("COMPRESSION", "zstd", "gzip or none"), ("TIMEOUT", "1s", "milliseconds"),
                             ("HEADERS", "nonsense", "KEY=VALUE")):
        for prefix in ("OTEL_EXPORTER_OTLP_", "OTEL_EXPORTER_OTLP_TRACES_"):
            with Collector() as collector:
                p = export(f"--endpoint={collector.url}", env={prefix + key: value})
                assert p.returncode == 2 and text in p.stderr and prefix + key in p.stderr, (prefix + key, p)
            equal(collector.requests, [])
    # The variable for traces takes precedence, and an empty one counts as unset.
    with Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_PROTOCOL": "grpc", "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": "http/protobuf",
               "OTEL_EXPORTER_OTLP_HEADERS": "a=1", "OTEL_EXPORTER_OTLP_TRACES_HEADERS": "a=2", "OTEL_EXPORTER_OTLP_TIMEOUT": ""}
        equal(export(f"--endpoint={collector.url}", env=env).returncode, 0)
    equal(collector.requests[0][1]["a"], "2")


@test
def an_address_with_a_path_and_headers_are_as_given():
    with Collector() as collector:
        env = {"OTEL_EXPORTER_OTLP_HEADERS": "authorization=Bearer%20secret,x-tenant=shop"}
        equal(export(f"--endpoint={collector.url}/otlp", env=env).returncode, 0)
    (path, headers, _), = collector.requests
    equal((path, headers["authorization"], headers["x-tenant"]), ("/otlp", "Bearer secret", "shop"))


@test
def a_busy_collector_is_asked_again():
    """Resent after 1 s, 2 s, ..., or after the time that the answer asks for."""
    with Collector((503, {"Retry-After": "3"}, b"busy"), (503, {"Retry-After": "3"}, b"busy"), (429, {}, b"")) as collector:
        p = export(f"--endpoint={collector.url}")
        url = f"trail: {collector.url}/v1/traces: "
        said = [url + "HTTP status 503: busy; trying again in 3 s"] * 2 + [url + "HTTP status 429; trying again in 4 s"]
        equal((p.returncode, p.stderr.splitlines()), (0, said))
    bodies = [body for _, _, body in collector.requests]
    assert len(bodies) == 4 and len(set(bodies)) == 1, len(bodies)


@test
def what_a_collector_refuses_is_reported_and_not_sent_again():
    with Collector((400, {}, b"no spans of yours\r\n")) as collector:
        p = export(f"--endpoint={collector.url}")
        assert p.returncode == 3 and "HTTP status 400: no spans of yours" in p.stderr, p
    equal(len(collector.requests), 1)
    with Collector((200, {}, b'{"partialSuccess":{"rejectedSpans":"3","errorMessage":"too old"}}')) as collector:
        p = export(f"--endpoint={collector.url}")
        assert p.returncode == 3 and "not everything was accepted" in p.stderr and "too old" in p.stderr, p
    with Collector((200, {}, b'{"partialSuccess":{"rejectedSpans":"0"}}')) as collector:
        equal(export(f"--endpoint={collector.url}").returncode, 0)


@test
def an_answer_without_an_end_is_not_read():
    class Silent(http.server.ThreadingHTTPServer):
        def handle_error(self, *args):  # trail closes the connection
            pass

    with Collector((200, {}, b"a" * (64 << 20))) as collector:
        collector.server.__class__ = Silent
        p = export(f"--endpoint={collector.url}")
        equal((p.returncode, len(collector.requests)), (3, 1))
        equal(p.stderr, f"trail: {collector.url}/v1/traces: the answer is longer than 1 MiB\n")


@test
def a_redirection_is_reported_and_not_followed():
    with Collector() as other, Collector((307, {"Location": other.url}, b"")) as collector:
        p = export(f"--endpoint={collector.url}")
        equal((p.returncode, len(collector.requests), len(other.requests)), (3, 1, 0))
        assert "HTTP status 307" in p.stderr, p.stderr


@test
def answers_in_protocol_buffers_are_understood():
    protobuf = {"Content-Type": PROTOBUF}
    # A Status: code = 1: 3, message = 2
    with Collector((400, protobuf, b"\x08\x03\x12\x11no spans of yours")) as collector:
        p = export(f"--endpoint={collector.url}")
        equal((p.returncode, p.stderr), (3, f"trail: {collector.url}/v1/traces: HTTP status 400: no spans of yours\n"))
    with Collector((200, protobuf, REJECTED)) as collector:
        p = export(f"--endpoint={collector.url}")
        equal((p.returncode, p.stderr), (3, f"trail: {collector.url}/v1/traces: not everything was accepted: too old\n"))
    for answer in (b"", REJECTED.replace(b"\x08\x03", b"\x08\x00"), b"\xff\xff\xff"):
        with Collector((200, protobuf, answer)) as collector:
            p = export(f"--endpoint={collector.url}")
            equal((p.returncode, p.stderr), (0, ""), answer)


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
