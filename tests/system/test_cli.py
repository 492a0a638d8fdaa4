# SPDX-License-Identifier: Apache-2.0
"""The command line: help of every command, exit codes, check on good and bad files, JSON, the reference in
docs/configuration.md, manual pages and completion."""
import json
import os
import pwd
import re
import shutil
import sqlite3
import subprocess

import pytest

from tools import node_harness as h
from tools.node_harness import TOMONODE, check

SOURCE, BUILD = os.environ["TOMONODE_SOURCE"], os.environ["TOMONODE_BUILD"]
COMMANDS = "serve check recon simulate export list show retry cancel test-peer devices bench".split()
OF_THE_NODE = "index worker deliver commit status http names report-page look".split()  # not for people
GOOD, BAD = "node = { port = 104; };\n", "node = {\n  port = 70000;\n  prot = 1;\n};\n"


@pytest.fixture(autouse=True)
def work(folder, monkeypatch):
    """The folder in which the program runs."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("TOMONODE_SPOOL", os.path.join(folder, "spool"))
    for name, text in (("good.conf", GOOD), ("bad.conf", BAD)):
        write(name, text)
    return folder


def write(name, text=""):
    os.makedirs(os.path.dirname(os.path.abspath(name)), exist_ok=True)
    h.write_file(name, text)
    return name


def read(*path):
    return h.read_file(os.path.join(*path))


def said(code, words, *texts, by=()):
    """Run `tomonode` with these words (a text is divided at blanks); the texts must be on stderr, those behind a ">" on
    stdout."""
    done = h.run(*by, TOMONODE, *(words.split() if isinstance(words, str) else words), code=code)
    for text in texts:
        where, text = (done.stdout, text[1:]) if text.startswith(">") else (done.stderr, text)
        check(text in where, f"{words}: no '{text}' in: {where[:500]}")
    return done


def document(code, words):
    """The same with --json; the document on stdout, whose code is that of the exit."""
    found = json.loads(said(code, words).stdout)
    check(found["code"] == code and found["ok"] == (code == 0), found)
    return found


def test_the_program_itself():
    text = said(0, "--help", ">Usage: tomonode COMMAND").stdout
    listed = re.findall(r"(?m)^  ([a-z-]+) ", text)
    check(set(COMMANDS) <= set(listed) and not set(OF_THE_NODE) & set(listed), listed)
    version = said(0, "--version").stdout
    check(re.fullmatch(r"tomonode \d+\.\d+\.\d+ \(revision [^ ]+, [A-Za-z]+ build\)\n", version), version)
    for words in ("", "help no-such-command", "help worker"):
        said(2, words)
    for words in ("help simulate parallel", "help recon"):
        said(0, words, ">Usage: tomonode " + words[5:])


def test_help_of_every_command():
    """In both ways; an unknown option says no more than itself and where the help is."""
    for name in COMMANDS:
        text = said(0, f"{name} --help", f">Usage: tomonode {name}", ">Exit codes:").stdout
        check(said(0, f"help {name}").stdout == text, f"help {name} differs from {name} --help")
    for name in COMMANDS + OF_THE_NODE:  # those ended with a crash: the caller continued without a configuration
        said(0, f"{name} --help", f">Usage: tomonode {name}")
        lines = said(2, f"{name} --no-such-option", f"tomonode {name}").stderr.splitlines()
        check(name in OF_THE_NODE or lines[1:] == [f"More: tomonode {name} --help"], lines)


# exit code, words of the command line, text on stderr: the nearest name, and what is allowed for this kind only
REFUSED = [
    (2, "no-such-command", "no command 'no-such-command'"),
    (2, "recn", "command 'recn', did you mean 'recon'?"),
    (2, "reconstruct", "command 'reconstruct', did you mean 'recon'?"),
    (2, "recon --protcol x", "option '--protcol', did you mean '--protocol'?"),
    (2, "recon --iteration 3", "option '--iteration', did you mean '--set iterations=...'?"),
    (2, "redo 1 --iteration 3", "option '--iteration', did you mean '--set iterations=...'?"),
    (2, "recon --g 3", "option '--g' may be one of --gates, --gate-cycle"),
    (2, "simulate dbt --phantom elipsoids", "not allowed, did you mean 'ellipsoids'?"),
    (2, "simulate pett -o none", "'pett' cannot be simulated, did you mean 'pet'?"),
    (2, "simulate spect -o none", "allowed: dbt, pet, parallel"),
    (2, "simulate dbt --phantom none -o none --json", "--phantom KIND: breast"),
    (2, "bench --work dbt-osm", "not known, did you mean 'dbt-osem'?"),
    (2, "recon --protocol pet-osem --set algorithm=ossem -o none .",
     "\"ossem\", did you mean 'osem'?; allowed: mlem, osem,"),
    (2, "recon --protocol pet-osem --set iteratoins=3 -o none .", "did you mean 'iterations'?; allowed: algorithm,"),
    (2, "recon --protocol pet-osem --set tile=3 -o none .",
     "of kind pet; allowed: algorithm, iterations, subsets, matrix,"),
    (2, "recon --protocol dbt-osem-full --set require_quantitativ=1 -o none .",
     "did you mean 'require_quantitative'?; allowed: algorithm, "),
    (2, "recon --protocol dbt-osem-full --set require_quantitativ=1 -o none .", "slab_mode, synthetic, "),
    (2, "recon --set foo=1 -o none .", "slab_mode, synthetic, "),
    (2, "recon --protocol pet-osem --set prior_weight=10 -o none .", "no effect with the algorithm 'osem'"),
    (2, "recon --protocol parallel-fbp --set sampling=0.1 --set algorithm=sart -o none .",
     "no effect without 'projector' = sampled"),
    (2, "arrays write --algorithm x -o none", "it must be stated"),
    (2, "simulate dbt --binning 9 -o none", "--binning 9 is not allowed; --binning N: combine N x N bins of the detector into one, 1 to 8"),
    (8, "recon --protocol pet-osm -o none .", "no protocol 'pet-osm', did you mean 'pet-osem'?; available: dbt-osem, "),
    (8, "simulate pet --scanner siemens-mr -o none", "did you mean 'siemens-mmr'?"),
    (8, "test-peer pac", "did you mean 'pacs'?"),
    (8, "recon -o none absent.dcm", "absent.dcm"),
    (8, "import absent.hs -o none", "absent.hs"),
    (8, "import --petsird absent.petsird -o none", "absent.petsird"),
    (8, "import absent.png -o none", "absent.png"),
    (8, "report absent.dcm -o none", "absent.dcm: No such file"),
    (3, "check -c word.conf", "did you mean 'osem'?"),
    (4, "recon -o none scans", "(2 of them not DICOM); 2 Interfile headers are there: name the .hs files"),
    (2, "report -o none.html truth", "--output none.html is not allowed, for it is named like a file; --output DIR: folder for"),
    (2, "recon -o none --report none.HTML truth", "--report none.HTML is not allowed, for it is named like a file"),
    (4, "recon -o folder.dcm truth", "in 1 non-DICOM file"),
    (4, "recon -o none truth", "in 1 non-DICOM file"),
    (4, "recon -o none truth/truth.json", "in 1 non-DICOM file"),
    (4, "recon -o none scan.s", "scan.s is data without a header: name its Interfile header, scan.hs"),
    (4, "recon --attribute Radionuclide=F18 -o none scans/emission.hs",
     "tomonode recon: scans/emission.hs: cannot open "),
]


def test_refusals_name_what_is_wrong():
    """What was refused has written nothing; no suggestion comes out of nothing, no key of another kind."""
    write("word.conf", 'protocols = ( { name = "mine"; kind = "pet"; algorithm = "osme"; } );\n')
    shutil.copytree(os.path.join(SOURCE, "docs", "samples", "pet"), "scans", ignore=lambda _,
                    names: [n for n in names if not n.endswith(".hs")])
    write("truth/truth.json", "{}\n")
    write("scan.s")
    write("scan.hs")
    os.mkdir("folder.dcm")
    for code, words, text in REFUSED:
        error = said(code, words, text).stderr
        check("breast_mask" not in error or "dbt" in words or "foo" in words, f"{words}: keys of another kind: {error}")
        check("holds DICOM" not in error, f"{words}: a file of its own is taken for DICOM: {error}")
    check("did you mean" not in said(2, "no-such-command").stderr, "a suggestion out of nothing")
    check(not any(name.startswith("none") for name in os.listdir(".")), "what was refused has written something")


def test_errors_as_json():
    """With --json at any position."""
    check("--no-such-option" in document(2, "list --no-such-option --json")["error"], "list")
    check("--phantom none" in document(2, "simulate dbt --phantom none -o none --json")["error"], "simulate")


def names(section):
    """The entries of a list of the embedded defaults, in their order."""
    text = read(SOURCE, "conf", "defaults.conf")
    return re.findall(r'\bname = "([^"]*)"', re.search(rf"(?ms)^{section} = \((.*?)^\);", text).group(1))


def test_check():
    few = said(0, "check", ">embedded defaults: no problems",
               ">route         dbt: dbt from any sender, reconstructed by dbt-osem, sent to pacs",
               ">status page   127.0.0.1 port 11180").stdout
    check(len(few.splitlines()) <= 12 and "\nprotocol " not in few, f"what matters fits no screen: {few}")
    said(0, "check --verbose", ">protocol      dbt-osem: ", ">scanner       siemens-mmr: ")
    said(0, "check --config=good.conf", ">port 104")
    errors = said(3, "check -c bad.conf",
                  "bad.conf:2: key 'port' of node: 70000; allowed: a whole number from 1 to 65535",
                  "bad.conf:3: key 'prot' of node is not known, did you mean 'port'?").stderr
    check(len(errors.splitlines()) == 2, errors)
    check(len(document(3, "check --json -c bad.conf")["problems"]) == 2, "two problems")
    write("open.conf", 'node = { bind = "0.0.0.0"; require_known_peer = false; };\n')
    said(0, "check -c open.conf", "warning: node listens on 0.0.0.0")
    write("peers.conf", 'peers = ( { name = "one"; aet = "ONE"; } );\n')  # without effect on the loopback
    said(0, "check -c peers.conf", ">peers         any peer may send, as require_known_peer is false (its default on ",
         ">`peers` only sets limits: one (ONE)\n")
    said(3, "check -c absent.conf", "absent.conf: No such file")
    said(3, "check -c .", "not a regular file")
    said(2, "check stray")
    said(2, "check -c", "needs a value")
    said(3, "recon -c bad.conf -o o .")
    write("root.conf", 'node = { user = "root"; };\n')
    check("started as root" not in said(0, "check -c root.conf").stderr, "a warning of root with a user")
    if os.geteuid() == 0:  # what `serve` would refuse
        said(0, "check -c good.conf",
             "warning: `tomonode serve` would refuse to run, as you are root: started as root: set node.user",
             ">good.conf: no problems, but warnings, see above")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_check_after_installation(folder):
    """Root, and no node.user: the unit of systemd starts the node as its user, and as this one the spool is tested."""
    with open(os.path.join(os.environ["TOMONODE_SOURCE"], "deploy", "tomonode.service.in"), encoding="utf-8") as f:
        name, = re.findall(r"^User=(\w+)$", f.read(), re.M)
    os.chmod(folder, 0o711)
    os.mkdir("own", 0o700)
    os.chown("own", 4242, 4242)
    os.mkdir("other", 0o700)
    with open("/etc/passwd", encoding="utf-8") as f:
        users = "".join(line for line in f if not line.startswith(name + ":"))
    write("passwd", f"{users}{name}:x:4242:4242::/nowhere:/usr/sbin/nologin\n")
    for spool in "own", "other":
        write(f"{spool}.conf", f'node = {{ spool = "{os.path.abspath(spool)}"; device = "cpu"; }};\n')

    def installed(conf):
        done = subprocess.run(["unshare", "--mount", "sh", "-c", 'mount --bind passwd /etc/passwd || exit 99; exec "$@"', "sh", h.TOMONODE,
                               "check", "-c", conf], capture_output=True, text=True, check=False)
        if done.returncode in (1, 99):
            h.skip(f"this machine lets nobody make a mount: {done.stderr}")
        return done
    done = installed("own.conf")
    check(done.returncode == 0 and f"\nuser          {name}, as which systemd starts the node" in done.stdout, done.stdout)
    check("refuse" not in done.stderr and "Tested as user 0" not in done.stderr, done.stderr)
    done = installed("other.conf")
    check(done.returncode == 3 and "user 4242 cannot" in done.stderr, done.stderr)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_check_as_the_user_of_the_node(folder):
    """As serve would: it listens, then its user writes to the spool and the audit file, and reads the keys."""
    os.chmod(folder, 0o711)
    os.mkdir("spool", 0o700)
    key = write("alert.token", "secret")
    os.chmod(key, 0o600)
    write("nobody.conf", f"""
node = {{ user = "nobody"; bind = "192.0.2.1"; audit = "file"; audit_file = "{folder}/audit.log"; }};
alerts = {{ url = "https://127.0.0.1:9/"; credentials = "{os.path.abspath(key)}"; }};
""")
    mine = ["warning: cannot listen on 192.0.2.1 port 11112: ", "node.spool is ", "node.audit_file is ", "alert.token"]
    said(3, "check -c nobody.conf", *mine)
    said(3, "test-alert -c nobody.conf", "alert.token")
    for name in ("spool", key):
        shutil.chown(name, "nobody")
    os.mkdir("spool/outbox", 0o700)
    said(3, "check -c nobody.conf", "a folder of node.spool is ")
    said(7, "test-alert -c nobody.conf", "127.0.0.1:9")
    shutil.chown("spool/outbox", "nobody")
    os.mkdir("audit")
    shutil.chown("audit", "nobody")
    write("nobody.conf", read("nobody.conf").replace("/audit.log", "/audit/audit.log"))
    before = [os.stat(name).st_mtime_ns for name in ("spool", "spool/outbox", "audit")]
    found = said(0, "check -c nobody.conf", mine[0]).stderr
    check(before == [os.stat(name).st_mtime_ns for name in ("spool", "spool/outbox", "audit")], "check created a file")
    check(not any(text in found.replace("warning: node.spool is ", "") for text in mine[1:]) and not os.listdir("audit"), found)
    os.mkdir("closed", 0o700)
    write("closed.conf", f'node = {{ user = "nobody"; spool = "{folder}/closed/spool"; }};\n')
    said(3, "check -c closed.conf", f"cannot enter {folder}/closed: ")
    os.symlink("nowhere", "link")
    write("link.conf", f'node = {{ user = "nobody"; spool = "{folder}/link"; }};\n')
    said(3, "check -c link.conf", "a link to what does not exist")
    write("unknown.conf", 'node = { user = "no-such-user"; };\n')
    said(3, "check -c unknown.conf", "no-such-user")
    write("unknown.conf", read("unknown.conf") + 'alerts = { url = "https://127.0.0.1:9/"; };\n')
    said(3, "test-alert -c unknown.conf", "no-such-user")
    write("spool/journal.db", "no database" * 20)
    os.chmod("spool/journal.db", 0o666)
    said(3, "check -c nobody.conf", "journal.db: ")


PROFILE = "axis_height = 0.0; source_axis = 600.0; support = 20.0; pitch = 0.1;"


@pytest.mark.parametrize("code, text, where", [
    (3, 'node = { spool = "/proc"; };', "node.spool is /proc, but"),
    (3, 'node = { spool = "/proc/none/there"; };', "node.spool is /proc/none/there, but this is a file system of the kernel"),
    (3, 'node = { spool = "/dev/shm/none/there"; };', "in memory (tmpfs): acknowledged images and results would be lost"),
    (0, 'node = { spool = "/var/tmp/none"; };', "warning: node.spool is /var/tmp/none, but systemd removes old files in /var/tmp"),
    (0, 'node = { spool = "SPOOL/none/there"; };', ""),
    (3, 'node = { spool = "SPOOL/bad.conf"; };', "bad.conf is a file, not a folder"),
    (3, 'node = { spool = "SPOOL/bad.conf/below"; };', "bad.conf is a file, not a folder"),
    (3, 'node = { user = "65534"; };', "a number; it must be a user's name"),
    (0, 'node = { audit = "syslog"; audit_socket = "/none/there"; };', 'warning: node.audit is "syslog", but'),
    (3, 'node = { device = "cuda:99"; };', "node.device is 'cuda:99', but cases would wait: "),
    (3, f'profiles = ({{ name = "x"; flatfield = "/none/there"; {PROFILE} }});', "cannot read /none/there: "),
    (3, f'profiles = ({{ name = "x"; flatfield = "FOLDER"; {PROFILE} }});', "bad.conf: "),
    (0, 'node = { require_known_peer = true; };\npeers = ({ name = "a"; certificate = "pacs"; });',
     "warning: peer 'a' needs a certificate, but no listener asks for one"),
    (0, 'peers = ({ name = "a"; host = "10.0.0.0/8"; }, { name = "b"; host = "no-such-host.invalid"; });',
     "warning: key 'host' of peer 'b': no-such-host.invalid cannot be resolved ("),
    (3, 'alerts = { url = "https://127.0.0.1:9/"; authorities = "FOLDER/bad.conf"; };', "alerts: authorities file "),
])
def test_check_tries(folder, code, text, where):
    """What a configuration names is tried, not only read."""
    if "user = " not in text:
        text = text.replace("node = { ", f'node = {{ user = "{pwd.getpwuid(os.geteuid()).pw_name}"; ')
    write("tried.conf", text.replace("SPOOL", folder).replace("FOLDER", folder))
    said(code, "check -c tried.conf", where)
    check(sorted(os.listdir(".")) == ["bad.conf", "good.conf", "tried.conf"], "what check made is still there")


OTHER = "CREATE TABLE instance(a); CREATE TABLE event(b); PRAGMA user_version=1"


@pytest.mark.parametrize("make, said_of_it", [
    (lambda: os.symlink("nowhere", "spool/journal.db"), "journal.db, a link to what does not exist"),
    (lambda: os.mkdir("spool/journal.db"), "journal.db is a folder, not a file"),
    (lambda: sqlite3.connect("spool/journal.db").executescript(OTHER), "journal.db is the database of another program"),
    (lambda: os.symlink("/dev/shm", "spool/instances"), "instances, but this is in memory (tmpfs)"),
    (lambda: os.symlink("/dev/shm", "spool/work"), None),
])
def test_check_looks_into_the_spool(folder, make, said_of_it):
    os.mkdir("spool")
    make()
    write("tried.conf", f'node = {{ user = "{pwd.getpwuid(os.geteuid()).pw_name}"; spool = "{folder}/spool"; }};')
    found = said(3 if said_of_it else 0, "check -c tried.conf", *[said_of_it] * bool(said_of_it)).stderr
    check(sum("warning" not in line for line in found.splitlines()) == bool(said_of_it), f"one cause is told in several lines: {found}")


def test_check_prints_all_of_a_configuration():
    c = document(0, "check --json -c good.conf")["config"]
    check(c["status"]["enabled"] in (True, False) and c["node"]["port"] == 104 and c["node"]["check_called"] is False
          and "spool" in c["node"], c)
    for section, least in (("protocols", 16), ("scanners", 3)):
        found = [entry["name"] for entry in c[section]]
        check(found == names(section) and len(found) >= least, found)
    check(c["routes"][0]["destinations"] == ["pacs"] and c["routes"][1]["kind"] == "pet", c["routes"])
    check("tile" not in c["protocols"][-1] and "matrix" not in c["protocols"][0], "keys of another kind")


def test_the_environment_names_the_configuration(monkeypatch):
    monkeypatch.setenv("TOMONODE_CONF", "good.conf")
    said(0, "check", ">good.conf: no problems")
    monkeypatch.setenv("TOMONODE_CONF", "bad.conf")
    said(3, "check")
    said(0, "check -c good.conf")
    document(3, "list --json")
    monkeypatch.setenv("TOMONODE_CONF", "absent.conf")
    said(3, "serve", "absent.conf: No such file")
    monkeypatch.delenv("TOMONODE_CONF")
    said(0, "check", ">embedded defaults: no problems")
    said(0, "help list", ">the tomonode.conf of the")


def test_which_routes_a_folder_would_take():
    said(0, "simulate dbt --phantom ellipsoids --binning 8 --views 3 -o exam")
    write("routes.conf", """
routes = ( { name = "pets"; kind = "pet"; protocols = [ "pet-mlem" ]; destinations = [ "pacs" ]; },
           { name = "named"; study_description = "?*nothing of this"; protocols = [ "dbt-fbp" ];
             destinations = [ "pacs" ]; },
           { name = "sent"; calling = "MG1"; protocols = [ "dbt-osem", "dbt-fbp" ]; destinations = [ "pacs" ]; } );
""")
    said(3, "check -c routes.conf --route exam", ">route pets: not for this case, its kind is another",
         ">route named: not for this case, its study_description is another", ">no result: the case would be held")
    said(0, "check -c routes.conf --route exam --calling MG1", ">result: dbt-fbp to pacs")
    case, = document(0, "check -c routes.conf --route exam --calling MG1 --json")["cases"]
    check(case["kind"] == "dbt" and case["results"][1] == {"protocol": "dbt-fbp", "destinations": ["pacs"]}, case)
    check([(r["route"], r["used"], r["mismatch"]) for r in case["routes"]] ==
          [("pets", False, "kind"), ("named", False, "study_description"), ("sent", True, "")], case)
    check(document(3, "check -c routes.conf --route exam --json")["cases"][0]["results"] == [], "results")
    check(len(document(3, "check -c bad.conf --route exam --json")["problems"]) == 2, "problems")
    said(4, "check --route routes.conf")
    first = sorted(os.listdir("exam"))[0]
    with open(os.path.join("exam", first), "rb") as f, open("exam/cut.dcm", "wb") as cut:
        cut.write(f.read(3000))
    found = document(4, "check -c routes.conf --route exam --calling MG1 --json")
    check(len(found["cases"]) == 1 and [os.path.basename(r["file"]) for r in found["refused"]] == ["cut.dcm"], found)


def test_the_printed_defaults_are_those_of_no_file():
    write("defaults.conf", said(0, "check --defaults").stdout)
    found = [document(0, words)["config"] for words in ("check --json", "check --json -c defaults.conf")]
    check(found[0] == found[1], found)
    keys = re.findall(r"(?m)^\| `(\w+)` \|", said(0, "check --describe").stdout)
    missing = [key for key in keys if not re.search(rf"(?m)^[\t# ]*{key}(?: = .*;)?$", read("defaults.conf"))]
    check(len(keys) > 200 and not missing, f"without a line: {missing}")


def test_a_spool_without_a_journal():
    done = said(0, "list", ">no jobs", "spool has no journal")
    check("Critical" not in done.stdout, f"a problem before the first start: {done.stdout}")
    for words in ("show 99", "redo 99", "retry 99", "cancel 99", "priority 99 high"):
        said(8, words, "no job 99: ",
             "spool has no journal: no node has run with this spool, or your node uses another one")


@pytest.mark.skipif(os.geteuid() != 0 or not shutil.which("setpriv"), reason="needs root and setpriv")
def test_what_may_not_be_read_or_made(work):
    """A journal without read permission is not exit code 7 (refused by a peer); an output folder that cannot be made is
    exit code 1 in all commands, an input that may not be read 4."""
    nobody = ("setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups")
    os.chmod(work, 0o755)
    os.chmod(write("spool/journal.db"), 0o600)
    said(1, "list", "spool/journal.db: Permission denied", by=nobody)
    said(0, "simulate pet --scanner small --interfile -o pet")
    said(0, "recon --device cpu --set iterations=1 --set matrix=16 -o image pet/emission.hs")
    for name in os.listdir("image"):
        os.chmod(os.path.join("image", name), 0o644)
    for out in ("none", "/proc/none"):
        for words in ("import pet/emission.hs", "report image", "export image", "simulate pet --scanner small",
                      "recon pet/emission.hs"):
            said(1, f"{words} -o {out}" + ".nii.gz" * words.startswith("export"), by=nobody)
    os.mkdir("open")
    os.chmod("open", 0o777)
    os.chmod("pet/emission.hs", 0o600)
    said(4, "import pet/emission.hs -o open", "Permission denied", by=nobody)


def test_devices():
    check(re.search("(?m)^cpu", said(0, "devices").stdout), "no cpu")
    check(any(e["device"].startswith("cpu") for e in document(0, "devices --json")["devices"]), "no cpu")


def test_parents_of_an_output_are_made():
    for words, made in (("simulate parallel --size 16 --angles 12 -o deep/er/lines", "lines/truth.json"),
                        ("simulate pet --scanner small --size 0.3 -o deep/er/pet", "pet/truth.json"),
                        ("simulate dbt --phantom ellipsoids --binning 8 --views 3 -o deep/er/exam", "exam/truth.json"),
                        ("recon --device cpu -o deep/er/series/ct deep/er/lines", "series/ct"),
                        ("export -o deep/er/nifti/image.nii deep/er/series", "nifti/image.nii"),
                        ("export -o deep/er/interfile/lines.hs deep/er/lines", "interfile/lines.hs"),
                        ("import -o deep/er/imported/lines deep/er/interfile/lines.hs", "imported/lines/lines.dcm"),
                        ("report -o deep/er/reports/ct deep/er/series", "reports/ct")):
        said(0, words)
        check(os.path.exists("deep/er/" + made), f"{words}: no {made}")
        if words.startswith("simulate"):
            again = words.replace("deep/er", "again")
            check(json.loads(said(0, again + " --json").stdout)["folder"] == again.split()[-1], words)
    check("made from" in said(4, "recon --device cpu -o deep/er/other deep/er/series").stderr, "a folder of results has no hint")


def people():
    """The commands that people use."""
    return [name for name in said(0, ("help", "--complete", "")).stdout.split() if name != "help"]


def test_examples_can_be_parsed():
    """Of every --help; protocol, scanner and command exist."""
    for name in people():
        lines = re.findall(r"(?m)^  tomonode (.*)",
                           said(0, f"help {name}").stdout.partition("\nExamples:")[2].partition("\n\n")[0])
        check(lines, f"--help of {name} has no example")
        for line in lines:
            said(0, f"help --parse {line}")
            check(set(re.findall(r"--protocol (\S+)", line)) <= set(names("protocols")),
                  f"an example of {name}: {line}")


def test_manual_pages():
    """One for each command, with every option; it names other pages that exist."""
    overview = read(BUILD, "man", "tomonode.1")
    for name in people():
        page = read(BUILD, "man", f"tomonode-{name}.1")
        check(f".BR tomonode\\-{name} (1)" in overview, f"tomonode.1 does not name {name}")
        options = re.findall(r"(?m)^  .*--([a-z-]*)", said(0, f"help {name}").stdout)
        lacks = [o for o in options if o.replace("-", "\\-") not in page]
        check(not lacks, f"the page of {name} lacks {lacks}")
        others = [o.replace("\\", "")
                  for o in re.findall(r"(?m)^\.BR (tomonode[a-z\\-]*) \(1\)", page.partition("SEE ALSO")[2])]
        check(len(others) > 1 and all(os.path.getsize(os.path.join(BUILD, "man", o + ".1")) for o in others),
              f"{name}: {others}")


@pytest.mark.tier2("tools of manual pages")
@pytest.mark.parametrize("tool", [("mandoc", "-Tlint"), ("man", "--warnings", "-E", "UTF-8", "-l")],
                         ids=["mandoc", "man"])
def test_manual_pages_have_no_warning(tool):
    h.need(tool[0], *["groff"] * (tool[0] == "man"))
    for name in sorted(os.listdir(os.path.join(BUILD, "man"))):
        done = h.run(*tool, os.path.join(BUILD, "man", name), code=None)
        check(not done.stderr and (tool[0] == "man" or done.returncode == 0),
              f"{name}: {done.stdout[:300]}{done.stderr[:300]}")


# words of a command line, the last one being completed, and what is offered, in this order
COMPLETIONS = [
    (("tes",), "test-peer test-alert"),
    (("reco",), "recon"),
    (("recon", "--pro"), "--protocol"),
    (("recon", "--protocol", "pet-"), "pet-mlem pet-osem pet-fbp-preview"),
    (("simulate", ""), "dbt pet parallel"),
    (("simulate", "pet", "--scanner", "s"), "siemens-mmr siemens-mct siemens-vision-600 siemens-quadra small"),
    (("redo", "17", "--protocol", "pet-o"), "pet-osem"),
    (("recon", "--set", "pri"), "prior= prior_weight= prior_gamma= prior_across="),
    (("redo", "17", "--set", "ma"), "matrix="),
    (("priority", "17", ""), "low normal high"),
    (("priority", ""), ""),
    (("redo", "-c", "mine.conf", "17", "--protocol", "mi"), "mine"),
    (("profile", "f"), "fit"),
    (("recon", "-o", ""), ":folders"),
    (("recon", "--attenuation", ""), ":files hs"),
    (("recon", ""), ":files"),
    (("list", ""), ""),
    (("nonsense", ""), ""),
]
OF_BASH = [(("tes",), "test-peer test-alert"), (("recon", "--attenuation", "f"), "folder f.hs"),
           (("recon", "-o", "f"), "folder"),
           (("recon", "--protocol", "pet-o"), "pet-osem"), (("recon", "--set", "ma"), "matrix=")]
OF_ZSH = [(("tes",), "test-peer test-alert"), (("simulate", ""), "dbt pet parallel"),
          (("recon", "--protocol", "pet-o"), "pet-osem"),
          (("recon", "--attenuation", ""), "files -g *.(hs)"), (("recon", "-o", ""), "files -/")]
BASH = """. "$1"
shift
COMP_WORDS=("$@")
COMP_CWORD=$(($# - 1))
_tomonode
printf '%s ' "${COMPREPLY[@]}"
"""
ZSH = """compadd() { shift; print -r -- "$@" }
_files() { print -r -- files "$@" }
file=$1
shift
words=("$@")
CURRENT=$#words
source $file
"""


def test_completion():
    write("mine.conf", 'protocols = ( { name = "mine"; kind = "pet"; } );\n')
    for words, offered in COMPLETIONS:
        found = said(0, ("help", "--complete", *words)).stdout.split("\n")
        check(found == offered.split() + [""] or offered.startswith(":") and found == [offered, ""],
              f"{words}: {found}")


@pytest.mark.parametrize("shell, script, file, cases",
                         [("bash", BASH, "tomonode.bash", OF_BASH), ("zsh", ZSH, "_tomonode", OF_ZSH)],
                         ids=["bash", "zsh"])
def test_completion_by_a_shell(shell, script, file, cases):
    h.need(shell)
    os.mkdir("folder")
    for name in ("f.hs", "f.txt"):
        write(name)
    os.symlink(TOMONODE, "tomonode")
    file = os.path.join(SOURCE, "deploy", "completion", file)
    h.run(shell, "-n", file)
    for words, offered in cases:
        found = h.run(shell, "-c", script, shell, file, "./tomonode", *words, code=None).stdout
        check(found.strip() == offered, f"{words}: {found}")
