#!/bin/bash
# SPDX-License-Identifier: Apache-2.0
# What a hospital files about this version, from this checkout (deploy/evidence.py --help).
exec /usr/bin/python3 "$(dirname "$0")/evidence.py" "$@"
