#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Write an OCI archive of one layer (OCI image-spec 1.0): a tar with oci-layout, index.json and blobs/sha256/*.

usage: oci_image.py --root ROOT.tar --name NAME --version VERSION --created SECONDS OUT.tar
ROOT.tar is the root file system; the image runs `tomonode serve` as user tomonode. Written twice from the same input, the files are equal.
"""
import argparse
import datetime
import gzip
import hashlib
import io
import json
import os
import shutil
import subprocess
import tarfile
import tempfile

MEDIA = "application/vnd.oci.image."


def digest(path):
    with open(path, "rb") as f:
        return "sha256:" + hashlib.file_digest(f, "sha256").hexdigest()


def image_config(diff_id, architecture, created, version):
    """The image's configuration. Healthcheck is a field of Docker's, which other readers of OCI images ignore, as the specification says."""
    return {
        "created": created,
        "architecture": architecture,
        "os": "linux",
        "config": {
            "User": "tomonode",
            "ExposedPorts": {"11112/tcp": {}},
            "Env": ["PATH=/usr/local/bin:/usr/bin:/bin", "TOMONODE_SPOOL=/var/lib/tomonode",
                    # Read by the container runtime of NVIDIA: which GPUs, and of the driver only what computes.
                    "NVIDIA_VISIBLE_DEVICES=all", "NVIDIA_DRIVER_CAPABILITIES=compute,utility"],
            "Entrypoint": ["/usr/bin/tomonode"],
            "Cmd": ["serve"],
            "WorkingDir": "/var/lib/tomonode",
            "Volumes": {"/var/lib/tomonode": {}, "/tmp": {}, "/run": {}},
            "StopSignal": "SIGTERM",
            "Labels": {"org.opencontainers.image.title": "tomonode", "org.opencontainers.image.version": version,
                       "org.opencontainers.image.licenses": "Apache-2.0"},
            "Healthcheck": {"Test": ["CMD", "/usr/lib/tomonode/health"], "Interval": 30 * 10**9, "Timeout": 10 * 10**9,
                            "StartPeriod": 60 * 10**9, "Retries": 3},
        },
        "rootfs": {"type": "layers", "diff_ids": [diff_id]},
        "history": [{"created": created, "created_by": "deploy/package.sh image"}],
    }


def write(root, name, version, created, out):
    created = datetime.datetime.fromtimestamp(created, datetime.timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    architecture = subprocess.run(["dpkg", "--print-architecture"], check=True, capture_output=True, text=True).stdout.strip()
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(out))) as work:
        layer = os.path.join(work, "layer")
        with open(root, "rb") as source, open(layer, "wb") as raw, gzip.GzipFile("", "wb", 6, raw, mtime=0) as packed:
            shutil.copyfileobj(source, packed, 1 << 20)
        blobs = {}

        def add_text(value, media):
            text = json.dumps(value, indent=1, sort_keys=True).encode()
            blobs[hashlib.sha256(text).hexdigest()] = text
            return {"mediaType": MEDIA + media, "digest": "sha256:" + hashlib.sha256(text).hexdigest(), "size": len(text)}

        config = add_text(image_config(digest(root), architecture, created, version), "config.v1+json")
        layer_entry = {"mediaType": MEDIA + "layer.v1.tar+gzip", "digest": digest(layer), "size": os.path.getsize(layer)}
        manifest = add_text({"schemaVersion": 2, "mediaType": MEDIA + "manifest.v1+json", "config": config,
                             "layers": [layer_entry]}, "manifest.v1+json")
        manifest["platform"] = {"architecture": architecture, "os": "linux"}
        manifest["annotations"] = {"org.opencontainers.image.ref.name": name, "io.containerd.image.name": f"localhost/{name}"}
        index = {"schemaVersion": 2, "mediaType": MEDIA + "index.v1+json", "manifests": [manifest]}

        with tarfile.open(out, "w", format=tarfile.GNU_FORMAT) as tar:
            def put(path, size, content):
                info = tarfile.TarInfo(path)
                info.size, info.mode = size, 0o644
                tar.addfile(info, content)

            for path, value in (("oci-layout", {"imageLayoutVersion": "1.0.0"}), ("index.json", index)):
                text = json.dumps(value, indent=1, sort_keys=True).encode()
                put(path, len(text), io.BytesIO(text))
            for key in sorted(blobs):
                put("blobs/sha256/" + key, len(blobs[key]), io.BytesIO(blobs[key]))
            with open(layer, "rb") as f:
                put("blobs/sha256/" + layer_entry["digest"][7:], layer_entry["size"], f)


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    for key in ("--root", "--name", "--version"):
        parser.add_argument(key, required=True)
    parser.add_argument("--created", type=int, required=True)
    parser.add_argument("out")
    a = parser.parse_args()
    write(a.root, a.name, a.version, a.created, a.out)


if __name__ == "__main__":
    main()
