#!/usr/bin/env python3
"""The tables in ClickHouse. Two servers are two shards; the schema is created on both, RowBinary is
loaded through the Distributed tables, and the result must be the rows of CSV. TAP; skipped without
Debian's clickhouse-server.

usage: sql_clickhouse.py TRAIL SOURCE_ROOT
"""

import os
import re
import shutil
import socket
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "lib"))
from tap import main, test

TRAIL, ROOT = os.path.abspath(sys.argv[1]), os.path.abspath(sys.argv[2])
TRACES = {host: os.path.join(ROOT, "examples", "traces", f"load-go1.{n}.trace") for host, n in (("a", 19), ("b", 23), ("c", 22))}
TABLES = "events states goroutines stacks frames strings tasks regions logs samples findings traces".split()

CONFIG = """<yandex>
<logger><level>warning</level><log>{path}/log</log><errorlog>{path}/err</errorlog></logger>
<http_port>{http}</http_port><tcp_port>{tcp}</tcp_port><interserver_http_port>{inter}</interserver_http_port>
<listen_host>127.0.0.1</listen_host>
<path>{path}/data/</path><tmp_path>{path}/tmp/</tmp_path><user_files_path>{path}/files/</user_files_path>
<mark_cache_size>50000000</mark_cache_size>
<users_config>users.xml</users_config>
<default_profile>default</default_profile><default_database>default</default_database>
<remote_servers><trail>{shards}</trail></remote_servers>
</yandex>
"""
SHARD = "<shard><replica><host>127.0.0.1</host><port>{}</port></replica></shard>"
USERS = """<yandex>
<profiles><default>
<allow_experimental_low_cardinality_type>1</allow_experimental_low_cardinality_type>
<insert_distributed_sync>1</insert_distributed_sync>
</default></profiles>
<users><default><password></password><networks><ip>127.0.0.1</ip></networks>
<profile>default</profile><quota>default</quota></default></users>
<quotas><default></default></quotas>
</yandex>
"""


def free_ports(count):
    sockets = [socket.socket() for _ in range(count)]
    for s in sockets:
        s.bind(("127.0.0.1", 0))
    ports = [s.getsockname()[1] for s in sockets]
    for s in sockets:
        s.close()
    return ports


def client(port, query, data=b""):
    p = subprocess.run(
        ["clickhouse-client", "--port", str(port), "--query", query], input=data, capture_output=True, timeout=120
    )
    assert p.returncode == 0, f"{query[:200]}: {p.stderr.decode()[:1000]}"
    return p.stdout.decode()


def start(work):
    """Starts two servers. Returns their processes and ports."""
    ports = free_ports(6)
    shards = "".join(SHARD.format(port) for port in ports[:2])
    servers = []
    for i in range(2):
        path = os.path.join(work, str(i))
        os.mkdir(path)
        with open(os.path.join(path, "config.xml"), "w") as to:
            to.write(CONFIG.format(path=path, tcp=ports[i], http=ports[2 + i], inter=ports[4 + i], shards=shards))
        with open(os.path.join(path, "users.xml"), "w") as to:
            to.write(USERS)
        servers.append(subprocess.Popen(["clickhouse-server", "--config-file=config.xml"], cwd=path,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL))
    for port in ports[:2]:
        for _ in range(600):
            if subprocess.run(["clickhouse-client", "--port", str(port), "--query", "select 1"], capture_output=True).returncode == 0:
                break
            time.sleep(0.1)
    return servers, ports[:2]


def export(*args):
    return subprocess.run([TRAIL, "export", *args], check=True, capture_output=True).stdout


@test
def the_schema_is_made_on_both_shards():
    # ON CLUSTER needs ZooKeeper, so the statements run on each shard.
    schema = export("--schema=clickhouse-cluster").decode().replace(" ON CLUSTER trail", "")
    schema = re.sub(r"--.*", "", schema)
    for port in ports:
        for statement in filter(str.strip, schema.split(";")):
            client(port, statement)
        assert set(TABLES) <= set(client(port, "SHOW TABLES FROM trail").split())


@test
def rowbinary_that_is_loaded_comes_back_as_the_rows_of_csv():
    for table in TABLES:
        want = []
        for host, trace in TRACES.items():
            same = (f"--table={table}", f"--host={host}", "--day=2026-11-22", trace)
            rows = export("--to=rowbinary", *same)
            if rows:  # for an empty result the old client prints a message
                client(ports[0], f"INSERT INTO trail.{table} FORMAT RowBinary", rows)
            want += export("--to=csv", *same).decode().splitlines()[1:]
        answer = client(ports[1], f"SELECT * FROM trail.{table} FORMAT TSV")
        # These traces contain only numbers, words, names and sentences: apart from tabs the two
        # forms hardly differ.
        ours = [line.replace("\\N", "").replace("\\'", "'").split("\t") for line in answer.splitlines()]
        right = [re.sub(r"\btrue\b", "1", re.sub(r"\bfalse\b", "0", line)) for line in want]
        right = [re.findall(r'(?:^|,)("(?:[^"]|"")*"|[^,]*)', line) for line in right]
        right = [[re.sub(r'""', '"', cell.strip('"')) if cell.startswith('"') else cell for cell in row] for row in right]
        assert len(ours) == len(right), f"{table}: {len(ours)} rows, not {len(right)}"
        ours, right = sorted(ours), sorted(right)
        different = [(a, b) for a, b in zip(ours, right) if a != b]
        assert not different, f"{table}: {different[0]}"


@test
def each_trace_is_whole_on_one_shard_and_both_have_some():
    of = [set(client(port, "SELECT DISTINCT host FROM trail.events_local").split()) for port in ports]
    assert of[0] | of[1] == set(TRACES) and not of[0] & of[1], of
    assert of[0] and of[1], of


@test
def a_query_over_both_shards_adds_up():
    query = "SELECT host, sum(duration_ns) FROM trail.states WHERE state = 'Running' GROUP BY host ORDER BY host"
    ours = dict(line.split("\t") for line in client(ports[0], query).splitlines())
    for host, trace in TRACES.items():
        rows = [line.split(",") for line in export("--to=csv", "--table=states", trace).decode().splitlines()]
        state, duration = rows[0].index("state"), rows[0].index("duration_ns")
        assert int(ours[host]) == sum(int(row[duration]) for row in rows[1:] if row[state] == "Running")


@test
def traces_are_loaded_once():
    to = f"--to=clickhouse://127.0.0.1:{ports[1]}"
    words = [os.path.join(ROOT, "examples", "traces", f"{name}.trace") for name in ("shop-c", "shop-go")]
    for want in "2 traces loaded\n", "0 traces loaded; 2 loaded before\n":
        p = subprocess.run([TRAIL, "load", to, "--host=loaded", *words], capture_output=True, text=True, timeout=120)
        assert (p.returncode, p.stdout, p.stderr) == (0, want, ""), p
    for table in TABLES:
        want = sum(len(export("--to=csv", f"--table={table}", word).splitlines()) - 1 for word in words)
        assert int(client(ports[0], f"SELECT count() FROM trail.{table} WHERE host = 'loaded'")) == want, table
    # Without a server nothing is loaded.
    p = subprocess.run([TRAIL, "load", "--to=clickhouse://127.0.0.1:1", *words], capture_output=True, text=True, timeout=120)
    assert p.returncode == 3 and "clickhouse-client has failed" in p.stderr, p


def on_server(script, folder, port):
    """Runs a script of the document as written, with a client that connects to the test's server, and trail."""
    os.makedirs(folder, exist_ok=True)
    tools = os.path.join(folder, "bin")
    if not os.path.isdir(tools):
        os.mkdir(tools)
        with open(os.path.join(tools, "clickhouse-client"), "w") as to:
            to.write(f'#!/bin/sh\nexec {shutil.which("clickhouse-client")} --port {port} "$@"\n')
        os.chmod(os.path.join(tools, "clickhouse-client"), 0o755)
        os.symlink(TRAIL, os.path.join(tools, "trail"))
    path = {**os.environ, "PATH": f"{tools}:{os.environ['PATH']}"}
    p = subprocess.run(["sh", "-e", "-c", script], cwd=folder, env=path, capture_output=True, text=True, timeout=300)
    assert p.returncode == 0 and not p.stderr, (script, p.stderr)
    return p.stdout


def documented():
    text = open(os.path.join(ROOT, "docs", "fleet.md")).read()
    text = text[text.index("## ClickHouse") : text.index("## Spark")]
    return re.findall(r"```sh\n(.*?)```", text, re.S)


@test
def the_document_loads_each_trace_once_however_often_it_is_run():
    """Two traces with the same name, each loaded twice: rows and joins are those of the exports."""
    client(ports[0], "DROP DATABASE trail")
    load, query = documented()
    rows = {table: 0 for table in TABLES}
    running = 0
    for i, trace in enumerate((TRACES["a"], TRACES["b"])):
        folder = os.path.join(work, f"document{i}")
        os.mkdir(folder)
        shutil.copy(trace, os.path.join(folder, "app.trace"))
        on_server(load, folder, ports[0])
        on_server(load, folder, ports[0])
        for table in TABLES:
            lines = export("--to=csv", f"--table={table}", "--host=web1", trace).decode().splitlines()
            rows[table] += len(lines) - 1
            if table == "states":
                titles, *cells = (line.split(",") for line in lines)
                running += sum(int(row[titles.index("duration_ns")]) for row in cells if row[titles.index("state")] == "Running")
    for table, count in rows.items():
        assert int(client(ports[0], f"SELECT count() FROM trail.{table} FINAL")) == count, table
    answer = dict(line.split("\t") for line in on_server(query, folder, ports[0]).splitlines())
    assert int(answer["Running"]) == running, answer
    # Each frame belongs to its own stack.
    joined = "(SELECT * FROM trail.frames FINAL) ANY LEFT JOIN (SELECT host, trace, stack, depth FROM trail.stacks FINAL) USING (host, trace, stack)"
    assert int(client(ports[0], f"SELECT countIf(frame < depth) FROM {joined}")) == rows["frames"]
    depths = "(SELECT host, trace, stack, count() AS n FROM trail.frames FINAL GROUP BY host, trace, stack)"
    assert int(client(ports[0], f"SELECT countIf(n = depth) FROM {depths} ANY LEFT JOIN (SELECT host, trace, stack, depth FROM trail.stacks FINAL) USING (host, trace, stack)")) == rows["stacks"]
    client(ports[0], "DROP DATABASE trail")


if __name__ == "__main__":
    if not shutil.which("clickhouse-server") or not shutil.which("clickhouse-client"):
        print("1..0 # SKIP no clickhouse-server")
        sys.exit(0)
    work = tempfile.mkdtemp(prefix="trail-clickhouse-")
    servers, ports = start(work)
    try:
        failed = main()
    finally:
        for server in servers:
            server.kill()
            server.wait()
        shutil.rmtree(work)
    sys.exit(failed)
