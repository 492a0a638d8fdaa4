# SPDX-License-Identifier: Apache-2.0
"""Format the tables and figures of the pages of measurements, with the number of digits that the measurements justify."""


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def milliseconds(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def factor(value):
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
