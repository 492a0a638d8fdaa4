# SPDX-License-Identifier: Apache-2.0
"""Several results of one exam: a route with three protocols makes three series; each has its own state and
destinations."""
import os

import pydicom

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu")
SECOND = ', { name = "second"; algorithm = "fbp"; voxel = 0.0; slice_spacing = 5.0; }'
THIRD = ', { name = "third"; algorithm = "osem"; voxel = 3.0; }'


def three(n):
    n.more_protocols, n.protocols = SECOND + THIRD, ["quick", "second", "third"]
    n.write_conf()


def test_three_series_in_a_pacs(folder, things):
    """One route, one exam, three series of one study; what each job recorded is what the PACS has."""
    n, pacs = h.node_and_pacs(folder, things)
    three(n)
    pacs.start()
    n.start()
    files = h.simulate(os.path.join(folder, "exam"), "--views", 9)
    h.send(n.port, files)
    jobs = n.wait_states("delivered", "delivered", "delivered")
    check([j["protocol"] for j in jobs] == ["quick", "second", "third"], jobs)
    check([j["result_number"] for j in jobs] == [1, 2, 3] and [j["result_of"] for j in jobs]
          == [0, jobs[0]["id"], jobs[0]["id"]], jobs)
    study = pydicom.dcmread(files[0], stop_before_pixels=True).StudyInstanceUID
    check(pacs.objects() == {j["result"]["sop_instance"]: 1 for j in jobs}, "other objects than the jobs recorded")
    series = [pydicom.dcmread(f, stop_before_pixels=True) for f in pacs.files()]
    check({d.StudyInstanceUID for d in series} == {study} and len({d.SeriesInstanceUID for d in series}) == 3,
          "not three series")
    check(len({d.SeriesNumber for d in series}) == 3, [d.SeriesNumber for d in series])
    # The worker has verified, read and prepared the images for the first one, and says from what it made the others.
    # The third has other bins, and is prepared from the stored values.
    again = [line.split("images-again ")[1].strip() for line in n.log_text().splitlines() if " images-again " in line]
    check(again == ["views=9 from=line-integrals", "views=9 from=stored-values"], f"read or prepared again: {again}")
    for j in jobs[1:]:
        stages = {s["stage"] for s in n.show(j["id"])["stages"]}
        check("reconstruct" in stages and "check" not in stages, f"verified again: {stages}")
    # All results are of the same images, and refer to them.
    sources = {pydicom.dcmread(f, stop_before_pixels=True).SOPInstanceUID for f in files}
    for j in jobs:
        d = pydicom.dcmread(os.path.join(n.spool, j["result"]["file"]), stop_before_pixels=True)
        check({i.ReferencedSOPInstanceUID for i in d.SourceImageSequence} == sources if "SourceImageSequence" in d else
              sources <= {e.value for e in d.iterall() if e.keyword == "ReferencedSOPInstanceUID"},
              "the sources of a result")
    # They were made one after the other by one worker, which a restart does not repeat.
    check(n.stop() == 0, "SIGTERM")
    n.start()
    wait_for("the devices are ready again", lambda: n.log_text().count(" device-ready ") >= 2)
    check(n.states() == ["delivered"] * 3 and n.log_text().count("job-started") == 3, "done again after a restart")


def test_one_that_fails_stops_no_other(folder, things):
    """The first result does not fit into its memory limit; the third is for another archive, which is down, and waits
    for it alone."""
    n, pacs = h.node_and_pacs(folder, things)
    other = h.Pacs(os.path.join(folder, "other"))
    things.append(other)
    n.protocol["memory_limit"] = 100000
    n.more_protocols = SECOND + THIRD
    n.more_destinations = (f', {{ name = "other"; aet = "PACS"; host = "127.0.0.1"; port = {other.port}; '
                           'retry_first = 0.3; retry_cap = 1.0; }')
    n.write_conf()
    text = h.read_file(n.conf)
    text = text.replace('destinations = [ "pacs" ]; }',
                        'destinations = [ "pacs" ]; continue = true; }, { name = "research"; kind = "dbt"; '
                        'view = "L*"; station = "*"; protocols = [ "second", "third" ]; destinations = [ "pacs", '
                        '"other" ]; }')
    h.write_file(n.conf, text)
    pacs.start()
    n.start()
    h.send(n.port, h.simulate(os.path.join(folder, "exam"), "--views", 9))
    jobs = n.wait_states("failed", "reconstructed", "reconstructed")
    wait_for("two results are sent", lambda: all(j["destinations"][0]["state"] == "sent" for j in n.jobs()[1:]))
    check(len(pacs.objects()) == 2, pacs.objects())
    check([d["name"] for d in jobs[1]["destinations"]] == ["pacs", "other"], jobs[1])
    # Each is controlled by itself.
    n.command("cancel", str(jobs[2]["id"]))
    other.start()
    n.wait_states("failed", "delivered", "cancelled")
    check(len(other.objects()) == 1, "a cancelled result was sent")


def two_results(folder, things, *options):
    n, pacs = h.node_and_pacs(folder, things)
    n.more_protocols, n.protocols = SECOND, ["quick", "second"]
    n.write_conf()
    pacs.start()
    n.start()
    return n, pacs, h.simulate(os.path.join(folder, "exam"), "--views", 9, *options)


def test_restarts_after_a_late_image(folder, things):
    """The results of both revisions are delivered once, however often the node is started."""
    n, pacs, files = two_results(folder, things)
    h.send(n.port, files[:-1])
    job, = n.wait_states("held")
    n.command("retry", "--as-is", str(job["id"]))
    n.wait_states("delivered", "delivered")
    h.send(n.port, files[-1:])
    jobs = n.wait_states("delivered", "delivered", "delivered", "delivered")
    check(jobs[3]["revision_of"] == jobs[1]["id"] and jobs[3]["result_of"] == jobs[2]["id"], jobs[3])
    for starts in (2, 3):
        check(n.stop() == 0, "SIGTERM")
        n.start()
        wait_for("the device is ready again", lambda k=starts: n.log_text().count(" device-ready ") >= k)
        n.command("list")
        check(n.states() == ["delivered"] * 4 and list(pacs.objects().values()) == [1] * 4,
              f"{n.states()}, {pacs.objects()}")


def test_removed_together(folder, things):
    """Retention by space removes all results of an exam, because they share its images; a redo is then refused."""
    n, _, files = two_results(folder, things, *h.LARGE)
    h.send(n.port, files)
    jobs = n.wait_states("delivered", "delivered")
    check(n.stop() == 0, "SIGTERM")
    n.node["retention_space"] = sum(os.stat(os.path.join(at, f)).st_blocks * 512 for part in ("instances", "outbox")
                                    for at, _, names in os.walk(os.path.join(n.spool, part)) for f in names) - 20000
    n.write_conf()
    n.start()
    n.wait_states("cleaned", "cleaned")
    wait_for("its images are gone", lambda: not n.stored_files())
    out = n.command("redo", str(jobs[1]["id"]), code=4).stderr
    check("its images were removed by retention" in out, out)
