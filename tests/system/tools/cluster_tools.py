# SPDX-License-Identifier: Apache-2.0
"""A node whose pilots are jobs of a Slurm cluster on this machine."""
import os
import signal

from tools.node_harness import Node, free_port, write_file
from tools.slurm_tools import Slurm


def fake_pilot(folder, pilot):
    """A program that keeps its words, and its standard input (the secret) in a file for each job, and then is the
    shell's `pilot`."""
    program = os.path.join(folder, "program")
    write_file(program, f'#!/bin/sh\necho "$@" >>{folder}/words\ncat >{folder}/read.$SLURM_JOB_ID\n'
                        f'mv {folder}/read.$SLURM_JOB_ID {folder}/secret.$SLURM_JOB_ID\nexec {pilot}\n')
    os.chmod(program, 0o755)
    return f'"{program}"'


def cluster_node(folder, slurm, pacs_port=0, executor='"slurm"', **keys):
    """keys: of the section slurm."""
    node = Node(os.path.join(folder, "node"), pacs_port or free_port(), executor=executor)
    node.status = {"port": free_port()}
    node.slurm = {"max": 3, "idle": 1.0, **keys}
    node.cluster_port = free_port()
    node.cluster = {"bind": '"127.0.0.1"', "port": node.cluster_port, "advertise": f'"127.0.0.1:{node.cluster_port}"'}
    write(node)
    os.environ["SLURM_CONF"] = slurm.conf
    return node


def write(node):
    cluster, slurm = ("".join(f" {k} = {v};" for k, v in keys.items()) for keys in (node.cluster, node.slurm))
    node.write_conf(f"cluster = {{{cluster} }};\nslurm = {{{slurm} }};\n")


def reload(node, **keys):
    node.slurm.update(keys)
    write(node)
    node.process.send_signal(signal.SIGHUP)


def start_slurm(folder, things):
    slurm = Slurm(os.path.join(folder, "slurm"))
    things.append(slurm)
    slurm.start()
    return slurm


def cluster(node):
    return node.list()["cluster"]
