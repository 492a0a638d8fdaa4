#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Malformed associations: bytes that a peer may send instead of a C-STORE that is right (PS3.8, PS3.7)."""
import hostile
from hostile import Case, peer


def raw(*parts):
    """Send the parts as they are, and return what the node answers to them."""
    def act(stage):
        s = stage.connect()
        try:
            for part in parts:
                s.sendall(part)
            return answer(s)
        except OSError as e:
            return f"error {e}"
        finally:
            s.close()
    return act


def answer(s):
    wire = peer.Wire(s)
    try:
        kind, body = wire.read_pdu()
        return {2: "accepted", 3: f"rejected {body[1:4].hex()}", 7: "aborted"}.get(kind, f"PDU {kind}")
    except peer.Gone as e:
        return "timeout" if "timed out" in str(e) else "closed"


def cases(rng):
    found = [Case("HTTP request", raw(b"GET / HTTP/1.0\r\n\r\n"), "closed", "127.* does not use DICOM: the first byte is 0x47"),
             Case("garbage", raw(b"\x99" + rng.randbytes(100)), "closed", "127.* does not use DICOM: the first byte is 0x")]
    return found


if __name__ == "__main__":
    hostile.main("Malformed associations", hostile.stage, cases)
