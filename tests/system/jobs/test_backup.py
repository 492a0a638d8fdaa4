# SPDX-License-Identifier: Apache-2.0
"""The day the disk dies (docs/disk-dies.md), with the commands of that page: a backup of a running node, the loss of
the spool, the restored node. What was delivered is not doubled, what waited is delivered, and the audit trail of
another disk names what has to be sent again."""
import glob
import os
import re
import shutil

from tools import dicom_peer
from tools import node_harness as h
from tools.node_harness import check, wait_for

h.need("storescu")
PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "..", "docs", "disk-dies.md")


def commands(heading):
    """The block of commands below a heading of the page."""
    return re.search(rf"^## {heading}$.*?^```sh\n(.*?)^```", h.read_file(PAGE), re.M | re.S)[1]


def shell(text, paths):
    for path, replacement in paths.items():
        text = text.replace(path, replacement)
    check("/var/" not in text, text)
    return h.run("bash", "-euc", text).stdout


def study(files):
    import pydicom
    return pydicom.dcmread(files[0], stop_before_pixels=True).StudyInstanceUID


def test_backup(folder, things):
    if not shutil.which("sqlite3"):
        h.skip("sqlite3 is not installed")
    archive, audit = dicom_peer.Archive(), os.path.join(folder, "audit.log")
    n = h.Node(os.path.join(folder, "node"), archive.port, audit='"file"', audit_file=f'"{audit}"')
    n.write_conf()
    things += [n, archive]
    n.start()
    exams = [h.simulate(os.path.join(folder, f"e{seed}"), "--views", 5, "--seed", seed) for seed in (1, 2, 3)]
    h.send(n.port, exams[0])
    n.wait_states("delivered")
    archive.stop()
    h.send(n.port, exams[1])
    n.wait_states("delivered", "reconstructed")

    backup = os.path.join(folder, "backup")
    os.mkdir(backup)
    paths = {"/backup": backup, "/var/lib/tomonode": n.spool, "/var/log/tomonode-audit.log": audit}
    shell(commands("Backup"), paths)
    h.send(n.port, exams[2])  # acknowledged after the backup
    wait_for("the third result waits", lambda: n.states().count("reconstructed") == 2)
    wait_for("the audit trail names the three studies", lambda: all(study(e) in open(audit, encoding="utf-8").read()
                                                                    for e in exams))
    n.kill()
    shutil.rmtree(n.spool)
    os.mkdir(n.spool, 0o700)

    shell(commands("Restore"), paths)
    archive = dicom_peer.Archive(archive.port)
    things.append(archive)
    n.start()
    n.wait_states("delivered", "delivered")
    wait_for("the audit trail has the transfers",
             lambda: open(audit, encoding="utf-8").read().count(study(exams[1])) > 1)
    missing = wait_for("one study is not in the archive", lambda: (lambda names: names if len(names) == 1 else None)(
        shell(commands("What has to be sent again"), paths).split()))
    check(missing == [study(exams[2])], missing)
    h.send(n.port, exams[2])
    n.wait_states("delivered", "delivered", "delivered")
    wait_for("nothing is missing", lambda: not shell(commands("What has to be sent again"), paths).split())
    check(len(glob.glob(os.path.join(n.spool, "orphans", "*"))) == 0, "orphans")
