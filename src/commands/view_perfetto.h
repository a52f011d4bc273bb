/* trail view --perfetto: a trace in Perfetto's page. */
#pragma once

#include "commands/view_server.h"

/* Returns the exit code, after messages. */
int view_perfetto(const struct view_server *server, const char *word);
