# SPDX-License-Identifier: Apache-2.0
"""Pilots that die, hang or lose the node: no case is lost, none is delivered twice."""
import contextlib
import os
import signal
import socket
import struct
import threading

import pytest

from tools import node_harness as h
from tools.contract_tools import fill, small_disk
from tools.node_harness import check, wait_for
from tools.pilot_tools import Pilot, cluster_node, exam, halted, made_by, running, worker_of

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")
OTHER_WAY = pytest.mark.tier2("the same in another way")


@pytest.mark.parametrize("shared", [False, pytest.param(True, marks=OTHER_WAY)])
def test_a_killed_pilot(folder, things, shared):
    """Its case goes to another one."""
    n, pacs = cluster_node(folder, things, lease=2.0, shared=shared)
    n.make_long()
    n.start()
    first = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, first)
    n.make_quick()
    first.kill()
    Pilot(n, things, "d2").connected()
    n.wait_states("delivered")
    check(n.events(job).count("crashed") == 0 and "interrupted" in n.events(job), f"{n.events(job)}")
    check("pilot d2" in made_by(n, job)[-1], f"{made_by(n, job)}")
    check(len(pacs.files()) == 1, "not one object")
    wait_for("work/ is empty", lambda: not os.listdir(os.path.join(n.spool, "work")))


def goes_to_another(folder, things, end, reason):
    """After end(node, pilot) another pilot gets the case at once, long before the lease is over, and no failure is
    counted."""
    n, _ = cluster_node(folder, things, lease=600.0, attempts=1)
    n.make_long()
    n.start()
    first = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, first)
    n.make_quick()
    other = Pilot(n, things, "d2").connected()
    end(n, first)
    wait_for("the case goes to another pilot", lambda: "case-received" in other.log_text())
    n.wait_states("delivered")
    why = [d["reason"] for d in n.events(job, "interrupted")]
    check(why == [reason] and "crashed" not in n.events(job), f"{why} {n.events(job)}")
    check("pilot d2" in made_by(n, job)[-1], f"{made_by(n, job)}")
    left = [line for line in n.log_text().splitlines() if " pilot-left pilot=d1 " in line]
    check(len(left) == 1 and reason in left[0], f"{left}")
    return first, left[0]


def test_a_pilot_that_is_ended(folder, things):
    """SIGTERM: it ended, and is not lost."""
    first, left = goes_to_another(folder, things, lambda n, pilot: pilot.process.terminate(),
                                  "the pilot d1 ended: SIGTERM")
    check(first.process.wait(60) == 0 and " notice seat" in left, f"{first.process.returncode} {left}")


@OTHER_WAY
def test_a_pilot_whose_worker_is_ended(folder, things):
    """SIGTERM to its worker first, as from Slurm, which sends it to all processes of a job."""
    def end(_, pilot):
        os.kill(worker_of(pilot), signal.SIGTERM)
    first, _ = goes_to_another(folder, things, end, "the pilot d1 ended: its worker was ended by SIGTERM")
    check(first.process.wait(60) == 0, f"{first.process.returncode}")


def test_a_removed_secret(folder, things):
    """A connected pilot whose secret was removed is dropped, and ends."""
    first, left = goes_to_another(folder, things, lambda n, pilot: n.command("pilot-token", "--remove", "d1"),
                                  "the secret of pilot 'd1' was removed")
    check(first.process.wait(60) == 7 and " warning seat" in left, f"{first.process.returncode} {left}")
    check("pilot-refused" in first.log_text() and "was removed" in first.log_text(), first.log_text())


def test_a_silent_pilot(folder, things):
    """Its case goes to another one; what it brings later is dropped."""
    n, pacs = cluster_node(folder, things, lease=2.0)
    n.make_long()
    n.start()
    first = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, first)
    n.make_quick()
    first.kill(signal.SIGSTOP)
    Pilot(n, things, "d2").connected()
    n.wait_states("delivered")
    first.kill(signal.SIGCONT)
    wait_for("the old attempt is dropped", lambda: "late-outcome-dropped" in n.log_text())
    wait_for("the pilot is idle", lambda: not first.files())
    check(n.events(job).count("reconstructed") == 1 and len(pacs.files()) == 1, "two results")


@pytest.mark.parametrize("how, shared", [(signal.SIGKILL, False), (signal.SIGTERM, False),
                                         pytest.param(signal.SIGKILL, True, marks=OTHER_WAY)])
def test_a_restarted_node(folder, things, how, shared):
    """The pilot continues its case and brings the result to the new one."""
    n, _ = cluster_node(folder, things, shared=shared)
    n.protocol.update(iterations=6, slice_spacing=1.0)
    n.write_conf()
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    work = os.path.join(n.spool, "work")
    files = exam(folder)
    with contextlib.ExitStack() as stack:
        stack.enter_context(halted(pilot))
        h.send(n.port, files)
        job = running(n, pilot)
        if shared:
            computes = wait_for("its folder in the spool",
                                lambda: [os.path.join(work, name) for name in os.listdir(work)
                                                                    if "-" in name and "." not in name])[0]
            os.mkdir(os.path.join(work, "77-1"))
        if how == signal.SIGKILL:
            n.kill()
        else:
            n.stop()
            stack.close()  # the pilot computes while the node is away
        n.start()
        wait_for("the case is adopted", lambda: f"job-adopted job={job}" in n.log_text())
        if shared:
            wait_for("what another attempt left is removed", lambda: not os.path.exists(os.path.join(work, "77-1")))
            check(os.path.isdir(computes), "the folder of a running pilot was removed")
    n.wait_states("delivered")
    check(n.events(job).count("started") == 1, f"{n.events(job)}")
    wait_for("work/ is empty", lambda: not os.listdir(work))


def test_a_killed_seat(folder, things):
    """The pilot takes another seat, with its case."""
    n, _ = cluster_node(folder, things)
    n.protocol.update(iterations=6, slice_spacing=1.0)
    n.write_conf()
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    files = exam(folder)
    with halted(pilot):
        h.send(n.port, files)
        job = running(n, pilot)
        for pid in n.processes("seat"):
            os.kill(pid, signal.SIGKILL)
    n.wait_states("delivered")
    check(n.events(job).count("started") == 1, f"{n.events(job)}")


def pass_on(source, target, most):
    """Pass at most so many bytes on, then end both connections."""
    try:
        while most > 0 and (data := source.recv(min(65536, most))):
            target.sendall(data)
            most -= len(data)
    except OSError:
        pass
    for s in (source, target):
        try:
            s.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass


def cut_the_first(listener, port, most):
    """Pass connections on to `port`; the first one is cut after `most` bytes from the pilot."""
    while True:
        pilot, _ = listener.accept()
        node = socket.create_connection(("127.0.0.1", port))
        threading.Thread(target=pass_on, args=(pilot, node, most), daemon=True).start()
        threading.Thread(target=pass_on, args=(node, pilot, 1 << 40), daemon=True).start()
        most = 1 << 40


def test_a_cut_result(folder, things):
    """The connection is lost while the result is sent: the second one is enough for it."""
    n, pacs = cluster_node(folder, things)
    n.protocol.update(iterations=1, slice_spacing=1.0)
    n.write_conf()
    n.start()
    listener = socket.create_server(("127.0.0.1", 0))
    threading.Thread(target=cut_the_first, args=(listener, n.cluster_port, 100000), daemon=True).start()
    n.cluster_port = listener.getsockname()[1]
    pilot = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    n.wait_states("delivered")
    check(pilot.log_text().count(" connection-ended ") == 1, pilot.log_text())
    check(len(pacs.files()) == 1, "not one object")


def test_a_node_that_cannot_record(folder, things):
    """The node cannot record the token, as on a full disk: the pilot tries again until it can, or until its patience
    ends."""
    n, _ = cluster_node(folder, things)
    n.start()
    n.command("pilot-token", "d1")
    used = os.path.join(n.spool, "pilots", "d1.used")
    os.mkdir(used)
    pilot = Pilot(n, things, "d1")
    wait_for("the pilot is refused", lambda: "pilot-refused" in pilot.log_text())
    impatient = Pilot(n, things, "d1", options=["--patience", "1"])
    check(impatient.process.wait(60) == 7, "another exit code")
    os.rmdir(used)
    pilot.connected()


def test_a_wrong_address(folder, things):
    """No port: refused at once, with the reason. A port where nobody listens: the log says what is tried and when it
    gives up, and that it did."""
    n, _ = cluster_node(folder, things)
    n.start()
    Pilot(n, things, "d1").connected()
    pilot = [h.TOMONODE, "pilot", "--id", "d1", "--secret-file", things[-1].secret_path, "--device", "cpu:1"]
    for address in ("node", "node:", ":11113", "node:0", "node:65536", "node:dicom", "::1"):
        p = h.run(*pilot, "--node", address, code=2)
        check(f"--node '{address}' is no address of a node; allowed: HOST:PORT, PORT from 1 to 65535" in p.stderr,
              p.stderr)
    n.cluster_port = h.free_port()
    patience = min(6 * h.PATIENCE, 20)  # counts from the start of the process; a second line would come after 30 s
    lost = Pilot(n, things, "d1", options=["--patience", str(patience)])
    check(lost.process.wait(60 * h.PATIENCE) == 7, "another exit code")
    tries = [line for line in lost.log_text().splitlines() if " node-not-reached " in line]
    where = f"node=127.0.0.1:{n.cluster_port}"
    check(len(tries) == 1 and f"{where} attempt=1 retry_seconds=" in tries[0] and "give_up_seconds=" in tries[0]
          and "Connection refused" in tries[0], lost.log_text())
    check(f"node-given-up {where} seconds=" in lost.log_text(), lost.log_text())


def test_a_crashed_worker(folder, things):
    """The case that crashes the worker of a pilot is counted as crashed, and the pilot continues."""
    n, _ = cluster_node(folder, things)
    n.make_long()
    n.start()
    pilot = Pilot(n, things, "d1").connected()
    h.send(n.port, exam(folder))
    job = running(n, pilot)
    # a worker that dies before it has the case does not count
    wait_for("it computes", lambda: (n.jobs()[0]["progress"] or {}).get("stage") == "reconstruct")
    n.make_quick()
    os.kill(worker_of(pilot), signal.SIGABRT)  # no sanitizer catches it
    n.wait_states("delivered")
    crashed = [d["reason"] for d in n.events(job, "crashed")]
    check(len(crashed) == 1 and "the worker of pilot d1 died with signal 6" in crashed[0], f"{crashed}")


@pytest.mark.parametrize("computes", [False, pytest.param(True, marks=OTHER_WAY)])
def test_a_full_disk_of_a_pilot(folder, things, computes):
    """It has room for the images, and none for the result: the reason names pilot and disk, and no attempt is counted
    as a crash. The disk is full before the worker begins or, with `computes`, before it writes the result."""
    with small_disk(os.path.join(folder, "disk"), "64m") as mount:
        n, _ = cluster_node(folder, things)
        n.protocol.update(iterations=60 if computes else 6, slice_spacing=1.0)
        n.write_conf()
        n.start()
        pilot = Pilot(n, things, "d1", options=["--folder", mount]).connected()
        files = exam(folder)
        if computes:
            h.send(n.port, files)
            job = running(n, pilot)
            wait_for("it computes", lambda: (n.jobs()[0]["progress"] or {}).get("stage") == "reconstruct")
            fill(mount, 0)
        else:
            with halted(pilot):
                h.send(n.port, files)
                job = running(n, pilot)
                wait_for("all files are there", lambda: any(name.endswith(".order")
                                                            for name in os.listdir(os.path.join(mount, "work"))))
                fill(mount, 0)
        reason = wait_for("the attempt ends", lambda: [d["reason"] for d in n.events(job, "interrupted")])[0]
        check(reason.startswith("on pilot d1: ") and mount in reason
              and ("No space left" in reason or "of free space" in reason), reason)
        fill(mount, None)
        n.command("retry", str(job))
        n.wait_states("delivered")
        check("crashed" not in n.events(job), f"{n.events(job)}")
        pilot.stop()


def test_a_full_disk_of_the_node(folder, things):
    """It has no room for the result that the pilot brings: this is no loss of the pilot, and no attempt is counted as a
    crash."""
    with small_disk(os.path.join(folder, "node"), "64m") as mount:
        n, _ = cluster_node(folder, things)
        n.protocol.update(iterations=6, slice_spacing=1.0)
        n.write_conf()
        n.start()
        pilot = Pilot(n, things, "d1", options=["--folder", os.path.join(folder, "pilot")]).connected()
        files = exam(folder)
        with halted(pilot):
            h.send(n.port, files)
            job = running(n, pilot)
            fill(mount, 0)
        reason = wait_for("the attempt ends", lambda: [e["detail"]["reason"] for e in n.show(job)["events"]
                                                       if e["event"] in ("interrupted", "crashed")])[0]
        check("of the result are to be received" in reason or "No space left" in reason, reason)
        fill(mount, None)
        n.command("retry", str(job))
        n.wait_states("delivered")
        check("crashed" not in n.events(job), f"{n.events(job)}")
        check(pilot.log_text().count(" connection-ended ") == 0, pilot.log_text())
        n.end()


def test_files_of_other_lengths(folder, things):
    """One was sent again with a longer head, which the journal does not record: it is sent as it is. One is too short:
    the case is held, the reason names the file, and the case continues when the image is sent again."""
    n, _ = cluster_node(folder, things)
    n.start()
    files = exam(folder)
    h.send(n.port, files)
    n.wait_states("ready")
    stored = [os.path.join(n.spool, "instances", name) for name in n.stored_files()]
    raw = h.read_file(stored[0], "rb")
    end = 144 + struct.unpack_from("<I", raw, 140)[0]
    more = b"\2\0\x16\0AE\6\0OTHER "
    h.write_file(stored[0], raw[:140] + struct.pack("<I", end - 144 + len(more)) + raw[144:end] + more + raw[end:])
    os.truncate(stored[1], 5000)
    Pilot(n, things, "d1").connected()
    reason = n.wait_states("held")[0]["reason"]
    check(os.path.basename(stored[1]) in reason, reason)
    h.send(n.port, files)
    n.wait_states("delivered")
