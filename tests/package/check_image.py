#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Check an OCI layout by the image specification: digests and sizes of all blobs, the schemas (if Debian's package of them is installed),
and what tomonode promises of its image. Unpack its layer.

usage: check_image.py LAYOUT ROOT ENV
LAYOUT: folder with index.json; ROOT: folder for the root file system; ENV: file for the image's environment, a variable a line
"""
import gzip
import hashlib
import json
import os
import sys
import tarfile

SCHEMAS = "/usr/share/gocode/src/github.com/opencontainers/image-spec/schema"


def blob(layout, entry):
    """Return the path of a blob, after comparing its size and digest with those that its descriptor names."""
    path = os.path.join(layout, "blobs", *entry["digest"].split(":"))
    assert os.path.getsize(path) == entry["size"], f"{path}: not {entry['size']} bytes"
    with open(path, "rb") as f:
        assert "sha256:" + hashlib.file_digest(f, "sha256").hexdigest() == entry["digest"], f"{path}: another digest"
    return path


def load(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def check_schema(value, name):
    try:
        import jsonschema
    except ImportError:
        jsonschema = None
    if not jsonschema or not os.path.isdir(SCHEMAS):
        print(f"skipped: schema of {name}: the schemas of OCI and jsonschema are not installed (deploy/install-deps.sh nightly)")
        return

    class Installed(jsonschema.RefResolver):
        def resolve_remote(self, uri):
            return load(os.path.join(SCHEMAS, os.path.basename(uri)))

    schema = load(os.path.join(SCHEMAS, name + "-schema.json"))
    jsonschema.Draft4Validator(schema, resolver=Installed(schema.get("id", ""), schema)).validate(value)
    print(f"ok      {name} conforms to its schema")


def main():
    layout, root, environment = sys.argv[1:]
    check_schema(load(os.path.join(layout, "oci-layout")), "image-layout")
    index = load(os.path.join(layout, "index.json"))
    check_schema(index, "image-index")
    assert len(index["manifests"]) == 1, index
    manifest = load(blob(layout, index["manifests"][0]))
    check_schema(manifest, "image-manifest")
    image = load(blob(layout, manifest["config"]))
    check_schema(image, "config")
    assert image["config"]["User"] == "tomonode" and image["config"]["Healthcheck"]["Test"] == ["CMD", "/usr/lib/tomonode/health"], image
    with open(environment, "w", encoding="utf-8") as f:
        f.write("\n".join(image["config"]["Env"]) + "\n")
    assert len(manifest["layers"]) == len(image["rootfs"]["diff_ids"]) == 1, manifest
    layer = blob(layout, manifest["layers"][0])
    with gzip.open(layer) as f:
        assert "sha256:" + hashlib.file_digest(f, "sha256").hexdigest() == image["rootfs"]["diff_ids"][0], "the layer is not that of the configuration"
    print("ok      blobs have the digests and sizes that are named")
    with tarfile.open(layer) as tar:
        for member in tar:
            if member.isfile() and member.mode & 0o6000 and "tomonode" in member.name:
                raise AssertionError(f"{member.name} is setuid")
            if not member.isdev():
                tar.extract(member, root, numeric_owner=True)


if __name__ == "__main__":
    main()
