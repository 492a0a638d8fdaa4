/* config_table_status.c - the keys of the status page; see node/config/config_table.c. */
#include <stddef.h>

#include "node/config/config_internal.h"

static const struct key_choice actions[] = {
	{"loopback", STATUS_ACTIONS_LOOPBACK}, {"always", STATUS_ACTIONS_ALWAYS}, {"never", STATUS_ACTIONS_NEVER}, {NULL, 0}};

const struct config_key config_status_keys[CONFIG_STATUS_KEYS] = {
	{"enabled", AS_BOOL(status_conf, enabled), .fallback = "true", .meaning = "serve the status page"},
	{"bind", AS_ADDRESS(status_conf, bind), .fallback = "127.0.0.1",
	 .meaning = "address to listen on; any other than a loopback address makes the page visible to the network"},
	{"port", AS_INT(status_conf, port, 1, 65535), .zero = "any free port (printed in the log)", .fallback = "11180",
	 .meaning = "port to listen on"},
	{"host", AS_HOST(status_conf, host), .fallback = "",
	 .meaning = "host name that browsers may use in the page's URL, besides `localhost` and addresses; empty: none"},
	{"actions", AS_CHOICE(status_conf, actions, actions), .fallback = "loopback",
	 .meaning = "who may retry and cancel cases on the page: `loopback`: everyone if `bind` is a loopback address, else "
		    "nobody; `always`: everyone who can reach the page; `never`: nobody"},
	{"thumbnails", AS_BOOL(status_conf, thumbnails), .fallback = "true",
	 .meaning = "make a small picture of each result's middle slice and show it on the page"},
	{"show_patient", AS_BOOL(status_conf, show_patient), .fallback = "false",
	 .meaning = "show the patient's name and ID, which are read from the images each time the page is loaded"},
};
