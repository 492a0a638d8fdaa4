/* SPDX-License-Identifier: Apache-2.0 */
/* The subcommands of tomonode. Each parses its arguments (argv[0] is the subcommand) and returns an exit code of
 * node/base/exit_code.h. */
#ifndef TOMONODE_NODE_COMMANDS_H
#define TOMONODE_NODE_COMMANDS_H

int cmd_check(int argc, char **argv);
int cmd_recon(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_measure(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_arrays(int argc, char **argv);
int cmd_report(int argc, char **argv);
int cmd_compare(int argc, char **argv);
int cmd_profile(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_retry(int argc, char **argv);
int cmd_redo(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_priority(int argc, char **argv);
int cmd_test_peer(int argc, char **argv);
int cmd_test_alert(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_bench(int argc, char **argv);
int cmd_bench_node(int argc, char **argv); /* argv[0]: node */

#endif
