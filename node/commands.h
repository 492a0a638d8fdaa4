/* The subcommands. Each parses its own arguments (argv[0] is the subcommand) and returns an exit code of the list below. */
#ifndef TOMONODE_NODE_COMMANDS_H
#define TOMONODE_NODE_COMMANDS_H

enum exit_code {
	CODE_OK = 0,
	CODE_FAILED = 1,    /* something went wrong that is none of the following */
	CODE_USAGE = 2,	    /* unknown option or missing argument */
	CODE_CONFIG = 3,    /* the configuration has problems (each is printed) */
	CODE_INPUT = 4,	    /* the data were refused: the sentence says why */
	CODE_MEMORY = 5,    /* the plan does not fit the memory limit */
	CODE_DEVICE = 6,    /* no such device, or it failed */
	CODE_PEER = 7,	    /* a DICOM peer could not be reached or refused */
	CODE_NOT_FOUND = 8, /* no such job, destination, protocol, file */
	CODE_BUSY = 9,	    /* another node holds the spool or the port */
	CODE_CANCELLED = 10,
};

int cmd_serve(int argc, char **argv);
int cmd_check(int argc, char **argv);
int cmd_recon(int argc, char **argv);
int cmd_simulate(int argc, char **argv);
int cmd_import(int argc, char **argv);
int cmd_measure(int argc, char **argv);
int cmd_export(int argc, char **argv);
int cmd_list(int argc, char **argv);
int cmd_show(int argc, char **argv);
int cmd_retry(int argc, char **argv);
int cmd_cancel(int argc, char **argv);
int cmd_priority(int argc, char **argv);
int cmd_test_peer(int argc, char **argv);
int cmd_devices(int argc, char **argv);
int cmd_bench(int argc, char **argv);

/* What `serve` runs in processes of their own; not for people, not in --help. */
int cmd_index(int argc, char **argv);	/* index -c FILE: find the case of each new instance */
int cmd_worker(int argc, char **argv);	/* worker -c FILE JOB: reconstruct one case */
int cmd_deliver(int argc, char **argv); /* deliver -c FILE JOB DESTINATION: send one result */
int cmd_status(int argc, char **argv);	/* status -c FILE --listen FD: answer for the status page */
int cmd_http(int argc, char **argv);	/* http -c FILE --listen FD --channel FD: what `status` starts for browsers */
int cmd_names(int argc, char **argv);	/* names -c FILE --channel FD: what `status` starts for patients' names */
int cmd_commit(int argc, char **argv);	/* commit -c FILE JOB DESTINATION: ask for storage commitment of it */

#endif
