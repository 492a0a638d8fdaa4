# SPDX-License-Identifier: Apache-2.0
"""Several slots: cases side by side, devices that are not there, workers that hang, die, are reloaded, live long."""
import os
import re
import signal
import statistics

import pydicom

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")


def exam(folder, side, seed):
    return h.simulate(os.path.join(folder, f"{side}{seed}"), "--side", side, "--seed", seed, "--views", 9)


def workers(n, count):
    return wait_for(f"{count} workers", lambda: len(n.processes("worker")) == count and n.processes("worker"))


def ready(n, count):
    wait_for(f"{count} devices are ready", lambda: n.log_text().count(" device-ready ") >= count)


def start_of(pid):
    """Of a process, in ticks: tells two with the same number apart."""
    return h.read_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[19]


def ticks(pid):
    """Of processor time that it has used."""
    return sum(map(int, h.read_file(f"/proc/{pid}/stat").rsplit(")", 1)[1].split()[11:13]))


def resident(pid):
    return int(re.search(r"VmRSS:\s+(\d+) kB", h.read_file(f"/proc/{pid}/status")).group(1))


def test_two_cases_side_by_side(folder, things):
    n, pacs = h.node_and_pacs(folder, things, device='"cpu:1, cpu:1"')
    n.make_long()
    n.start()
    ready(n, 2)
    before = workers(n, 2)
    for side in "LR":
        h.send(n.port, exam(folder, side, 1))
    first, second = n.wait_states("running", "running")
    for job in (first, second):
        check("cpu (1 thread" in job["device"], job["device"])
        check("device cpu (1 thread" in n.command("show", str(job["id"])).stdout, "the device is not in show")
    check(re.search(r"running.* cpu ", n.command("list").stdout), "the device is not in the list")
    h.send(n.port, exam(folder, "L", 2))
    n.wait_states("running", "running", "ready")
    check(n.processes("worker") == before, "other workers, or more of them")
    # One is cancelled: its worker goes, the other one's stays, and the third case begins.
    n.command("cancel", str(first["id"]))
    n.wait_states("cancelled", "running", "running")
    check(len(set(before) & set(n.processes("worker"))) == 1, "not just the one worker is a new one")
    check(n.events(second["id"]).count("started") == 1, "the other case was disturbed")
    check(n.stop() == 0, "SIGTERM: the exit code is not 0")
    check(not n.processes(), "something is left")


def test_cancelled_and_wanted_again(folder, things):
    """The worker that had the case is slow to go: no other one may begin with it meanwhile."""
    n, pacs = h.node_and_pacs(folder, things, device='"cpu:1, cpu:1"')
    n.make_long()
    n.start()
    ready(n, 2)
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("running")
    workers(n, 2)
    wait_for("one of them works",
             lambda: max(map(ticks, n.processes("worker"))) > min(map(ticks, n.processes("worker"))) + 20)
    busy = max(n.processes("worker"), key=ticks)
    os.kill(busy, signal.SIGSTOP)  # SIGTERM does nothing; SIGKILL follows after 5 s
    n.command("cancel", str(job["id"]))
    n.wait_states("cancelled")
    n.command("retry", str(job["id"]))
    wait_for("it is started again", lambda: n.events(job["id"]).count("started") == 2, step=0.02)
    check(busy not in n.processes("worker"), "two workers at one case")
    wait_for("the second one gets on", lambda: n.jobs()[0]["progress"] and n.jobs()[0]["progress"]["stage"]
             == "reconstruct")
    found = n.events(job["id"])
    check(found.count("started") == 2 and "interrupted" not in found and "crashed" not in found, found)


def test_first_come_first_served(folder, things):
    n, pacs = h.node_and_pacs(folder, things, device='"cpu:1, cpu:1"')
    pacs.start()
    n.start()
    for side, seed in (("L", 1), ("R", 1), ("L", 2), ("R", 2), ("L", 3)):
        h.send(n.port, exam(folder, side, seed))
    jobs = n.wait_states(*["delivered"] * 5)
    started = [next(e["time"] for e in n.show(j["id"])["events"] if e["event"] == "started") for j in jobs]
    check(started == sorted(started), started)
    check(sorted(pacs.objects().values()) == [1] * 5, pacs.objects())


def test_a_device_that_is_not_there(folder, things):
    n, pacs = h.node_and_pacs(folder, things, device='"cuda:7"')
    pacs.start()
    n.start()
    wait_for("it is said", lambda: "device-disabled" in n.log_text())
    line = next(x for x in n.log_text().splitlines() if "device-disabled" in x)
    check(" crit " in line and "device=cuda:7" in line and re.search(r'reason=".*cuda:7.*"', line), line)
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("delivered")
    check(job["device"].startswith("cpu") and job["attempts"] == 1 and job["crashes"] == 0, job)
    made = pydicom.dcmread(pacs.files()[0], stop_before_pixels=True)
    check(job["device"] in str(made), "the object does not say which device made it")
    check("job-started" in n.log_text() and re.search(r'job-started.*device="cpu', n.log_text()),
          "the log does not, either")
    # Asked again when the configuration is read, and by nobody before.
    check(n.log_text().count("device-disabled") == 1, "tried again at once")
    n.make_quick()
    wait_for("it is tried again", lambda: n.log_text().count("device-disabled") == 2)
    h.send(n.port, exam(folder, "R", 1))
    n.wait_states("delivered", "delivered")
    # Beside a device that works, no other one is opened.
    n.node["device"] = '"cuda:7, cpu:1"'
    n.make_quick()
    wait_for("it is tried again", lambda: n.log_text().count("device-disabled") == 3)
    wait_for("the CPU alone", lambda: len(n.processes("worker")) == 1)
    h.send(n.port, exam(folder, "L", 2))
    job = n.wait_states("delivered", "delivered", "delivered")[-1]
    check("cpu (1 thread" in job["device"], job["device"])


def test_chosen_by_itself(folder, things):
    n, pacs = h.node_and_pacs(folder, things, device='"auto"')
    pacs.start()
    n.start()
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("delivered")
    check(job["device"] and "devices-counted" in n.log_text(), job)
    check("device-disabled" not in n.log_text(), "no GPU is no alarm here")


def test_a_worker_that_hangs(folder, things):
    limit = 5 * h.PATIENCE
    n, pacs = h.node_and_pacs(folder, things, worker_timeout=limit, attempts=2)
    n.make_long()
    n.start()
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("running")
    pid, = n.processes("worker")
    os.kill(pid, signal.SIGSTOP)
    wait_for("it is written down", lambda: "crashed" in n.events(job["id"]))
    job, = n.jobs()
    check(f"no progress for {limit} s" in job["reason"] or job["state"] == "running", job)
    check("worker-hung" in n.log_text() and pid not in n.processes("worker"), "it was not ended")
    n.wait_states("running")
    pid, = n.processes("worker")
    os.kill(pid, signal.SIGSTOP)
    job, = n.wait_states("failed")
    check("2 attempts" in job["reason"] and "no progress" in job["reason"], job["reason"])
    n.make_quick()
    pacs.start()
    n.command("retry", str(job["id"]))
    n.wait_states("delivered")


def test_an_idle_worker_that_dies(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    pacs.start()
    n.start()
    ready(n, 1)
    pid, = n.processes("worker")
    os.kill(pid, signal.SIGKILL)
    wait_for("another one", lambda: n.processes("worker") not in ([], [pid]))
    ready(n, 2)
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("delivered")
    check(job["attempts"] == 1 and job["crashes"] == 0, job)


def test_reloaded_after_its_case(folder, things):
    n, pacs = h.node_and_pacs(folder, things, device='"cpu:1, cpu:1"')
    pacs.start()
    n.start()
    ready(n, 2)
    before = {pid: start_of(pid) for pid in workers(n, 2)}
    # that of the first slot, which gets the case; stopped, so that the case lasts as long as the test needs
    first = min(before, key=lambda pid: int(before[pid]))
    os.kill(first, signal.SIGSTOP)
    h.send(n.port, exam(folder, "L", 1))
    n.wait_states("running")
    n.make_quick()
    wait_for("the idle one is a new one", lambda: first in n.processes("worker")
             and not (set(before) - {first}) & set(n.processes("worker"))
             and len(n.processes("worker")) == 2)
    check(n.states() == ["running"], "the case was disturbed")
    os.kill(first, signal.SIGCONT)
    job, = n.wait_states("delivered")
    check(n.events(job["id"]).count("started") == 1, n.events(job["id"]))
    wait_for("the other one, too", lambda: len(n.processes("worker")) == 2
             and not set(before) & set(n.processes("worker")))
    # Back to one slot: the other one leaves.
    n.node["device"] = '"cpu:1"'
    n.make_quick()
    wait_for("one worker", lambda: len(n.processes("worker")) == 1)
    h.send(n.port, exam(folder, "R", 1))
    n.wait_states("delivered", "delivered")


def test_many_cases_in_one_worker(folder, things):
    """The result is taken away again and again, so that it is made again: memory and open files stay as they are."""
    n, pacs = h.node_and_pacs(folder, things, attempts=100)  # each result that is lost counts as one
    n.destination.update(retry_first=60.0, retry_cap=60.0)
    n.write_conf()
    n.start()
    h.send(n.port, exam(folder, "L", 1))
    job = n.wait_states("reconstructed")[0]
    pid, = n.processes("worker")
    # 50 kB a case; a sanitizer keeps up to 256 MB of freed memory
    sizes, files, allowed = [], [], 256 << 10 if h.sanitizer() else 512
    # Some looks come before it has given back what it had for the case, and closed the journal, or while the allocator
    # keeps some MB: a worker that has grown never comes back to what it had, however many cases follow.
    for i in range(60):
        made = n.events(job["id"]).count("reconstructed")
        os.unlink(os.path.join(n.spool, job["result"]["file"]))
        n.command("retry", str(job["id"]), code=None)  # so that it is missed at once; 1: it was already
        wait_for("it is made again", lambda: n.events(job["id"]).count("reconstructed") > made, step=0.02)
        sizes.append(resident(pid))
        files.append(len(os.listdir(f"/proc/{pid}/fd")))
        if i >= 19 and min(sizes[14:]) - statistics.median(sizes[4:10]) < allowed:
            break
    before = statistics.median(sizes[4:10])  # one look may be when it has less than ever after
    check(n.processes("worker") == [pid], "another worker")
    print(f"        resident after 7 and {len(sizes)} cases: {before} and {min(sizes[14:])} kB")
    check(min(sizes[14:]) - before < allowed, f"the worker grows: {sizes}")
    check(min(files[-6:]) <= statistics.median(files[:10]), f"files stay open: {files}")


def test_nothing_stays_in_the_outbox(folder, things):
    n, pacs = h.node_and_pacs(folder, things)
    n.destination.update(retry_first=60.0, retry_cap=60.0)
    n.write_conf()
    n.start()
    h.send(n.port, exam(folder, "L", 1))
    job, = n.wait_states("reconstructed")
    outbox = os.path.join(n.spool, "outbox")
    check(os.listdir(outbox) == [str(job["id"])], os.listdir(outbox))
    n.command("cancel", str(job["id"]))
    wait_for("the result of a cancelled case is removed", lambda: os.listdir(outbox) == [])
    n.command("retry", str(job["id"]))
    n.wait_states("reconstructed")
    # A case that is refused leaves nothing either.
    n.protocol["memory_limit"] = 100000
    n.make_quick()
    h.send(n.port, exam(folder, "R", 1))
    n.wait_states("reconstructed", "failed")
    wait_for("it leaves nothing", lambda: os.listdir(outbox) == [str(job["id"])])
    # What an earlier node left behind goes at the start.
    os.mkdir(os.path.join(outbox, str(n.jobs()[1]["id"])))
    check(n.stop() == 0, "SIGTERM")
    n.start()
    wait_for("it is removed", lambda: os.listdir(outbox) == [str(job["id"])])
