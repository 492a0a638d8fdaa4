/* SPDX-License-Identifier: Apache-2.0 */
/* Internal commands, which `serve` and `status` run in separate processes; not in --help. They return an exit code
 * (node/base/exit_code.h). */
#ifndef TOMONODE_NODE_CMD_STATUS_H
#define TOMONODE_NODE_CMD_STATUS_H

int cmd_status(int argc, char **argv); /* status -c FILE --listen FD: serve the status page */
int cmd_http(int argc, char **argv);   /* http -c FILE --listen FD --ipc FD: started by `status`; HTTP */
int cmd_names(int argc, char **argv);  /* names -c FILE --ipc FD: started by `status`; read patients' names */
/* report-page -c FILE --ipc FD JOB FILE: started by `status`; make the report of a case, of whose result FILE is an object */
int cmd_report_page(int argc, char **argv);
int cmd_look(int argc, char **argv); /* look -c FILE --ipc FD: started by `status`; decode slices of results */

#endif
