# SPDX-License-Identifier: Apache-2.0
"""What the pages of measurements are written with: tables, and figures with as many digits as they are worth."""


def table(head, rows):
    return "\n".join(["| " + " | ".join(head) + " |", "|---" * len(head) + "|",
                      *("| " + " | ".join(map(str, row)) + " |" for row in rows)])


def milliseconds(value):
    return f"{value:.3g}" if value < 100 else f"{value:.0f}"


def factor(value):
    return f"{value:.2g}" if value < 10 else f"{value:.0f}"
