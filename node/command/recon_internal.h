/* SPDX-License-Identifier: Apache-2.0 */
/* The parts of `tomonode recon` and `arrays`: protocols, cases, and what is told of them. Private to node/command/recon_*.c and
 * cmd_recon.c. */
#ifndef TOMONODE_NODE_RECON_INTERNAL_H
#define TOMONODE_NODE_RECON_INTERNAL_H

#include "node/command/recon_command.h"
#include "node/reconstruct/reconstruct.h"

/* ---- recon_protocols.c: the protocol of each kind of case ---- */

/* Choose the protocol that --protocol or --recipe names for all cases, or without them one for each kind of case. Return -1, or an
 * exit code. */
int recon_protocols_choose(struct recon *r);
/* Check that a kind of case has a protocol. Otherwise report why the kind of the first case has none; without cases, the kind
 * that has the key of --set. Return -1, or an exit code. */
int recon_protocols_check(const struct recon *r);
/* The same for imports alone, before they are read: PET or parallel beams. */
int recon_protocols_check_imports(const struct recon *r);
/* Write what differs from the protocol of the configuration. A table of time marks replaces the signal. */
void recon_protocols_changes(const struct recon *r, const struct protocol_conf *p, char *ret_text, size_t size);

/* ---- recon_cases.c: reconstruct them ---- */

/* CODE_NOT_FOUND: no case has the file of --header; else -1. */
int recon_cases_check_header(const struct recon *r);
void recon_cases_reconstruct(struct recon *r, struct device *dev);

/* ---- recon_notes.c: print each case, and collect them for --json ---- */

/* who: a path or the name of a case, which the reason does not repeat. The first code is that of the command. */
void recon_notes_refusal(struct recon *r, int code, const char *who, const char *reason);
/* Note a result, with its report and pictures of its corrections beside it. */
void recon_notes_result(struct recon *r, const struct case_files *c, const struct reconstruct_report *p);
/* Note the arrays of a case, and print their shapes. */
void recon_notes_arrays(struct recon *r, const struct case_files *c, const struct reconstruct_report *p);
/* Write to the audit trail that the measured data of these cases were given to other programs. */
void recon_notes_audit(const struct recon *r);
/* Print what is left to say. Return the exit code. */
int recon_notes_summary(struct recon *r);

#endif
