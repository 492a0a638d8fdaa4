# SPDX-License-Identifier: Apache-2.0
"""A result of several objects through the node: slices, slabs and synthetic view, plain and JPEG-LS, to peers that take
the one or the other; what a peer has is not sent again."""
import os
import threading

import numpy as np
import pydicom

from tools import dicom_peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need(h.TOMONODE, "storescu", "storescp", "echoscu", "dcmdjpls")

BTO, MG = "1.2.840.10008.5.1.4.1.1.13.1.3", "1.2.840.10008.5.1.4.1.1.1.2"
IMPLICIT, EXPLICIT, JPEG_LS = "1.2.840.10008.1.2", "1.2.840.10008.1.2.1", "1.2.840.10008.1.2.4.80"


def both(folder, things, **protocol):
    n, pacs = h.node_and_pacs(folder, things)
    n.protocol.update({"slab_thickness": 10.0, "synthetic": "true", **protocol})
    n.write_conf()
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
    """One result to peers that take JPEG-LS, explicit and implicit little endian: the same pixels."""
    n, jls = both(folder, things, compression='"jpeg-ls"')
    others = [h.Pacs(os.path.join(folder, name)) for name in ("explicit", "implicit")]
    things += others
    n.more_destinations = "".join(f', {{ name = "{name}"; aet = "PACS"; host = "127.0.0.1"; port = {p.port}; }}'
                                  for name, p in zip(("explicit", "implicit"), others))
    n.destinations += ["explicit", "implicit"]
    n.write_conf()
    for pacs, option in zip(others, ("+xe", "+xi")):
        pacs.start(option)
    job = send_exam(folder, n, jls, "+xt")
    for o in job["result"]["objects"]:
        stored = pydicom.dcmread(os.path.join(n.spool, o["file"]), stop_before_pixels=True)
        check(stored.file_meta.TransferSyntaxUID == JPEG_LS, f"{o['file']} is {stored.file_meta.TransferSyntaxUID}")
    pixels = {}
    for pacs, syntax in ((jls, JPEG_LS), *zip(others, (EXPLICIT, IMPLICIT))):
        check(len(pacs.files()) == 3, pacs.files())
        for f in pacs.files():
            d = pydicom.dcmread(f)
            check(d.file_meta.TransferSyntaxUID == syntax, f"{f}: {d.file_meta.TransferSyntaxUID}, not {syntax}")
            check(d.LossyImageCompression == "00", "nothing was lost")
            a = (plain(f, folder) if syntax == JPEG_LS else d).pixel_array
            first = pixels.setdefault(d.SOPInstanceUID, a)
            check(np.array_equal(a, first) and a.max() > 0, f"{syntax}: {d.SOPInstanceUID} has other pixels")
    check(len(pixels) == 3, "the same three objects each time")


def test_a_resume_sends_what_is_missing(folder, things):
    """The node is killed while the archive has not answered to the second object."""
    killed = threading.Event()

    def answer(uid, data):
        if len(archive.held) == 1:
            killed.wait(100)
        return dicom_peer.SUCCESS
    archive = dicom_peer.Archive(answer=answer)
    n, _ = both(folder, things)
    n.pacs_port = archive.port
    n.write_conf()
    things.append(archive)
    n.start()
    h.send(n.port, h.simulate(os.path.join(folder, "exam")))
    wait_for("the first object is on record", lambda: n.jobs() and len(n.events(n.jobs()[0]["id"], "sent")) == 1)
    n.kill()
    killed.set()
    n.start()
    job, = n.wait_states("delivered")
    uids = [o["sop_instance"] for o in job["result"]["objects"]]
    check(len(archive.held[uids[0]]) == 1, "what was acknowledged and written down was sent again")
    check(set(archive.held) == set(uids) and len(uids) == 3, archive.held)


def test_lost_object_is_made_again(folder, things):
    """A file that vanishes from the outbox before it is delivered: reconstructed again, the same object."""
    n, pacs = both(folder, things)
    n.start()
    h.send(n.port, h.simulate(os.path.join(folder, "exam")))
    job, = n.wait_states("reconstructed")
    n.stop()
    os.remove(os.path.join(n.spool, job["result"]["objects"][2]["file"]))
    pacs.start()
    n.start()
    n.wait_states("delivered")
    check(pacs.objects() == {o["sop_instance"]: 1 for o in job["result"]["objects"]}, pacs.objects())
