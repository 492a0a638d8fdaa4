/* config_table_status.c - the keys of the status page; see node/config/config_table.c. */
#include <stddef.h>

#include "node/config/config_internal.h"

static const struct key_choice actions[] = {
	{"loopback", STATUS_ACTIONS_LOOPBACK}, {"always", STATUS_ACTIONS_ALWAYS}, {"never", STATUS_ACTIONS_NEVER}, {NULL, 0}};

const struct config_key config_status_keys[CONFIG_STATUS_KEYS] = {
	{"enabled", KEY_BOOL, AT(status_conf, enabled), "", 0, 0, NULL, NULL, "true", 0, "serve the status page"},
	{"bind", KEY_ADDRESS, AT(status_conf, bind), "", 0, 0, NULL, NULL, "127.0.0.1", 0,
	 "address to listen on; any other than a loopback address makes the page visible to the network"},
	{"port", KEY_INT, AT(status_conf, port), "", 1, 65535, "any free port (printed in the log)", NULL, "11180", 0,
	 "port to listen on"},
	{"host", KEY_HOST, AT(status_conf, host), "", 0, 0, NULL, NULL, "", 0,
	 "host name that browsers may use in the page's URL, besides `localhost` and addresses; empty: none"},
	{"actions", KEY_CHOICE, AT(status_conf, actions), "", 0, 0, NULL, actions, "loopback", 0,
	 "who may retry and cancel cases on the page: `loopback`: everyone if `bind` is a loopback address, else nobody; "
	 "`always`: everyone who can reach the page; `never`: nobody"},
	{"thumbnails", KEY_BOOL, AT(status_conf, thumbnails), "", 0, 0, NULL, NULL, "true", 0,
	 "make a small picture of each result's middle slice and show it on the page"},
	{"show_patient", KEY_BOOL, AT(status_conf, show_patient), "", 0, 0, NULL, NULL, "false", 0,
	 "show the patient's name and ID, which are read from the images each time the page is loaded"},
};
