# SPDX-License-Identifier: Apache-2.0
"""The smallest input of each kind that the commands take: a run with one of them takes some hundredths of a second."""
import os

from tools import node_harness as h
from tools import tof_tools

SCANNER = (
    'name = "tiny"; manufacturer = "tomonode"; model = "tiny"; rings = 3; ring_spacing = 6.5; radius = 60.0; '
    "interaction_depth = 5.0; detectors = 48; bin = 4.0; radial = 17; angles = 12; span = 1; max_difference = 2;"
)
DBT = "--detector 512x512 --binning 8 --views 3 --phantom"
PET = "-c IN/tiny.conf --scanner tiny --phantom f-shape --counts"
RECON_DBT = "--protocol dbt-osem --set voxel=4 --set slice_spacing=10 --set iterations=1 --device cpu:1"
RECON_PET = "-c IN/tiny.conf --protocol pet-osem --set matrix=16 --set iterations=1 --set subsets=2 --device cpu:1"
IMPORT_INTERFILE = "IN/hs/emission.hs --attenuation IN/hs/attenuation.hs --set PatientPosition=HFS -c IN/tiny.conf"

COMMANDS = (  # in this order
    f"simulate dbt {DBT} beads -o IN/dbt",
    f"simulate pet {PET} 1e4 --attenuation --interfile -o IN/hs",
    f"simulate pet {PET} 1e3 --petsird -o IN/list",
    f"import {IMPORT_INTERFILE} -o IN/pet",
    "simulate parallel --size 16 --angles 8 --slices 2 -o IN/lines",
    f"recon {RECON_DBT} -o IN/volume IN/dbt",
    f"recon {RECON_PET} -o IN/series IN/pet",
    "export -o IN/picture.png IN/volume",
)


def words(text, folder):
    """The words of a command; IN is the folder `in` below this one."""
    return text.replace("IN/", os.path.join(folder, "in") + "/").split()


def made():
    """The folder that has them all in its folder `in`, made once in a run of tests."""

    def make(folder):
        os.makedirs(os.path.join(folder, "in"))
        h.write_file(os.path.join(folder, "in", "tiny.conf"), f"scanners = ( {{ {SCANNER} }} );\n")
        tof_tools.E7(os.path.join(folder, "in", "e7"), compression=1, largest=2, rings=4).write()
        for text in COMMANDS:
            h.run(h.TOMONODE, *words(text, folder))

    return h.kept("tiny-inputs", make)
