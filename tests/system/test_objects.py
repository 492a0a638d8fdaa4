# SPDX-License-Identifier: Apache-2.0
"""A result of several objects through the node: slices, slabs and synthetic view, plain and JPEG-LS, to peers that take the one or the
other; what a peer has is not sent again."""
import os

import numpy as np
import pydicom

from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "dcmdjpls")

BTO, MG = "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.5.1.4.1.1.1.2"
IMPLICIT, EXPLICIT, JPEG_LS = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.4.80"


def both(folder, things, **protocol):
    pacs = h.Pacs(os.path.join(folder, "pacs"))
    n = h.Node(os.path.join(folder, "node"), pacs.port)
    n.protocol.update({"slab_thickness": 10.0, "synthetic": "true", **protocol})
    n.write_conf()
    things += [n, pacs]
    return n, pacs


def plain(path, folder):
    """Pixels of a received object, decoded by DCMTK where it is JPEG-LS."""
    out = os.path.join(folder, "plain.dcm")
    h.run("dcmdjpls", path, out)
    return pydicom.dcmread(out)


def send_exam(folder, n, pacs, *pacs_options):
    files = h.simulate(os.path.join(folder, "exam"))
    pacs.start(*pacs_options)
    n.start()
    check(h.send(n.port, files) == set(files), "not every image was acknowledged")
    return n.wait_states("delivered")[0]


def test_all_objects_arrive_once(folder, things):
    n, pacs = both(folder, things)
    job = send_exam(folder, n, pacs)
    objects = job["result"]["objects"]
    check([o["sop_class"] for o in objects] == [BTO, BTO, MG], objects)
    check(len({o["series"] for o in objects}) == 3, "each object has a series of its own")
    check(pacs.objects() == {o["sop_instance"]: 1 for o in objects}, pacs.objects())
    check(job["destinations"][0]["objects"] == ["sent"] * 3, job["destinations"])
    show = n.show(job["id"])
    sent = [e["detail"]["sop_instance"] for e in show["events"] if e["event"] == "sent"]
    check(sent == [o["sop_instance"] for o in objects], "in order, one event each")
    received = {d.SOPInstanceUID: d for d in map(pydicom.dcmread, pacs.files())}
    check({d.StudyInstanceUID for d in received.values()} == {received[sent[0]].StudyInstanceUID}, "one study")
    for o in objects:
        d = received[o["sop_instance"]]
        check((d.SOPClassUID, d.SeriesInstanceUID) == (o["sop_class"], o["series"]), d.SOPClassUID)
    check(n.command("show", str(job["id"])).stdout.count("result outbox/") == 3, "show for people")


def test_jpeg_ls_arrives_as_the_peer_takes_it(folder, things):
    """The same exam to peers that take JPEG-LS, explicit and implicit little endian: the same pixels."""
    pixels = {}
    for name, options, syntax in (("jls", ("+xt",), JPEG_LS), ("explicit", ("+xe",), EXPLICIT), ("implicit", ("+xi",), IMPLICIT)):
        here = os.path.join(folder, name)
        os.makedirs(here)
        n, pacs = both(here, things, compression='"jpeg-ls"')
        job = send_exam(here, n, pacs, *options)
        for o in job["result"]["objects"]:
            stored = pydicom.dcmread(os.path.join(n.spool, o["file"]), stop_before_pixels=True)
            check(stored.file_meta.TransferSyntaxUID == JPEG_LS, f"{o['file']} is {stored.file_meta.TransferSyntaxUID}")
        for f in pacs.files():
            d = pydicom.dcmread(f)
            check(d.file_meta.TransferSyntaxUID == syntax, f"{name}: {d.file_meta.TransferSyntaxUID}")
            check(d.LossyImageCompression == "00", "nothing was lost")
            a = (plain(f, here) if syntax == JPEG_LS else d).pixel_array
            first = pixels.setdefault(d.SOPInstanceUID, a)
            check(np.array_equal(a, first) and a.max() > 0, f"{name}: {d.SOPInstanceUID} has other pixels")
        n.stop()
        pacs.stop()
    check(len(pixels) == 3, "the same three objects each time")


def test_a_resume_sends_what_is_missing(folder, things):
    """The receiver takes its time after each object; the node is killed when the first has arrived."""
    n, pacs = both(folder, things)
    files = h.simulate(os.path.join(folder, "exam"))
    pacs.start("--sleep-after", "3")
    n.start()
    h.send(n.port, files)
    wait_for("the first object is there", lambda: any(j["destinations"] and j["destinations"][0].get("objects", [])[:1] == ["sent"]
                                                       for j in n.jobs()))
    n.kill()
    before = pacs.objects()
    check(1 <= sum(before.values()) < 3, f"killed between two objects, {before} were there")
    pacs.stop()
    pacs.start()
    n.start()
    job, = n.wait_states("delivered")
    first = job["result"]["objects"][0]["sop_instance"]
    count = pacs.objects()
    check(count[first] == 1, f"what was acknowledged and written down was sent again: {count}")
    check(set(count) == {o["sop_instance"] for o in job["result"]["objects"]}, count)


def test_lost_object_is_made_again(folder, things):
    """A file that vanishes from the outbox before it is delivered: reconstructed again, the same object."""
    n, pacs = both(folder, things)
    files = h.simulate(os.path.join(folder, "exam"))
    n.start()
    h.send(n.port, files)
    job, = wait_for("a result", lambda: [j for j in n.jobs() if j["state"] == "reconstructed" and j["destinations"][0]["failures"] > 0])
    os.remove(os.path.join(n.spool, job["result"]["objects"][2]["file"]))
    pacs.start()
    after, = n.wait_states("delivered")
    check([o["sop_instance"] for o in after["result"]["objects"]] == [o["sop_instance"] for o in job["result"]["objects"]], "other objects")
    check(set(pacs.objects()) == {o["sop_instance"] for o in job["result"]["objects"]}, pacs.objects())
