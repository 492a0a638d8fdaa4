# SPDX-License-Identifier: Apache-2.0
"""Slurm's commands and its states as a node sees them, with a real Slurm on this machine and a program in the place of
the pilot."""
import contextlib
import os
import pwd
import shutil
import socket
import subprocess
import urllib.request

import pytest

from tools.cluster_tools import cluster, cluster_node, fake_pilot, reload, start_slurm, write
from tools.node_harness import TOMONODE, check, read_file, skip, wait_for, write_file
from tools.slurm_tools import need_slurm

pytestmark = pytest.mark.tier2("Slurm")


@pytest.fixture(scope="module", autouse=True)
def programs():
    need_slurm()


def wait_state(node, state, sentence):
    """The state is in `list`, its sentence among the problems, on the page and in /metrics."""
    wait_for(f"{state}, not {cluster(node)}", lambda: cluster(node)["state"] == state)
    wait_for(sentence, lambda: sentence in node.command("list").stdout)
    at = f"http://127.0.0.1:{node.status['port']}"

    def page():
        with contextlib.suppress(OSError), urllib.request.urlopen(at + "/", timeout=60) as r:
            return sentence.replace("'", "&#39;") in r.read().decode()
        return False

    wait_for(f"the page has: {sentence}", page)
    with urllib.request.urlopen(at + "/metrics", timeout=60) as r:
        check('tomonode_problems{id="cluster"' in r.read().decode(), "no metric of the problem")


def audited(folder, jobs):
    """Submission and cancellation of each job are in the audit trail, with the node as the one that did it."""
    messages = read_file(f"{folder}/audit.log").splitlines()
    for number, name in jobs.items():
        found = [m for m in messages if f'UserID="{name}" UserName="Slurm job {number}"' in m]
        check(["Application Start" in found[0], "Application Stop" in found[-1]] == [True, True], found)
        check(all('EventOutcomeIndicator="0"' in m and "Application Launcher" in m
                  and 'UserName="tomonode cluster"' in m for m in found), found)


def test_jobs_of_pilots(folder, things):
    """The secret is in no command line, in no file of others; a killed node finds its jobs again; without slurm they
    end."""
    slurm = start_slurm(folder, things)
    node = cluster_node(folder, slurm, min=2, program=fake_pilot(folder, "sleep 1000"))
    node.node.update(audit='"file"', audit_file=f'"{folder}/audit.log"')
    write(node)
    things.append(node)
    node.start()
    wait_for("two pilots run", lambda: [j[1] for j in slurm.jobs()] == ["RUNNING"] * 2)
    jobs = {number: name for number, name in slurm.jobs("%i %j")}
    names = sorted(jobs.values())
    pilots = os.path.join(node.spool, "pilots")
    check(sorted(os.listdir(pilots)) == names and all(n.startswith("tomonode-") for n in names),
          f"{os.listdir(pilots)} are not {names}")
    for name in [pilots] + [os.path.join(pilots, n) for n in names]:
        check(os.stat(name).st_mode & 0o077 == 0, f"{name} is open to others")
    wait_for("both read their secret", lambda: all(os.path.exists(f"{folder}/secret.{n}") for n in jobs))
    for number, name in jobs.items():
        secret = read_file(f"{folder}/secret.{number}").strip()
        check(len(secret) == 64, f"the secret is {secret!r}")
        shown = slurm.command("scontrol", "show", "job", number) + subprocess.run(["ps", "axeww"], capture_output=True,
                                                                                  text=True, check=True).stdout
        check(secret not in shown, "the secret is visible")
        check(name in shown, "scontrol does not show the job")
    words = read_file(f"{folder}/words").splitlines()
    check(sorted(words) == sorted(f"pilot --node 127.0.0.1:{node.cluster_port} --id {n} --secret-file /dev/stdin"
                                  for n in names), words)
    wait_for("the report", lambda: cluster(node)["running"] == 2)
    check(cluster(node)["submitted"] == 2 and cluster(node)["started"] == 2, cluster(node))

    node.kill()
    node.start()
    wait_for("the jobs are found again", lambda: cluster(node)["used"] and cluster(node)["running"] == 2)
    other = slurm.command("sbatch", "--parsable", "--job-name=tomonode-0123456789ab", "--output=/dev/null",
                          stdin="#!/bin/sh\nsleep 1000\n")
    node.node["executor"] = '["local"]'
    reload(node)
    wait_for("only the job of another node is left", lambda: [j[0] for j in slurm.jobs()] == [other])
    wait_for("the secrets are removed", lambda: not os.listdir(pilots))
    wait_for("the process has ended", lambda: not node.processes("cluster"))
    audited(folder, jobs)


def test_states_of_slurm(folder, things):
    slurm = start_slurm(folder, things)
    node = cluster_node(folder, slurm, min=1, executor='["local", "slurm"]', partition='"nowhere"',
                        program=fake_pilot(folder, "sleep 1000"))
    things.append(node)
    p = node.command("check", code=3)
    check(f"tested as user {pwd.getpwuid(os.geteuid()).pw_name}" in p.stderr
          and "prints no version on this machine" in p.stderr, p.stderr)
    check("The job of a pilot cannot be submitted: " in p.stderr and "Invalid partition name specified" in p.stderr, p.stderr)
    node.start()
    wait_state(node, "refuses",
               "The job of a pilot cannot be submitted: sbatch: error: Batch job submission failed: Invalid partition name "
               "specified.")
    slurm.drain()
    reload(node, partition='"main"')
    wait_state(node, "draining", "Slurm does not start job")
    slurm.drain(False)
    wait_for("the job runs", lambda: cluster(node)["state"] == "up" and cluster(node)["running"] == 1)
    node.command("check")
    check("Slurm" not in node.command("check").stderr, "a warning without a reason")
    slurm.kill("slurmctld")
    wait_state(node, "down", "Slurm cannot be reached: ")
    check("warning: Slurm cannot be reached: " in node.command("check").stderr, "no warning")
    slurm.start_controller()
    wait_for("it replies again", lambda: cluster(node)["state"] == "up")
    check(len(slurm.jobs()) == 1, f"{slurm.jobs()}")
    slurm.kill("munged")
    said = node.command("check", code=None).stderr
    check("munged" in said, said)
    slurm.start_munge()


def test_pilots_that_do_not_start(folder, things):
    """A job that ends before its pilot connects: a sentence, and longer waits between the attempts."""
    slurm = start_slurm(folder, things)
    node = cluster_node(folder, slurm, min=1, executor='["local", "slurm"]', program=fake_pilot(folder, "false"))
    things.append(node)
    node.start()
    wait_state(node, "failing", "ended before its pilot connected.")
    check(cluster(node)["submitted"] <= 3, f"{cluster(node)}")


def test_without_slurm(folder, things):
    """The commands are not installed: the node runs, and says so."""
    slurm = start_slurm(folder, things)
    node = cluster_node(folder, slurm, min=1)
    things.append(node)
    bin_folder = os.path.join(folder, "bin")
    os.makedirs(bin_folder)
    p = check_with(node, PATH=bin_folder)
    said = "Slurm cannot be reached: sbatch: No such file or directory. sbatch is in /usr/bin, which is not in PATH"
    check(p.returncode == 0 and said in p.stderr, p.stderr)


def check_with(node, **env):
    return subprocess.run([TOMONODE, "check", "-c", node.conf], capture_output=True, text=True,
                          env={**os.environ, **env}, check=False)


def test_check(folder, things):
    """`tomonode check`: what is wrong with the installation, each with its sentence; nothing is said when all is
    right."""
    slurm = start_slurm(folder, things)
    node = cluster_node(folder, slurm, min=0, program=f'"{TOMONODE}"')
    things.append(node)

    def says(sentence, code=0, **env):
        p = check_with(node, **env)
        check(p.returncode == code and sentence in p.stderr, f"code {p.returncode}, not {sentence}: {p.stderr}")

    def cluster_is(**keys):
        node.cluster.update(keys)
        write(node)

    def program_is(text):
        node.slurm["program"] = f'"{text}"'
        write(node)

    p = check_with(node)
    check(p.returncode == 0 and not [s for s in p.stderr.splitlines() if "node.spool is " not in s], p.stderr)
    program_is("/nowhere/tomonode")
    says("'/nowhere/tomonode' does not exist on this machine")
    other = os.path.join(folder, "other")
    write_file(other, "#!/bin/sh\necho 'tomonode 0.0.9 (revision abc, Release build)'\n")
    os.chmod(other, 0o755)
    program_is(other)
    says("slurm.program is 'tomonode 0.0.9 (revision abc, Release build)' on this machine", 3)
    program_is(TOMONODE)
    fake = os.path.join(folder, "fake")
    os.makedirs(fake)
    for text, sentence in (("slurm 17.11.2", "Slurm 17.11.2 is older than 22.05"),
                           ("what?", "The version of Slurm is not known: ")):
        write_file(os.path.join(fake, "sbatch"), f"#!/bin/sh\necho '{text}'\n")
        os.chmod(os.path.join(fake, "sbatch"), 0o755)
        says(sentence, PATH=f"{fake}:{os.environ['PATH']}")

    with socket.socket() as s:
        s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        s.bind(("127.0.0.1", node.cluster_port))
        s.listen()
        says("The node could not listen for pilots (bind and port of cluster): cannot listen on 127.0.0.1", 3)
    cluster_is(advertise='"no-such-host.invalid:11113"')
    says("the name 'no-such-host.invalid' cannot be resolved here", 3)
    cluster_is(advertise=f'"127.0.0.1:{node.cluster_port}"')
    node.start()
    p = check_with(node)
    check(p.returncode == 0 and not [s for s in p.stderr.splitlines() if "node.spool is " not in s], p.stderr)
    wait_for("the node knows that it was a test", lambda: "cluster-tested" in node.log_text())
    check("pilot-refused" not in node.log_text() and not os.listdir(os.path.join(node.spool, "pilots")),
          "the test left something")
    cluster_is(advertise='"127.0.0.1:1"')
    says("Pilots would connect to 127.0.0.1:1, where they do not reach this node: cannot connect to 127.0.0.1:1: "
         "Connection refused", 3)
    cluster_is(advertise=f'"127.0.0.1:{node.port}"')  # the DICOM port
    says("where another program listens, or another node", 3)


def test_user_without_rights(folder, things):
    """Root checks as the user that the node runs as, whom munge or the spool may refuse what it allows root."""
    if os.geteuid() != 0:
        skip("needs root")
    slurm = start_slurm(folder, things)
    os.chmod(folder, 0o755)
    program = os.path.join(folder, "tomonode")
    shutil.copy(TOMONODE, program)
    node = cluster_node(folder, slurm, min=0, program=f'"{program}"')
    things.append(node)
    node.node["user"] = '"nobody"'
    write(node)
    p = check_with(node)
    check(p.returncode == 0 and not [s for s in p.stderr.splitlines() if "node.spool is " not in s], p.stderr)
    os.chmod(node.slurm["program"].strip('"'), 0o700)
    check("does not exist on this machine" in check_with(node).stderr, "a program of root is visible to everybody")
    node.slurm["partition"] = '"nowhere"'
    write(node)
    p = check_with(node)
    check("tested as user nobody" in p.stderr and p.returncode == 3, p.stderr)
