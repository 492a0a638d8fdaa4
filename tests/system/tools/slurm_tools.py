# SPDX-License-Identifier: Apache-2.0
"""A Slurm cluster on this machine: munged, one slurmctld, several slurmd, each with a GPU that is none (/dev/null).

All files are in one folder, all ports are free ones, and no service of the system is used: a Slurm that is installed
and running is not disturbed. Everything runs as the caller's user, who is Slurm's administrator. Programs find the
cluster by the environment (env). """
import contextlib
import os
import pwd
import secrets
import shutil
import signal
import socket
import subprocess

from tools.node_harness import check, free_port, need, read_file, wait_for, write_file

PROGRAMS = ("slurmctld", "slurmd", "munged", "sbatch", "squeue", "scancel", "sinfo", "scontrol")


def need_slurm():
    os.environ["PATH"] += os.pathsep + "/usr/sbin"
    need(*PROGRAMS)


def conf_text(folder, user, munge, port, nodes):
    host = socket.gethostname()
    lines = [
        "ClusterName=test", f"SlurmctldHost={host}(127.0.0.1)", f"SlurmctldPort={port}", f"SlurmUser={user}",
        f"SlurmdUser={user}",
        "AuthType=auth/munge", f"AuthInfo=socket={munge}", "CredType=cred/munge", "ProctrackType=proctrack/linuxproc",
        "TaskPlugin=task/none",
        "SwitchType=switch/none", "MpiDefault=none", "ReturnToService=2", "SelectType=select/cons_tres",
        "SelectTypeParameters=CR_Core",
        "GresTypes=gpu", "SlurmctldTimeout=10", "SlurmdTimeout=15", "InactiveLimit=0", "KillWait=2", "MinJobAge=5",
        "MessageTimeout=5",
        "SchedulerParameters=sched_interval=2,batch_sched_delay=0,bf_interval=2", "JobCompType=jobcomp/none",
        "AccountingStorageType=accounting_storage/none", "JobAcctGatherType=jobacct_gather/none",
        f"StateSaveLocation={folder}/state", f"SlurmctldPidFile={folder}/slurmctld.pid",
        f"SlurmctldLogFile={folder}/slurmctld.log",
        f"SlurmdSpoolDir={folder}/spool.%n", f"SlurmdPidFile={folder}/%n.pid", f"SlurmdLogFile={folder}/%n.log",
    ]
    lines += [f"NodeName={name} NodeHostname={host} NodeAddr=127.0.0.1 Port={p} CPUs=1 RealMemory=2000 Gres=gpu:1"
              for name, p in nodes.items()]
    lines.append(f"PartitionName=main Nodes={','.join(nodes)} Default=YES MaxTime=60 State=UP")
    return "\n".join(lines) + "\n"


class Slurm:
    def __init__(self, folder, nodes=3):
        self.folder = folder
        self.nodes = {f"d{i + 1}": free_port() for i in range(nodes)}
        self.port = free_port()
        self.munge = os.path.join(folder, "munge.socket")
        self.conf = os.path.join(folder, "slurm.conf")
        self.processes = {}
        os.makedirs(os.path.join(folder, "state"))
        os.chmod(folder, 0o755)
        write_file(self.conf, conf_text(folder, pwd.getpwuid(os.geteuid()).pw_name, self.munge, self.port, self.nodes))
        write_file(os.path.join(folder, "gres.conf"), f"NodeName={','.join(self.nodes)} Name=gpu File=/dev/null\n")
        with open(os.open(os.path.join(folder, "munge.key"), os.O_WRONLY | os.O_CREAT, 0o600), "wb") as f:
            f.write(secrets.token_bytes(128))
        self.env = {**os.environ, "SLURM_CONF": self.conf}

    def spawn(self, name, *args):
        with open(os.path.join(self.folder, f"{name}.out"), "ab") as log:
            self.processes[name] = subprocess.Popen(args, env=self.env, stdin=subprocess.DEVNULL, stdout=log,
                                                    stderr=log, cwd=self.folder)

    def start_munge(self):
        at = self.folder
        self.spawn("munged", "munged", "--foreground", "--force", f"--socket={self.munge}",
                   f"--key-file={at}/munge.key",
                   f"--log-file={at}/munge.log", f"--pid-file={at}/munge.pid", f"--seed-file={at}/munge.seed")
        wait_for("munged listens", lambda: os.path.exists(self.munge))

    def start_controller(self):
        self.spawn("slurmctld", "slurmctld", "-D", "-f", self.conf)

    def start_node(self, name):
        self.spawn(name, "slurmd", "-D", "-N", name, "-f", self.conf)

    def start(self):
        self.start_munge()
        self.start_controller()
        for name in self.nodes:
            self.start_node(name)
        wait_for("all nodes are idle", lambda: self.states() == ["idle"] * len(self.nodes) or self.ended())
        check(not self.ended(), f"{self.ended()} ended: {self.log()}")

    def ended(self):
        return [name for name, p in self.processes.items() if p.poll() is not None]

    def log(self):
        text = ""
        for name in sorted(os.listdir(self.folder)):
            if name.endswith((".log", ".out")):
                with open(os.path.join(self.folder, name), errors="replace", encoding="utf-8") as f:
                    text += f"---- {name}\n{f.read()[-1500:]}\n"
        return text

    def command(self, *args, code=0, stdin=None):
        """What a command of Slurm prints, without its last line break."""
        p = subprocess.run(args, env=self.env, input=stdin, capture_output=True, text=True, timeout=60, check=False)
        check(code is None or p.returncode == code, f"{args}: code {p.returncode}: {p.stdout}{p.stderr}")
        return p.stdout.strip()

    def states(self):
        """State of each node, in their order; empty while the controller does not answer."""
        return self.command("sinfo", "-h", "-N", "-o", "%T", code=None).split()

    def jobs(self, form="%i %T"):
        return [line.split() for line in self.command("squeue", "-h", "-o", form).splitlines()]

    def drain(self, drained=True):
        names = ",".join(self.nodes)
        self.command("scontrol", "update", f"nodename={names}", *(("state=drain", "reason=test") if drained
                                                                  else ("state=resume",)))

    def kill(self, name, number=signal.SIGKILL):
        self.processes[name].send_signal(number)
        if number == signal.SIGKILL:
            self.processes.pop(name).wait()

    def stop(self):
        """End everything, jobs and their step daemons too."""
        with contextlib.suppress(subprocess.TimeoutExpired, AssertionError):
            if "slurmctld" in self.processes and not self.ended():
                self.command("scancel", "--user", str(os.geteuid()), code=None)
                wait_for("all jobs have ended", lambda: not self.jobs(), 20)
        for p in self.processes.values():
            p.send_signal(signal.SIGCONT)
            p.kill()
            p.wait()
        self.processes = {}
        for pid in self.leftovers():
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        wait_for("the last processes have ended", lambda: not self.leftovers(), 20)
        shutil.rmtree(self.folder, ignore_errors=True)

    def processes_of(self, word):
        """What jobs of this cluster run with this word after the program's name."""
        found = []
        for pid in self.leftovers():
            with contextlib.suppress(OSError), open(f"/proc/{pid}/cmdline", encoding="utf-8", errors="replace") as f:
                if f.read().split("\0")[1:2] == [word]:
                    found.append(pid)
        return found

    def leftovers(self):
        """Processes that inherited this cluster's configuration: slurmstepd and what the jobs started."""
        found = []
        for pid in filter(str.isdigit, os.listdir("/proc")):
            with contextlib.suppress(OSError):
                environ = read_file(f"/proc/{pid}/environ", "rb")
                with open(f"/proc/{pid}/stat", encoding="utf-8", errors="replace") as f:
                    state = f.read().rpartition(")")[2].split()[0]
                mine = f"SLURM_CONF={self.conf}".encode() in environ.split(b"\0")
                if mine and state != "Z" and int(pid) != os.getpid():
                    found.append(int(pid))
        return found
