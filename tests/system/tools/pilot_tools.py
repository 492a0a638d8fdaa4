# SPDX-License-Identifier: Apache-2.0
"""A node that pilots can connect to, and pilots as plain processes on this machine."""
import contextlib
import os
import signal
import subprocess

from tools import node_harness as h
from tools.node_harness import wait_for

HELLO = os.path.join(os.environ.get("TOMONODE_BUILD", ""), "tests", "pilot_hello")


def cluster_node(folder, things, *, local=False, shared=False, lease=30.0, name="node", **node):
    """A node with a PACS; without local workers unless `local`."""
    pacs = h.Pacs(os.path.join(folder, "pacs-" + name))
    n = h.Node(os.path.join(folder, name), pacs.port, executor='"local"' if local else '"pilots"', **node)
    n.cluster_port = h.free_port()
    n.cluster = {"bind": '"127.0.0.1"', "port": n.cluster_port, "lease": lease, "shared_spool": str(shared).lower()}
    n.shared = shared
    write_conf(n)
    pacs.start()
    things += [n, pacs]
    return n, pacs


def write_conf(n):
    n.more = "cluster = {" + "".join(f" {k} = {v};" for k, v in n.cluster.items()) + " };\n"
    n.write_conf()


class Pilot:
    """`tomonode pilot` with the secret of `n`, in a session of its own."""

    def __init__(self, n, things, ident="d1", secret=None, env=None, options=()):
        self.folder = os.path.join(n.folder, f"pilot-{ident}-{len(things)}")
        self.log_path = self.folder + ".log"
        self.secret_path = self.folder + ".secret"
        self.secret = secret or (os.path.exists(os.path.join(n.spool, "pilots", ident))
                                 and open(os.path.join(n.spool, "pilots", ident)).read()) \
            or n.command("pilot-token", ident).stdout
        h.write_file(self.secret_path, self.secret.strip() + "\n")
        where = ["--spool", n.spool] if n.shared else ["--folder", self.folder]
        with open(self.log_path, "w") as log:
            self.process = subprocess.Popen(
                [h.TOMONODE, "pilot", "--node", f"127.0.0.1:{n.cluster_port}", "--id", ident, "--secret-file",
                 self.secret_path,
                 "--device", "cpu:1", "--name", ident, *where, *options], stdout=log, stderr=log,
                 start_new_session=True, env=env)
        things.append(self)

    def log_text(self):
        return h.read_file(self.log_path)

    def connected(self, count=1):
        wait_for("the pilot is connected", lambda: self.log_text().count(" connected ") >= count)
        return self

    def kill(self, what=signal.SIGKILL):
        os.killpg(self.process.pid, what)
        if what == signal.SIGKILL:
            self.process.wait()

    def stop(self):
        if self.process.poll() is None:
            self.kill()

    def files(self):
        """All files in its folder."""
        return sorted(os.path.join(where, name) for where, _, names in os.walk(self.folder) for name in names)


def hello(n, number, version, ident="d1"):
    """What the node replies to a pilot of another version, which has the secret of this ID and uses this token."""
    secret = h.read_file(os.path.join(n.spool, "pilots", ident)).strip()
    return h.run(HELLO, f"127.0.0.1:{n.cluster_port}", ident, secret, number, version, code=None).stdout


def exam(folder, side="L", seed=1):
    return h.simulate(os.path.join(folder, f"{side}{seed}"), "--side", side, "--seed", seed, "--views", 9)


def running(n, who):
    job = n.wait_states("running")[0]["id"]
    wait_for("the case is received", lambda: "case-received" in who.log_text())
    return job


def worker_of(pilot):
    """Return the process that computes the cases of a pilot."""
    return int(wait_for("its worker", lambda: subprocess.run(["pgrep", "-s", str(pilot.process.pid), "-f",
                                                              "tomonode case"], capture_output=True,
                                                             text=True).stdout.split())[0])


@contextlib.contextmanager
def halted(pilot):
    """Stop the worker of a pilot, so that its case lasts as long as the test needs."""
    worker = worker_of(pilot)
    os.kill(worker, signal.SIGSTOP)
    try:
        yield
    finally:
        with contextlib.suppress(ProcessLookupError):
            os.kill(worker, signal.SIGCONT)


def made_by(n, job):
    return [d.get("device", "") for d in n.events(job, "started")]
