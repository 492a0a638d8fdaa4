#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""`tomonode test-peer` against DCMTK's storescp: an ordinary peer, one that takes only Implicit VR, one that is not there, one that
rejects, one that aborts, a name that is not configured."""
import contextlib
import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
import time

SKIP = 77
TOMONODE = os.environ.get("TOMONODE", "tomonode")
CODE_OK, CODE_PEER, CODE_NOT_FOUND = 0, 7, 8

CONFIG = """
destinations = (
	{{ name = "archive"; aet = "ARCHIVE"; host = "localhost"; port = {port}; connect_timeout = 5; acse_timeout = 5; dimse_timeout = 5; }},
	{{ name = "nobody"; aet = "NOBODY"; host = "127.0.0.1"; port = {closed}; connect_timeout = 2; acse_timeout = 2; dimse_timeout = 2; }}
);
routes = ();
"""


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def run(config, name, *options):
    return subprocess.run([TOMONODE, "test-peer", "-c", config, *options, name], capture_output=True, text=True, timeout=60)


class Archive:
    running = []

    def __init__(self, folder, port, *options):
        os.makedirs(folder, exist_ok=True)
        self.folder = folder
        self.process = subprocess.Popen(["storescp", *options, "-od", folder, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        Archive.running.append(self)
        for _ in range(1200):
            try:
                socket.create_connection(("127.0.0.1", port)).close()
                return
            except OSError:
                time.sleep(0.05)
        raise AssertionError("storescp did not start")

    def stop(self):
        self.process.kill()
        self.process.wait()
        return [os.path.join(self.folder, f) for f in os.listdir(self.folder)]


class Aborting:
    """A peer that answers every association request with A-ABORT, as archives do whose list of senders does not have us."""

    def __init__(self, port):
        self.socket = socket.create_server(("127.0.0.1", port))
        self.thread = threading.Thread(target=self.serve, daemon=True)
        self.thread.start()

    def serve(self):
        while True:
            try:
                peer, _ = self.socket.accept()
            except OSError:
                return
            with peer, contextlib.suppress(OSError):
                peer.settimeout(10)
                peer.recv(65536)
                peer.sendall(bytes([7, 0, 0, 0, 0, 4, 0, 0, 0, 0]))
                while peer.recv(65536):
                    pass

    def stop(self):
        self.socket.shutdown(socket.SHUT_RDWR)
        self.socket.close()
        self.thread.join(15)


def dump(path):
    return subprocess.run(["dcmdump", "-q", path], capture_output=True, text=True, check=True).stdout


def main():
    for tool in ("storescp", "dcmdump"):
        if not shutil.which(tool):
            print(f"skipped: needs DCMTK's {tool}")
            return SKIP
    folder = tempfile.mkdtemp(prefix="test_peer.")
    try:
        port = free_port()
        config = f"{folder}/c.conf"
        with open(config, "w") as f:
            f.write(CONFIG.format(port=port, closed=free_port()))

        for kind, options, syntax in (("plain", [], "LittleEndianExplicit"), ("implicit", ["+xi"], "LittleEndianImplicit")):
            a = Archive(f"{folder}/{kind}", port, *options)
            began = time.monotonic()
            r = run(config, "archive", "--json")
            took = 1000 * (time.monotonic() - began)
            files = a.stop()
            assert r.returncode == CODE_OK, (kind, r)
            answer = json.loads(r.stdout)
            assert answer["ok"] and [s["step"] for s in answer["steps"]] == ["association", "C-ECHO", "C-STORE"], answer
            assert all(s["ok"] and s["ms"] >= 0 for s in answer["steps"]) and sum(s["ms"] for s in answer["steps"]) <= took + 3, (took, answer)
            assert len(files) == 1, (kind, files)
            text = dump(files[0])
            assert "TOMONODE^TEST" in text and answer["sop_instance"] in text, text
            assert syntax in text, (kind, text)
            assert "(0028,0010) US 64" in text and "(7fe0,0010)" in text, text

        a = Archive(f"{folder}/people", port)
        r = run(config, "archive")
        a.stop()
        assert r.returncode == CODE_OK and "C-ECHO" in r.stdout and "0000: stored" in r.stdout, r

        a = Archive(f"{folder}/refusing", port, "--refuse")
        r = run(config, "archive", "--json")
        a.stop()
        assert r.returncode == CODE_PEER and "rejected the association" in json.loads(r.stdout)["error"], r

        a = Aborting(port)
        try:
            r, people = run(config, "archive", "--json"), run(config, "archive")
        finally:
            a.stop()
        answer = json.loads(r.stdout)
        assert r.returncode == CODE_PEER and "aborted the association" in answer["error"], r
        assert "does not know our AE title TOMONODE" in answer["hint"] and answer["hint"] in people.stderr, (answer, people)

        r = run(config, "nobody")
        assert "AE title" not in r.stderr, r
        assert r.returncode == CODE_PEER and "Connection refused" in r.stderr, r
        r = run(config, "nowhere", "--json")
        assert r.returncode == CODE_NOT_FOUND and "archive, nobody" in r.stderr + r.stdout, r
    finally:
        for a in Archive.running:
            a.process.kill()  # what a failed check left
            a.process.wait()
        shutil.rmtree(folder, ignore_errors=True)
    print("ok")
    return 0


if __name__ == "__main__":
    sys.exit(main())
