# SPDX-License-Identifier: Apache-2.0
"""Exams of PET for the tests of the contract: how they are made, and what a node needs to reconstruct them in a
fraction of a second."""
import os

from tools import contract_tools as c
from tools import node_harness as h


class SeveralResults(c.Exams):
    """Tomosynthesis of which three protocols of one route make three results."""
    name = "tomosynthesis with three results"
    jobs = slices = 3

    def configure(self, node):
        node.more_protocols = (', { name = "second"; algorithm = "fbp"; voxel = 0.0; slice_spacing = 5.0; }, '
                               '{ name = "third"; algorithm = "osem"; voxel = 3.0; }')
        node.protocols = ["quick", "second", "third"]
        node.write_conf()


class Pet(c.Exams):
    protocol = ""
    scanner = ""

    def configure(self, node):
        node.more_protocols = f', {{ name = "quick-pet"; kind = "pet"; {self.protocol} }}'
        node.more_routes = ', { name = "pet"; kind = "pet"; protocols = [ "quick-pet" ]; destinations = [ "pacs" ]; }'
        node.more = f"scanners = ( {{ {self.scanner} }} );\n"
        node.write_conf()


class TofChunks(Pet):
    """An acquisition with 5 TOF bins of a scanner with four rings: emission and randoms, each in four objects of up to
    64 kB, and attenuation without TOF bins."""
    name = "PET with time of flight in several objects"
    data = b"\x71\0\x10\x10"
    slices = 7
    protocol = 'algorithm = "mlem"; iterations = 4; matrix = 24;'
    scanner = ('name = "tiny"; manufacturer = "tomonode"; model = "tiny"; rings = 4; ring_spacing = 6.5; '
               'radius = 100.0; interaction_depth = 5.0; detectors = 96; bin = 4.0; radial = 33; angles = 24; '
               'span = 1; max_difference = 3;')

    def make(self, folder):
        conf, sinograms = (os.path.join(folder, name) for name in ("tiny.conf", "sinograms"))
        h.write_file(conf, f"scanners = ( {{ {self.scanner} }} );\n")
        h.run(h.TOMONODE, "simulate", "pet", "-c", conf, "--scanner", "tiny", "--phantom", "f-shape", "--counts",
              "1e6", "--attenuation",
              "--randoms", "0.2", "--tof", "5,400,500", "--interfile", "-o", sinograms)
        roles = {name: os.path.join(sinograms, name + ".hs") for name in ("emission", "attenuation", "additive")}
        h.run(h.TOMONODE, "import", roles["emission"], "--attenuation", roles["attenuation"], "--additive",
              roles["additive"],
              "--chunk", "65536", "--set", "PatientPosition=HFS", "-c", conf, "-o", folder)


class Mmr(Pet):
    """List mode and normalisation of an mMR, of which the planes between equal rings are used: 64 of 837."""
    name = "raw data of an mMR"
    data = b"\xe1\x7f\x10\x10"
    slices = 17
    protocol = 'algorithm = "osem"; iterations = 1; subsets = 63; matrix = 16; slice_spacing = 16.0; fov_radius = 80.0;'
    scanner = 'name = "siemens-mmr"; span = 1; max_difference = 0;'

    def make(self, folder):
        try:
            import numpy as np
            from tools import mmr_tools as mmr
        except ImportError:
            h.skip("pydicom and numpy are not installed")
        rng, study = np.random.default_rng(5), "2.25.100000000000000000000000000000"
        mmr.write_list(os.path.join(folder, "list.dcm"), mmr.words_of(rng, 20000), study=study)
        mmr.write_norm(os.path.join(folder, "norm.dcm"), mmr.Norm(rng), study=study)
